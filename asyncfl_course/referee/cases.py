"""Four claims to referee, each with the cells that a plan may use and the digest of a sealed envelope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from asyncfl_course.records import EQUAL_POINTS, published
from asyncfl_course.referee import deaf
from asyncfl_course.referee.lines import in_lines
from asyncfl_course.referee.records import AT_RATE_1, COLUMNS, NUMBERS, RATE_1, image_config, runs_of
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, unknown_name

PILOT = 5
"""Number of seeds, from 0 on, for which a referee may see the differences' deviation, and nothing else."""
PART = 5
"""Divisor of a claimed lead: a lead that is this many times smaller counts as a different claim."""


@dataclass(frozen=True)
class Case:
    """One printed claim to referee.

    Attributes:
        name: ``lead``, ``deaf``, ``weight`` or ``targets``.
        says: the claim in words.
        first, predicate, second: the claim as a relation between two cells.
        claimed: the difference that it claims, in points.
        denied: a difference for which the claim is false, in points; a plan should rarely confirm the claim there.
        cells: short name -> full name, for the cells that a plan may name.
        hidden: the same for the cells that only the envelope names.
        acting: a control that is known to act, with which a plan's proofs are tested.
        commitment: SHA-256 of the envelope.
    """

    name: str
    says: str
    first: str
    predicate: str
    second: str
    claimed: float
    denied: float
    cells: dict[str, str]
    hidden: dict[str, str]
    acting: str
    commitment: str

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
            cell: its short name.
            column: ``tuned`` or ``rate 1``; the second case's cells are the same in both.

        Raises:
            ConfigError: the case has no cell of this name.
        """
        return runs_of(self._full(cell, column))

    def gap(self, first: str, second: str, metric: str, column: str) -> pd.Series:
        """Return one cell's metric minus another's, in points, for each seed that both have."""
        return 100 * (self.runs(first, column)[metric] - self.runs(second, column)[metric]).dropna()

    def settings(self, cell: str, column: str) -> dict[str, Any]:
        """Return a cell's configuration as one flat mapping, with names such as ``settings.distill_set``."""
        full = self._full(cell, column)
        whole = deaf.settings_of(cell) if self.name == "deaf" else image_config(full).as_dict()
        flat = {name: value for name, value in whole.items() if not isinstance(value, dict)}
        groups = {group: value for group, value in whole.items() if isinstance(value, dict)}
        return flat | {f"{group}.{name}": value for group, own in groups.items() for name, value in own.items()}

    def differing(self, first: str, second: str, column: str) -> set[str]:
        """Return the names of the settings in which two cells differ."""
        one, two = self.settings(first, column), self.settings(second, column)
        return {name for name in one.keys() | two.keys() if one.get(name) != two.get(name)}

    def pilot(self, first: str, second: str, metric: str, column: str) -> float:
        """Return the standard deviation, but not the mean, of the differences over the pilot's seeds, in points."""
        return float(self.gap(first, second, metric, column).loc[: PILOT - 1].std())

    def _full(self, cell: str, column: str) -> str:
        if cell not in self.cells | self.hidden:
            raise ConfigError(unknown_name("cell", cell, self.cells))
        full = (self.cells | self.hidden)[cell]
        return full + AT_RATE_1 * (column == RATE_1 and self.name != "deaf")


def case(name: str) -> Case:
    """Return the case with this name.

    Args:
        name: ``lead``, ``deaf``, ``weight`` or ``targets``.

    Raises:
        AsyncFLError: there is no such case.
    """
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


def _on_images(names: str) -> dict[str, str]:
    return {name: f"images/{name}" for name in names.split()}


def _lead() -> Case:
    ours = _printed("Table 2", delay="large", alpha="0.1", distill_set="STL10")
    theirs = _printed("Table 2", delay="large", alpha="0.1", method="FedBuff")
    return Case(
        "lead",
        f"FedEcho, Table 2, large delay, α = 0.1: {ours}% for FedEcho with natural images and {theirs}% for FedBuff, "
        f"a difference of {ours - theirs:+.1f} points.",
        "fedecho-natural",
        "above",
        "fedbuff",
        ours - theirs,
        (ours - theirs) / PART,
        _on_images("fedecho-natural fedecho-synthetic fedbuff ca2fl fedac fadas noise no-distillation"),
        {},
        "no-distillation",
        "413826158a590b206b97cd4218deed6e159dc25e9f550ee2b1ca30e34fd0b4bd",
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
        2 * 100 * EQUAL_POINTS,
        {name: f"deaf/{name}" for name in ("fedecho", "deaf")},
        {"deaf-again": "deaf/deaf-again"},
        "deaf-again",
        "7b4496310e8a27ae992a6035a03d42abc8338e1e92be24b19c7506a79cbafef8",
    )


def _weight() -> Case:
    ours, theirs = (_printed("Table 7", mix_alpha=name) for name in ("dynamic 0.2-0.8", "0.5 fixed"))
    return Case(
        "weight",
        f"FedEcho, Table 7, three seeds: {ours}% with the dynamic weight and {theirs}% with a fixed weight of 0.5, "
        f"a difference of {ours - theirs:+.2f} points.",
        "dynamic",
        "above",
        "fixed-0.5",
        ours - theirs,
        (ours - theirs) / PART,
        _on_images("dynamic fixed-0.5 ce-only kl-only"),
        {},
        "fixed-0.5",
        "0691a4aade1648703b65e59ebd452912992aaec11dc27390a3f301f92764e919",
    )


def _targets() -> Case:
    ours, theirs = (_printed("Table 7", mix_alpha=name) for name in ("dynamic 0.2-0.8", "0 (CE only)"))
    return replace(
        _weight(),
        name="targets",
        says=f"FedEcho, Table 7, three seeds: {ours}% with soft targets under the dynamic weight and {theirs}% with "
        f"hard labels only, a difference of {ours - theirs:+.2f} points.",
        second="ce-only",
        claimed=ours - theirs,
        denied=(ours - theirs) / PART,
        acting="ce-only",
        commitment="25bf573b5e8eeb8ccc5fcda82181edefe7538800a0b599bad7e28563f2281647",
    )


CASES: dict[str, Callable[[], Case]] = {"lead": _lead, "deaf": _deaf, "weight": _weight, "targets": _targets}
