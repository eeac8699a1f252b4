"""Four claims to referee, each with the cells that a plan may use and the digest of a sealed envelope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from asyncfl_course.records import EQUAL_POINTS, published
from asyncfl_course.referee import deaf
from asyncfl_course.referee.plan import differing, in_lines, leaves
from asyncfl_course.referee.records import AT_RATE_1, COLUMNS, NUMBERS, RATE_1, image_config, runs_of
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, unknown_name

PILOT = 5
"""Number of seeds, from 0 on, for which a referee may see the differences' deviation, and nothing else."""
PART = 5
"""Divisor of a claimed lead: a plan must not pass a lead that is this many times smaller, which is another claim."""


@dataclass(frozen=True)
class Case:
    """One printed claim to referee.

    Attributes:
        name: ``lead``, ``deaf``, ``weight`` or ``targets``.
        says: the claim in words.
        first, predicate, second: the claim as a relation between two cells.
        claimed: the difference that it claims, in points.
        cells: names of the cells that a plan may name.
        acting: a control that is known to act, with which a plan's proofs are tested.
        commitment: SHA-256 of the envelope.
        hidden: names of the cells that only the envelope names.
    """

    name: str
    says: str
    first: str
    predicate: str
    second: str
    claimed: float
    cells: tuple[str, ...]
    acting: str
    commitment: str
    hidden: tuple[str, ...] = ()

    @property
    def denied(self) -> float:
        """A difference for which the claim is false, in points; a plan should rarely confirm the claim there."""
        return self.claimed / PART if self.predicate == "above" else 2 * 100 * EQUAL_POINTS

    def __repr__(self) -> str:
        lines = [
            f"Case {self.name}. {self.says}",
            f"cells:    {', '.join(self.cells)}",
            f"recorded: {', '.join(f'{self.recorded(column)} seeds {column}' for column in COLUMNS)}",
            f"envelope: {self.commitment}",
        ]
        return in_lines("\n".join(lines))

    def recorded(self, column: str) -> int:
        """Return how many seeds are recorded for both of the claim's cells."""
        return len(self.gap(self.first, self.second, NUMBERS[0], column))

    def runs(self, cell: str, column: str) -> pd.DataFrame:
        """Return a cell's recorded runs by seed, as :func:`.records.runs_of` does.

        Args:
            cell: its name.
            column: ``tuned`` or ``rate 1``; the second case's cells are the same in both.
        """
        return runs_of(self._full(cell, column))

    def gap(self, first: str, second: str, metric: str, column: str) -> pd.Series:
        """Return one cell's metric minus another's, in points, for each seed that both have."""
        return 100 * (self.runs(first, column)[metric] - self.runs(second, column)[metric]).dropna()

    def settings(self, cell: str, column: str) -> dict[str, Any]:
        """Return a cell's configuration as one flat mapping, with names such as ``settings.distill_set``."""
        full = self._full(cell, column)
        return dict(leaves(deaf.settings_of(cell) if self.name == "deaf" else image_config(full).as_dict()))

    def differing(self, first: str, second: str, column: str) -> set[str]:
        """Return the names of the settings in which two cells differ."""
        return set(differing(self.settings(first, column), self.settings(second, column)))

    def pilot(self, first: str, second: str, metric: str, column: str) -> float:
        """Return the standard deviation, but not the mean, of the differences over the pilot's seeds, in points."""
        return float(self.gap(first, second, metric, column).loc[: PILOT - 1].std())

    def _full(self, cell: str, column: str) -> str:
        if cell not in self.cells + self.hidden:
            raise ConfigError(unknown_name("cell", cell, self.cells))
        if self.name == "deaf":
            return f"deaf/{cell}"
        return f"images/{cell}{AT_RATE_1 * (column == RATE_1)}"


def case(name: str) -> Case:
    """Return the case with this name, or raise an error."""
    if name not in CASES:
        raise AsyncFLError(unknown_name("case", name, CASES))
    return CASES[name]()


def pilots(name: str) -> pd.DataFrame:
    """Return the pilot's standard deviations for the comparison in a case's claim, in points, by metric and column."""
    of = case(name)
    return pd.DataFrame(
        {column: [of.pilot(of.first, of.second, metric, column) for metric in NUMBERS] for column in COLUMNS}, NUMBERS
    )


def _printed(artefact: str, **where: str) -> float:
    rows = published("FedEcho", artefact)
    for name, value in where.items():
        rows = rows[rows[name] == value]
    return float(rows["value"].item())


def _lead() -> Case:
    ours = _printed("Table 2", delay="large", alpha="0.1", distill_set="STL10")
    theirs = _printed("Table 2", delay="large", alpha="0.1", method="FedBuff")
    others = ("fedecho-synthetic", "fedbuff", "ca2fl", "fedac", "fadas", "noise", "no-distillation")
    return Case(
        "lead",
        f"FedEcho, Table 2, large delay, α = 0.1: {ours}% for FedEcho with natural images and {theirs}% for FedBuff, "
        f"a difference of {ours - theirs:+.1f} points.",
        "fedecho-natural",
        "above",
        "fedbuff",
        ours - theirs,
        cells=("fedecho-natural", *others),
        acting="no-distillation",
        commitment="413826158a590b206b97cd4218deed6e159dc25e9f550ee2b1ca30e34fd0b4bd",
    )


def _deaf() -> Case:
    return Case(
        "deaf",
        "A letter to the editor (made up; its control once stood in lesson 08): we made FedEcho's server deaf to "
        "stragglers, and over ten seeds it lost nothing. So what the server remembers of stragglers is worth nothing.",
        "fedecho",
        "level",
        "deaf",
        0.0,
        cells=("fedecho", "deaf"),
        acting="deaf-again",
        commitment="7b4496310e8a27ae992a6035a03d42abc8338e1e92be24b19c7506a79cbafef8",
        hidden=("deaf-again",),
    )


def _weight() -> Case:
    told = "with the dynamic weight", "with a fixed weight of 0.5"
    commitment = "0691a4aade1648703b65e59ebd452912992aaec11dc27390a3f301f92764e919"
    return _of_table_7("weight", "fixed-0.5", "0.5 fixed", told, commitment)


def _targets() -> Case:
    told = "with soft targets under the dynamic weight", "with hard labels only"
    commitment = "25bf573b5e8eeb8ccc5fcda82181edefe7538800a0b599bad7e28563f2281647"
    return _of_table_7("targets", "ce-only", "0 (CE only)", told, commitment)


def _of_table_7(name: str, second: str, printed: str, told: tuple[str, str], commitment: str) -> Case:
    ours, theirs = (_printed("Table 7", mix_alpha=weight) for weight in ("dynamic 0.2-0.8", printed))
    return Case(
        name,
        f"FedEcho, Table 7, three seeds: {ours}% {told[0]} and {theirs}% {told[1]}, "
        f"a difference of {ours - theirs:+.2f} points.",
        "dynamic",
        "above",
        second,
        ours - theirs,
        cells=("dynamic", "fixed-0.5", "ce-only", "kl-only"),
        acting=second,
        commitment=commitment,
    )


CASES: dict[str, Callable[[], Case]] = {"lead": _lead, "deaf": _deaf, "weight": _weight, "targets": _targets}
