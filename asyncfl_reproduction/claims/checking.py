"""The papers' claims, each with a function that checks it on recorded results, and the code that runs these checks.

The rule is in :mod:`.statistics`, and the names of verdicts are in :mod:`.verdict_words`. Each claim also has the
verdict on the paper's own printed numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from asyncfl_reproduction.claims.findings import Finding, short
from asyncfl_reproduction.claims.measured import ACCURACY, AT_FIXED_RATE, TUNED, UNTRAINED, Measured
from asyncfl_reproduction.grid.columns import FIXED
from asyncfl_reproduction.statistics import ERROR_LEVEL, benjamini_hochberg
from asyncfl_reproduction.verdict_words import NOT_RUN, OPEN, REFUTED

TRAINED, CLOCK, ARITHMETIC, CONSTRUCTED, NOT_CHECKABLE = KINDS = (
    *("trained", "clock", "arithmetic", "by construction", "not checkable here"),
)
"""Kinds of claims: about trained models; about delays and staleness; about printed numbers; true by construction; and
the rest. Only claims of the first kind count as evidence, because only they could have been refuted by training."""
TABLE = ["id", "artefact", "kind", "claim", "paper", "ours", "detail"]
"""Columns of the table of claims; two more follow if claims were checked at a fixed server rate, too."""


@dataclass(frozen=True)
class Claim:
    """One checkable statement of a paper.

    Attributes:
        id: paper, artefact and a letter, such as ``FE-T2-a``.
        artefact: the table or figure.
        text: what is claimed.
        printed: the verdict on it by the paper's own numbers.
        check: function from recorded results to a finding.
        kind: one of :data:`KINDS`.
        of_constant_answers: whether the claim itself says that runs predict one class or do not train, so that it can
            be decided by such runs.
        because: why it must hold, for a claim that holds by construction.
    """

    id: str
    artefact: str
    text: str
    printed: str
    check: Callable[[Measured], Finding]
    kind: str = TRAINED
    of_constant_answers: bool = False
    because: str = ""


def not_run(why: str) -> Callable[[Measured], Finding]:
    """Return a check whose verdict is always "not run", for claims that nothing here can test."""
    return lambda measured: Finding(NOT_RUN, why)


@dataclass(frozen=True)
class _Watched(Measured):
    """Recorded results that also note the cells whose accuracies, losses or times to a target are read."""

    asked: set[str] = field(default_factory=set)

    def by_seed(self, cell: str, number: str = ACCURACY) -> pd.Series | None:
        if any(word in number for word in ("accuracy", "loss", "perplexity")):  # other numbers are the clock's
            self.asked.add(cell)
        return super().by_seed(cell, number)

    def of_curves(self, cell: str, number: Callable[[pd.DataFrame], float]) -> pd.Series | None:
        self.asked.add(cell)
        return super().of_curves(cell, number)

    def times_to(self, cell: str, target: float | pd.Series, window: int = 1) -> pd.Series | None:
        self.asked.add(cell)
        return super().times_to(cell, target, window)


class Checked(NamedTuple):
    """A claim with its finding in one of :data:`COLUMNS`, and the cells whose accuracies or times it asked for."""

    claim: Claim
    column: str
    finding: Finding
    cells: frozenset[str]


def check_claim(measured: Measured, claim: Claim, column: str = TUNED) -> Checked:
    """Check a claim in one column; a claim that rests on a cell that did not train is open.

    A claim rests on the cells whose accuracies or times its check reads. It is still refuted if the comparisons of the
    other cells refute it.
    """
    chosen = measured.column(column)
    given = chosen.unmarked() if claim.of_constant_answers else chosen
    watched = _Watched(given.summaries, given.curves, given.planned)
    finding = claim.check(watched)
    asked = frozenset(watched.asked)
    constant = sorted(cell for cell in asked if chosen.is_constant(cell))
    if not constant or finding.verdict == NOT_RUN:
        return Checked(claim, column, finding, asked)
    detail = f"{finding.detail}; {UNTRAINED}: {', '.join(map(short, constant))}"
    if not claim.of_constant_answers:
        rest = claim.check(chosen.without(constant))
        finding = rest if rest.verdict in REFUTED else finding._replace(verdict=OPEN)
    return Checked(claim, column, finding._replace(detail=detail), asked)


def check_all(measured: Measured, claims: Iterable[Claim]) -> list[Checked]:
    """Check claims when tuned, and trained claims also at a fixed server rate if the tier plans such cells."""
    checked, twins = [], measured.twins
    for claim in claims:
        checked.append(check_claim(measured, claim))
        if claim.kind == TRAINED and not twins.isdisjoint(checked[-1].cells):
            checked.append(check_claim(measured, claim, AT_FIXED_RATE))
    return checked


def check_claims(measured: Measured, claims: Iterable[Claim]) -> pd.DataFrame:
    """Check claims, and return one row per claim as :func:`table_of_claims` does."""
    return table_of_claims(check_all(measured, claims))


def table_of_claims(checked: Iterable[Checked]) -> pd.DataFrame:
    """Return one row per claim, with the verdict on the paper's own numbers and the verdict on ours.

    If a claim was checked at a fixed server rate, there are also columns for this verdict and its detail. A claim that
    rests on no cell with such a twin has the same verdict in both columns.
    """
    rows: dict[str, dict[str, str]] = {}
    for claim, column, (verdict, detail, *_), *_ in checked:
        rows.setdefault(claim.id, {"id": claim.id, "artefact": claim.artefact, "kind": claim.kind, "claim": claim.text,
                                   "paper": claim.printed})  # fmt: skip
        found = ("ours", "detail") if column == TUNED else (FIXED, f"{FIXED}, detail")
        detail += f"; by construction: {claim.because}" * bool(claim.because)
        rows[claim.id] |= dict(zip(found, (verdict, detail), strict=True))
    table = pd.DataFrame(list(rows.values()), columns=[*TABLE, FIXED, f"{FIXED}, detail"])
    if table[FIXED].isna().all():
        return table[TABLE]
    table[FIXED] = table[FIXED].fillna(table["ours"])
    return table.fillna("")


def table_of_discoveries(checked: Iterable[Checked]) -> pd.DataFrame:
    """Return one row per tested trained claim and column, with the Benjamini-Hochberg correction.

    The columns are claim, column, verdict, p, q and survives. ``p`` is scaled so that its threshold is 5 % at every
    look; ``q`` is ``p``, adjusted by Benjamini and Hochberg's method over the trained claims of its column; and
    ``survives`` says whether ``q`` is at most 5 %.
    """
    rows = [
        (claim.id, column, finding.verdict, finding.weight)
        for claim, column, finding, *_ in checked
        if claim.kind == TRAINED and finding.verdict != NOT_RUN
    ]
    table = pd.DataFrame(rows, columns=["claim", "column", "verdict", "p"]).astype({"p": float})
    q = table.groupby("column")["p"].transform(benjamini_hochberg)
    return table.assign(q=q, survives=q <= ERROR_LEVEL)
