"""Names of verdicts, and the rule for the verdict of a claim with several parts.

A claim says that one cell is above another, or a number as large as printed. Its comparisons are judged by
:mod:`.statistics`: the claim ``holds``; the two cells are ``equivalent``; the claim is ``reversed``; it ``fails``,
because the difference is surely smaller than claimed, or because a fact contradicts it; or it is ``open``. A comparison
with a cell that did not train is ``open``. Two cells that no claim orders are compared in both
directions: the first is ``above`` or ``below`` the second, or they are ``equivalent``, or this is ``open``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from asyncfl_lite.base.errors import how_many

HOLDS, EQUIVALENT, REVERSED, OPEN, FAILS, NOT_RUN = VERDICTS = (
    *("holds", "equivalent", "reversed", "open", "fails", "not run"),
)
ABOVE, BELOW, LITTLE = "above", "below", " by less than a point"
"""Words for two cells that no claim orders, beside ``equivalent`` and ``open``. :data:`LITTLE` follows the first two
where the sign is certain, and the cells are equivalent all the same."""
REFUTED = (REVERSED, FAILS)
"""Verdicts that refute a claim, clearest first."""

SAID = {
    HOLDS: ("holds", "hold"),
    EQUIVALENT: ("is equivalent", "are equivalent"),
    REVERSED: ("is reversed", "are reversed"),
    OPEN: ("is open", "are open"),
    FAILS: ("fails", "fail"),
    NOT_RUN: ("was not run", "were not run"),
}
"""Verdict -> the phrase for one claim, and for several."""


def counted(counts: Mapping[str, int]) -> str:
    """Return a sentence with the number of trained claims by verdict.

    Example:
        >>> counted({"holds": 3, "equivalent": 1, "reversed": 5, "not run": 4}).split(", ", 1)[1]
        '3 hold, 1 is equivalent, 5 are reversed, 0 are open, 0 fail and 4 were not run.'
    """
    told = {name: int(counts.get(name, 0)) for name in VERDICTS}
    *parts, last = [f"{number} {SAID[name][number != 1]}" for name, number in told.items()]
    claims = how_many(sum(told.values()), "claim")
    return f"Of {claims} that training could have refuted, {', '.join(parts)} and {last}."


def parts_counted(verdicts: Iterable[str]) -> str:
    """Return how many parts of a claim have each verdict, without those that were not run.

    Example:
        >>> parts_counted(["holds", "equivalent", "holds", "reversed", "not run"])
        '2 hold, 1 equivalent, 1 reversed'
    """
    counts = Counter(verdicts)
    return ", ".join(
        f"{counts[name]} {SAID[name][counts[name] != 1].removeprefix('is ').removeprefix('are ')}"
        for name in VERDICTS
        if counts[name] and name != NOT_RUN
    )


def of_parts(claims: Iterable[Sequence[str]]) -> str:
    """Return sentences with the shares of all claims' parts, and the number of claims that hold in a part of theirs.

    Example:
        >>> of_parts([["holds", "not run"], ["holds", "reversed"]])
        'Of their 3 parts that were run, 67 % hold and 33 % are reversed. 1 claim holds with parts that were not run.'
    """
    claims = list(claims)
    counts = Counter(verdict for parts in claims for verdict in parts if verdict != NOT_RUN)
    ran = sum(counts.values())
    if not ran:
        return "No part of them was run."
    *shares, last = [f"{100 * counts[name] / ran:.0f} % {SAID[name][1]}" for name in VERDICTS if counts[name]]
    said = f"{', '.join(shares)} and {last}" if shares else last
    partly = sum(joined(parts) == HOLDS and NOT_RUN in parts for parts in claims)
    holding = f"{partly} claim{'s' * (partly != 1)} {SAID[HOLDS][partly != 1]} with parts that were not run."
    return f"Of their {ran} parts that were run, {said}. {holding}"


def joined(verdicts: Iterable[str]) -> str:
    """Return the verdict of a claim that needs all parts to hold.

    It is the worst verdict of the parts that were run: reversed, else fails, else open, else equivalent, else holds.
    """
    ran = set(verdicts) - {NOT_RUN}
    return next((verdict for verdict in (*REFUTED, OPEN, EQUIVALENT, HOLDS) if verdict in ran), NOT_RUN)
