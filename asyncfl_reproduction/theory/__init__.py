"""Fifteen checks of theory, T1 to T15: printed statements of the papers, and invariants of this package.

A check is a function without arguments that returns a :class:`Check`: the statement in other words with its equation
number, numbers with their bounds, and a verdict that follows from them. Wherever a method is involved, the package's
own code runs.

>>> from asyncfl_reproduction.theory import CHECKS
>>> CHECKS["T11"]().verdict
'false'
"""

from __future__ import annotations

from collections.abc import Callable

from asyncfl_reproduction.theory.fedecho import check_t1, check_t2, check_t3, check_t4, check_t5
from asyncfl_reproduction.theory.fedecho_rate import check_t6, check_t13
from asyncfl_reproduction.theory.fedrevive import check_t11
from asyncfl_reproduction.theory.invariants import check_t12
from asyncfl_reproduction.theory.kuiper import check_t7, check_t8, check_t9, check_t10, check_t14, check_t15
from asyncfl_reproduction.theory.results import (
    CONDITION,
    FALSE,
    HOLDS,
    STATES,
    Case,
    Check,
    as_table,
    slope,
)

CHECKS: dict[str, Callable[[], Check]] = {
    f"T{number}": check
    for number, check in enumerate(
        (
            *(check_t1, check_t2, check_t3, check_t4, check_t5, check_t6, check_t7, check_t8),
            *(check_t9, check_t10, check_t11, check_t12, check_t13, check_t14, check_t15),
        ),
        start=1,
    )
}
"""Every check, by its number."""

__all__ = ["CHECKS", "CONDITION", "FALSE", "HOLDS", "STATES", "Case", "Check", "as_table", "slope"]
