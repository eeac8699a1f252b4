"""The papers' claims as predicates over recorded results, and how they are checked.

The rule is that of :mod:`.statistics`, the names of verdicts are in :mod:`.verdicts`. What the paper's own printed
numbers say of a claim stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from asyncfl_lite.reproduction.claims.findings import Finding, short
from asyncfl_lite.reproduction.claims.measured import ACCURACY, CONSTANT, PRINTED, TUNED, Measured
from asyncfl_lite.reproduction.claims.statistics import LEVEL, Contrast, benjamini_hochberg
from asyncfl_lite.reproduction.claims.verdicts import DID_NOT_TRAIN, NOT_RUN, REFUTED
from asyncfl_lite.reproduction.grid.columns import FIXED

TRAINED, CLOCK, ARITHMETIC, NOT_CHECKABLE = KINDS = ("trained", "clock", "arithmetic", "not checkable here")
"""Kinds of claims: about trained models, about delays and staleness, about printed numbers, and the rest."""
TABLE = ["id", "artefact", "kind", "claim", "paper", "ours", "detail"]
"""Columns of the table of claims; the last only where the column "printed" was checked."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper that can be checked.

    Attributes:
        id: paper, artefact and a letter, ``FE-T2-a``.
        artefact: the table or figure.
        text: what is claimed.
        printed: what the paper's own numbers say of it.
        check: from recorded results to a finding.
        kind: one of :data:`KINDS`.
        of_constant_answers: whether the claim itself is that runs answer one class or do not train, so that such runs
            do not keep it from being decided.
    """

    id: str
    artefact: str
    text: str
    printed: str
    check: Callable[[Measured], Finding]
    kind: str = TRAINED
    of_constant_answers: bool = False


def not_run(why: str) -> Callable[[Measured], Finding]:
    """Return the check of a claim for which nothing can be run here."""
    return lambda measured: Finding(NOT_RUN, why)


@dataclass(frozen=True)
class _Watched(Measured):
    """What was recorded, and of which cells accuracies, losses or times to a target were asked for."""

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
    """A claim with what was found in one column.

    Attributes:
        claim: which.
        column: one of :data:`COLUMNS`.
        finding: its verdict.
        cells: the cells whose accuracies or times it asked for.
    """

    claim: Claim
    column: str
    finding: Finding
    cells: frozenset[str]


def check_claim(measured: Measured, claim: Claim, column: str = TUNED) -> Checked:
    """Check a claim in one column; ``did not train`` if it rests on a cell that answers one class for everything.

    It rests on the cells whose accuracies or times it asks for, one such cell being enough
    (:meth:`Measured.is_constant`). It is still refuted if it is without them: one comparison of cells that trained is
    enough to refute a claim.
    """
    chosen = measured.column(column)
    given = chosen.unmarked() if claim.of_constant_answers else chosen
    watched = _Watched(given.summaries, given.curves, given.planned)
    finding = claim.check(watched)
    constant = sorted(cell for cell in watched.asked if chosen.is_constant(cell))
    asked = frozenset(watched.asked)
    if not constant or finding.verdict == NOT_RUN:
        return Checked(claim, column, finding, asked)
    if not claim.of_constant_answers:
        rest = claim.check(chosen.without(constant))
        finding = rest if rest.verdict in REFUTED else finding._replace(verdict=DID_NOT_TRAIN)
    named = f"{finding.detail}; {CONSTANT}: {', '.join(map(short, constant))}"
    return Checked(claim, column, finding._replace(detail=named), asked)


def check_all(measured: Measured, claims: Iterable[Claim]) -> list[Checked]:
    """Check claims on the column "tuned", and those that rest on a cell with a twin on "printed" as well."""
    checked, twins = [], measured.twins
    for claim in claims:
        checked.append(check_claim(measured, claim))
        if claim.kind == TRAINED and not twins.isdisjoint(checked[-1].cells):
            checked.append(check_claim(measured, claim, PRINTED))
    return checked


def check_claims(measured: Measured, claims: Iterable[Claim]) -> pd.DataFrame:
    """Return one row per claim; see :func:`table_of_claims`."""
    return table_of_claims(check_all(measured, claims))


def table_of_claims(checked: Iterable[Checked]) -> pd.DataFrame:
    """Return one row per claim: id, artefact, kind, claim, paper (what its numbers say), ours, detail.

    Where some claim was checked in the column "printed", also ``fixed server rate`` and its detail; claims that
    rest on no cell with a twin have the same verdict in both.
    """
    rows: dict[str, dict[str, str]] = {}
    for claim, column, (verdict, detail, *_), _ in checked:
        rows.setdefault(claim.id, {"id": claim.id, "artefact": claim.artefact, "kind": claim.kind, "claim": claim.text,
                                   "paper": claim.printed})  # fmt: skip
        found = ("ours", "detail") if column == TUNED else (FIXED, f"{FIXED}, detail")
        rows[claim.id] |= dict(zip(found, (verdict, detail), strict=True))
    table = pd.DataFrame(list(rows.values()), columns=[*TABLE, FIXED, f"{FIXED}, detail"])
    if table[FIXED].isna().all():
        return table[TABLE]
    table[FIXED] = table[FIXED].fillna(table["ours"])
    return table.fillna("")


def table_of_contrasts(checked: Iterable[Checked]) -> pd.DataFrame:
    """Return one row per comparison that trained claims rest on: claim, column, and the fields of :class:`Contrast`."""
    rows = [
        {"claim": claim.id, "column": column, **found._asdict()}
        for claim, column, finding, _ in checked
        if claim.kind == TRAINED
        for found in finding.contrasts
    ]
    return pd.DataFrame(rows, columns=["claim", "column", *Contrast._fields])


def table_of_discoveries(checked: Iterable[Checked]) -> pd.DataFrame:
    """Return one row per trained claim and column that was tested: claim, column, verdict, p, q, survives.

    ``p`` is scaled such that 5 % is the bar at every look; ``q`` is adjusted by Benjamini and Hochberg over the trained
    claims of its column, and ``survives`` says whether it is at most 5 %.
    """
    rows = [
        (claim.id, column, finding.verdict, finding.weight)
        for claim, column, finding, _ in checked
        if claim.kind == TRAINED and finding.verdict != NOT_RUN
    ]
    table = pd.DataFrame(rows, columns=["claim", "column", "verdict", "p"]).astype({"p": float})
    q = table.groupby("column")["p"].transform(benjamini_hochberg)
    return table.assign(q=q, survives=q <= LEVEL)
