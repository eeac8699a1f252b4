"""The names of verdicts, and how those of a claim's parts join.

A trained claim is about differences between cells, each judged by :mod:`.statistics`: ``holds``, ``smaller than
claimed``, ``no difference``, ``reversed`` or ``undecided``. A claim about the clock or about printed numbers ``holds``
or ``fails``. ``holds where run`` says that every part that was run holds and that others were not run; it is never
counted as ``holds``. ``did not train``: a cell answers one class for everything.
"""

from __future__ import annotations

from collections.abc import Iterable

HOLDS, WHERE_RUN, SMALLER, NO_DIFFERENCE = "holds", "holds where run", "smaller than claimed", "no difference"
REVERSED, UNDECIDED, FAILS = "reversed", "undecided", "fails"
DID_NOT_TRAIN, NOT_RUN = "did not train", "not run"
VERDICTS = (HOLDS, WHERE_RUN, SMALLER, NO_DIFFERENCE, REVERSED, UNDECIDED, FAILS, DID_NOT_TRAIN, NOT_RUN)
REFUTED = (FAILS, REVERSED, NO_DIFFERENCE, SMALLER)
"""Verdicts that deny what was claimed, the plainest first."""


def joined(verdicts: Iterable[str]) -> str:
    """Return the verdict of a claim all of whose parts must hold: one refuted part refutes it.

    Args:
        verdicts: of the parts; those that were not run leave ``holds where run`` of a claim that would hold.
    """
    parts = set(verdicts)
    ran = parts - {NOT_RUN}
    if not ran:
        return NOT_RUN
    worst = next(verdict for verdict in (*REFUTED, DID_NOT_TRAIN, UNDECIDED, WHERE_RUN, HOLDS) if verdict in ran)
    return WHERE_RUN if worst == HOLDS and NOT_RUN in parts else worst
