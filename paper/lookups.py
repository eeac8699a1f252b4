"""What the manuscript looks up in its text: differences, accuracies, settings and numbers that the papers print."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asyncfl_reproduction.claims import Measured
from asyncfl_reproduction.grid.cells import ALL_PRINTED, TWIN
from asyncfl_reproduction.grid.columns import RATE_1, TUNED
from asyncfl_reproduction.home import RESULTS
from asyncfl_reproduction.places import tier_file
from asyncfl_reproduction.published import hyperparameters
from asyncfl_reproduction.report.compared import first_tier
from asyncfl_reproduction.report.recorded import Recorded
from asyncfl_reproduction.statistics import Contrast, contrast
from asyncfl_reproduction.verdicts import BORROWED, HOLDS, LEVEL, NOT_RUN, REVERSED
from asyncfl_reproduction.written import in_points

HERE = Path(__file__).parent
LOOKUP = re.compile(r'#(\w+)\(\s*"([^"]+)"(?:,\s*"([^"]+)")?(?:,\s*column:\s*"([^"]+)")?\s*\)')
"""A look-up in the text: its kind, one or two names, and a column."""


class Column(NamedTuple):
    """A recorded column: its name for readers, and the endings of the names of the left and the right cell."""

    name: str
    left: str
    right: str


COLUMNS = {
    "tuned": Column(TUNED, "", ""),
    "fixed": Column(RATE_1, TWIN, TWIN),
    "printed": Column("printed", ALL_PRINTED, ALL_PRINTED),
}
"""How the text calls a column -> the column."""
EQUAL_TIME = "equal time"
"""Column of the tuned difference when the first of the two runs ends."""
ON_REAL_DATA = " on real data"
"""Ends a column's name where the cells are those of the tier ``real``."""
SEARCHED = "fair"
"""The tier of the main comparisons."""
DASH = "–"


@cache
def recorded(tier: str) -> Recorded:
    """Return what the repository keeps of a tier."""
    return Recorded(tier_file(tier), HERE / "nothing", RESULTS)


@cache
def tier_of(*cells: str, column: str = "tuned") -> str:
    """Return the tier that has all of these cells: ``fair`` where each was searched where it is used, else its own."""
    if column.endswith(ON_REAL_DATA):
        return "real"
    paper = cells[0].split("/")[0]
    own = paper if paper in ("league", "real") else "laptop"
    tier = first_tier(cells, (SEARCHED, own, "paper"), RESULTS) or own
    return "exact" if tier == "paper" else tier


def measured(*cells: str, column: str = "tuned") -> Measured:
    """Return the measurements of the tier that has all of these cells."""
    return recorded(tier_of(*cells, column=column)).measured


def in_column(column: str, left: str, right: str = "") -> tuple[str, str]:
    """Return the names that two cells have in a column."""
    found = COLUMNS.get(column.removesuffix(ON_REAL_DATA), COLUMNS["tuned"])
    return left + found.left, right + found.right


TOLD: dict[tuple[str, str, str], Contrast | None] = {}
"""Every difference that the text or a table tells: its cells and its column -> the difference."""


def compared(left: str, right: str, column: str = "tuned") -> Contrast | None:
    """Return the difference of two cells in a column; None where one was not run."""
    if (left, right, column) not in TOLD:
        cells = in_column(column, left, right)
        found = measured(*cells, column=column)
        gap = found.gap_in_time(*cells) if column == EQUAL_TIME else found.gap(*cells)
        TOLD[left, right, column] = None if gap is None else contrast(gap.to_numpy(), "")
    return TOLD[left, right, column]


def verdict(found: Contrast | None) -> str:
    """Return the verdict that the left cell is above the right one, in the words of the tables."""
    return NOT_RUN if found is None else word(found.verdict, found.low, found.high)


def word(name: str, low: float, high: float) -> str:
    """Return a verdict in four words, of which ``equivalent`` tells the sign where the interval is certain of it."""
    if name == LEVEL:
        return "less than a point above" if low > 0 else "less than a point below" if high < 0 else "equivalent"
    return {HOLDS: "above", REVERSED: "below"}.get(name, name if name in (NOT_RUN, BORROWED) else "open")


def said(found: Contrast | None) -> str:
    """Return the verdict as the text says it, before the name of the right cell's method."""
    name = verdict(found)
    return {"equivalent": "equivalent to", "open": "not distinguishable from", NOT_RUN: "not compared with"}.get(
        name, name
    )


def shown(found: Contrast | None) -> str:
    """Return a difference in points with its interval, or a dash where it was not run."""
    return DASH if found is None else in_points(found)


def number(value: float) -> str:
    """Return a number of a configuration or of a paper's table as text, such as ``0.3`` or ``1,000``."""
    return f"{value:,}" if isinstance(value, int) or value >= 1000 else f"{value:g}".replace("e-0", "e-")


def setting(cell: str, name: str, column: str) -> str:
    """Return a setting of a cell's configuration, such as ``settings.clip``."""
    (cell, _) = in_column(column, cell)
    value: Any = recorded(tier_of(cell, column=column)).cells[cell].config.as_dict()
    for part in name.split("."):
        value = value[part]
    return number(value)


def accuracy(cell: str, _: str, column: str) -> str:
    """Return a cell's mean accuracy in per cent."""
    (cell, _) = in_column(column, cell)
    return f"{100 * measured(cell, column=column).by_seed(cell).mean():.1f}"


def cost(left: str, right: str, column: str) -> str:
    """Return the processor time of a cell's runs as a multiple of another's."""
    results = recorded(tier_of(left, right, column=column)).results
    mean = [np.mean([run.timing["cpu_seconds"] for run in results[cell]]) for cell in (left, right)]
    return f"{mean[0] / mean[1]:.1f}"


def printed(paper: str, name: str, _: str) -> str:
    """Return a hyperparameter that a paper prints, by method and name, such as ``FedBuff global_lr``, for CIFAR-10."""
    method, name = name.split()
    table = hyperparameters(paper)
    chosen = table[(table["method"] == method) & (table["name"] == name) & table["dataset"].str.contains("CIFAR-10")]
    return number(float(chosen["value"].iloc[0]))


def difference(left: str, right: str, column: str) -> str:
    """Return a difference in points with its interval."""
    found = compared(left, right, column)
    if found is None:
        raise LookupError
    return in_points(found)


LOOKUPS = {
    "d": difference,
    "says": lambda left, right, column: said(compared(left, right, column)),
    "accuracy": accuracy,
    "setting": setting,
    "cost": cost,
    "printed": printed,
}
"""Functions of the text that look up numbers -> what they show for two names and a column."""


def asked_for(text: str) -> dict[str, str]:
    """Return what the text looks up.

    Raises:
        SystemExit: if something that the text tells is not recorded.
    """
    found = {}
    for kind, left, right, column in LOOKUP.findall(text):
        if kind in LOOKUPS:
            column = column or "tuned"
            try:
                found[" | ".join((kind, left, right, column))] = LOOKUPS[kind](left, right, column)
            except (LookupError, AttributeError):
                raise SystemExit(f"paper: {left} {right} is not recorded in column {column!r}") from None
    return found
