"""Known mistakes: wrong functions that readers often write, and a hint for each.

A wrong function is recognised by its result. If its wrong result on an input equals that of a function in the table,
the reader is shown that function's message. Otherwise the reader is shown the checker's own hint.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfl_course.known_mistakes import distilling, measuring, servers
from asyncfl_course.plain import Found, numbers_of

KNOWN = servers.KNOWN | distilling.KNOWN | measuring.KNOWN
"""Exercise -> hint -> the wrong function; in 03.2, 07.1, 07.3 and 08.1, it gives only the part that is checked."""
SIMULATED = {"15.1", "16.1"}
"""Exercises whose results are simulated, so that a mistake's result is compared with a wider tolerance."""


def named(id: str, found: Found) -> str | None:
    """Return the hint for the known mistake that gives this wrong result, or None if no known mistake does.

    Args:
        id: the exercise's id.
        found: the wrong result of the reader's function.
    """
    rtol = 0.03 if id in SIMULATED else 2e-3
    for message, wrong in KNOWN.get(id, {}).items():
        try:
            made = wrong(*found.inputs)
        except Exception:  # this mistake cannot be made with this input
            continue
        if _alike(made, found.given, rtol) and not _alike(made, found.wanted, rtol):
            return message
    return None


def _alike(one: Any, other: Any, rtol: float) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    try:
        ours, theirs = numbers_of(one), numbers_of(other)
    except (TypeError, ValueError):
        return False
    if ours.size == theirs.size == 1:
        ours, theirs = ours.ravel(), theirs.ravel()
    return ours.shape == theirs.shape and np.allclose(
        ours, theirs, atol=2e-4 + 0.1 * rtol * (rtol > 0.01), rtol=rtol, equal_nan=True
    )
