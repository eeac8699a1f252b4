"""Names of verdicts, and the rule for the verdict of a claim with several parts.

A trained claim is about differences between cells, each judged by :mod:`.statistics`: ``holds``, ``smaller than
claimed``, ``level``, ``reversed`` or ``undecided``. A claim about the clock or about printed numbers ``holds`` or
``fails``. ``holds where run`` means that every part that was run holds, and that other parts were not run; it is never
counted as ``holds``. ``did not train`` means that a cell predicts one class for every input, and ``borrowed`` that a
cell uses rates that were searched elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

HOLDS, WHERE_RUN, SMALLER = "holds", "holds where run", "smaller than claimed"
LEVEL, PARTLY = "level", "partly level"
REVERSED, UNDECIDED, FAILS = "reversed", "undecided", "fails"
DID_NOT_TRAIN, BORROWED, NOT_RUN = "did not train", "borrowed", "not run"
VERDICTS = (HOLDS, WHERE_RUN, SMALLER, LEVEL, PARTLY, REVERSED, UNDECIDED, FAILS, DID_NOT_TRAIN, BORROWED, NOT_RUN)
REFUTED = (FAILS, REVERSED, PARTLY, LEVEL, SMALLER)
"""Verdicts that refute a claim, clearest first."""


SAID = {
    HOLDS: ("holds", "hold"),
    WHERE_RUN: ("holds where run", "hold where run"),
    SMALLER: ("is smaller than claimed", "are smaller than claimed"),
    LEVEL: ("is level", "are level"),
    PARTLY: ("is partly level", "are partly level"),
    REVERSED: ("is reversed", "are reversed"),
    UNDECIDED: ("is undecided", "are undecided"),
    FAILS: ("fails", "fail"),
    DID_NOT_TRAIN: ("rests on runs that did not train", "rest on runs that did not train"),
    BORROWED: ("rests on borrowed rates", "rest on borrowed rates"),
    NOT_RUN: ("was not run", "were not run"),
}
"""Verdict -> the phrase for one claim, and for several."""
ALWAYS = (HOLDS, LEVEL, REVERSED, UNDECIDED, NOT_RUN)
"""Verdicts whose count is stated even if it is 0."""


def counted(counts: Mapping[str, int]) -> str:
    """Return a sentence with the number of trained claims by verdict; zeros are left out except in ``ALWAYS``.

    Example:
        >>> counted({"holds": 3, "level": 1, "reversed": 5, "not run": 4}).split(", ", 1)[1]
        '3 hold, 1 is level, 5 are reversed, 0 are undecided and 4 were not run.'
    """
    told = {name: int(counts.get(name, 0)) for name in VERDICTS}
    *parts, last = [f"{number} {SAID[name][number != 1]}" for name, number in told.items() if number or name in ALWAYS]
    return f"Of {sum(told.values())} claims that training could have refuted, {', '.join(parts)} and {last}."


def joined(verdicts: Iterable[str]) -> str:
    """Return the verdict of a claim that needs all parts to hold, so that one refuted part refutes the claim.

    "A is above B in every column" says that there is a difference everywhere, so it does not hold if one part is level.
    If all parts are level, the claim is ``level``. If only some are, and none is reversed, it is ``partly level``.

    Args:
        verdicts: the verdicts of the parts; if some parts were not run, a claim that would hold gets ``holds where
            run``.
    """
    parts = set(verdicts)
    ran = parts - {NOT_RUN}
    if not ran:
        return NOT_RUN
    if LEVEL in ran and ran != {LEVEL}:
        ran = ran - {LEVEL} | {PARTLY}
    worst = next(verdict for verdict in (*REFUTED, DID_NOT_TRAIN, UNDECIDED, WHERE_RUN, HOLDS) if verdict in ran)
    return WHERE_RUN if worst == HOLDS and NOT_RUN in parts else worst
