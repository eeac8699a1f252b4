"""Results of checking printed statements: numbers, their bounds, and the verdict that follows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pandas as pd

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.settings_files import yaml_in

HOLDS = "holds"
CONDITION = "holds under an unprinted condition"
FALSE = "false"
STATES = {HOLDS: "holds", CONDITION: "open", FALSE: "fails"}
"""Verdict -> the state that gives its colour in the report: green, yellow, red."""

AS_PRINTED = "as printed"
CONDITIONED = "with the condition"
REPAIRED = "repaired"
ASIDE = "aside"


@dataclass(frozen=True)
class Case:
    """One setting in which a statement was tested.

    Attributes:
        kind: ``as printed`` (every printed assumption is met), ``with the condition`` (an unprinted one as well),
            ``repaired`` (the statement itself was changed), or ``aside`` (decides nothing: an assumption is dropped,
            or the paper says nothing about this setting).
        what: the setting, in words.
        measured: the computed number.
        relation: the relation that it should have to ``bound``.
        bound: the statement's right-hand side, or the expected number.
        tolerance: the absolute tolerance.
    """

    kind: Literal["as printed", "with the condition", "repaired", "aside"]
    what: str
    measured: float
    relation: Literal["<=", "=", ">="]
    bound: float
    tolerance: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the relation between number and bound holds; False if one of them is NaN."""
        gap = self.measured - self.bound
        if self.relation == "=":
            return abs(gap) <= self.tolerance
        return gap <= self.tolerance if self.relation == "<=" else gap >= -self.tolerance

    @property
    def used(self) -> float:
        """Share of the bound that the number reaches: 1 is tight, and an equation that holds leaves nothing unused.

        It is NaN where there is no share: for an equation that fails, or a bound that is not positive.
        """
        if self.relation == "=":
            return 1.0 if self.holds else math.nan
        part, whole = (self.measured, self.bound) if self.relation == "<=" else (self.bound, self.measured)
        return part / whole if whole > 0 else math.nan


@dataclass(frozen=True)
class Check:
    """A printed statement, the cases in which it was tested, and the verdict.

    Attributes:
        id: ``T1`` to ``T15``.
        paper: FedEcho, KUIPER or FedRevive; or the package, for the invariants of its own engine.
        where: equation, lemma or assumption.
        statement: the printed statement in other words.
        cases: the settings in which it was tested.
        condition: the additional condition under which the statement holds.
        counterexample: a setting in which it fails, if there is one.
        repair: what should be printed instead, or how to use the statement.
    """

    id: str
    paper: str
    where: str
    statement: str
    cases: tuple[Case, ...]
    condition: str = ""
    counterexample: str = ""
    repair: str = ""

    @property
    def verdict(self) -> str:
        """Verdict from the cases alone: ``holds``, ``holds under an unprinted condition`` or ``false``.

        A statement holds if it holds in every case as printed. Otherwise it holds under a condition if, unchanged, it
        holds in every case with the condition. It is false if it had to be changed, or if no condition saves it.
        """
        if all(case.holds for case in self.of(AS_PRINTED)):
            return HOLDS
        saved = self.of(CONDITIONED)
        if saved and not self.of(REPAIRED) and all(case.holds for case in saved):
            return CONDITION
        return FALSE

    @property
    def decisive(self) -> Case:
        """The first case under the printed conditions that fails, or the first such case if none fails."""
        printed = self.of(AS_PRINTED)
        return next((case for case in printed if not case.holds), printed[0])

    @property
    def measured(self) -> float:
        """The number that was measured in the decisive case."""
        return self.decisive.measured

    @property
    def bound(self) -> float:
        """The number that the statement gives in the decisive case."""
        return self.decisive.bound

    @property
    def used(self) -> float:
        """Share of its bound that the statement uses in the tightest case of those that the verdict accepts.

        At 0.1 the bound is ten times as large as anything tried here, so these cases do not tell whether a bound
        between the two would hold as well.
        """
        kinds = {HOLDS: (AS_PRINTED,), CONDITION: (AS_PRINTED, CONDITIONED), FALSE: (REPAIRED,)}[self.verdict]
        shares = [case.used for case in self.cases if case.kind in kinds and case.holds]
        return max((share for share in shares if share == share), default=math.nan)

    def of(self, kind: str) -> list[Case]:
        """Return the cases of one kind."""
        return [case for case in self.cases if case.kind == kind]

    def __getitem__(self, what: str) -> Case:
        """Return the case whose description is this text or begins with it.

        Raises:
            ConfigError: if there is no such case, or more than one.
        """
        found = [case for case in self.cases if case.what == what]
        found = found or [case for case in self.cases if case.what.startswith(what)]
        if len(found) != 1:
            raise ConfigError(f"what: {len(found)} cases of {self.id} begin with {what!r}, must be one")
        return found[0]


@cache
def _statements() -> dict[str, dict[str, str]]:
    return yaml_in(Path(__file__).with_name("statements.yaml").read_text("utf-8"))


def checked(number: str, cases: Iterable[Case]) -> Check:
    """Return a check, with the texts of its number (``T1`` to ``T15``) in ``statements.yaml``."""
    return Check(number, cases=tuple(cases), **_statements()[number])


def as_table(checks: Iterable[Check]) -> pd.DataFrame:
    """Return one row per check: statement, source, verdict, the decisive case's numbers, and the share of the bound.

    The share, ``used``, is that of the tightest case of those that the verdict accepts (:attr:`Check.used`).
    """
    rows = [
        (c.id, c.paper, c.where, c.statement, c.verdict, c.used, c.decisive.what)
        + (c.measured, c.decisive.relation, c.bound)
        for c in checks
    ]
    names = ["check", "paper", "where", "statement", "verdict", "used", "decided by", "measured", "should be", "bound"]
    return pd.DataFrame(rows, columns=names)


def slope(lengths: Iterable[float], values: Iterable[float]) -> float:
    """Return the least-squares slope of log ``values`` over log ``lengths``, which is -½ for a rate T^-½."""
    points = [(math.log(length), math.log(value)) for length, value in zip(lengths, values, strict=True)]
    x, y = (sum(part) / len(points) for part in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
