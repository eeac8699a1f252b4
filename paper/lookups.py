"""What the manuscript looks up in its text: differences, accuracies, settings and numbers that the papers print."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from asyncfl_reproduction.claims import Measured
from asyncfl_reproduction.claims.measured import INSTEAD
from asyncfl_reproduction.grid.columns import ALL, PLAIN, RATE_1, TUNED
from asyncfl_reproduction.home import RESULTS, tier_file
from asyncfl_reproduction.number_texts import in_points
from asyncfl_reproduction.published import hyperparameters
from asyncfl_reproduction.report.recorded import Recorded
from asyncfl_reproduction.statistics import Contrast, contrast
from asyncfl_reproduction.verdict_words import ABOVE, BELOW, EQUIVALENT, LITTLE, OPEN

HERE = Path(__file__).parent
LOOKUP = re.compile(r'#(\w+)\(\s*"([^"]+)"(?:,\s*"([^"]+)")?(?:,\s*column:\s*"([^"]+)")?\s*\)')
"""A look-up in the text: its kind, one or two names, and a column."""


COLUMNS = {"tuned": TUNED, "server_rate": RATE_1, "printed": PLAIN[RATE_1], "all_printed": ALL}
"""Column in code -> its name for readers."""
EQUAL_TIME = "equal time"
"""Column of the tuned difference when the first of the two runs ends."""
ON_REAL_DATA = " on real data"
"""Ends a column's name where the cells are those of the tier ``real``."""
SEARCHED = "laptop"
"""The tier of the main comparisons."""
DASH = "–"


@cache
def recorded(tier: str) -> Recorded:
    """Return what the repository keeps of a tier."""
    return Recorded(tier_file(tier), HERE / "nothing", RESULTS)


def tier_of(cell: str, column: str = "tuned") -> str:
    """Return the tier in which a cell is recorded."""
    paper = cell.split("/")[0]
    own = paper if paper in ("league", "real") else SEARCHED
    if column.endswith(ON_REAL_DATA):
        own = "real"
    return own if cell in recorded(own).results or paper != "kuiper" else "exact"


@cache
def measured(cell: str, column: str = "tuned") -> Measured:
    """Return the measurements of the tier in which a cell is recorded, in a column."""
    found = recorded(tier_of(cell, column)).measured
    return found if column == EQUAL_TIME else found.column(column.removesuffix(ON_REAL_DATA))


def in_column(cell: str, column: str) -> str:
    """Return the name of the cell that stands for a tuned one in a column."""
    planned, endings = recorded(tier_of(cell, column)).cells, INSTEAD[column.removesuffix(ON_REAL_DATA)]
    return next((cell + ending for ending in endings if cell + ending in planned), cell)


TOLD: dict[tuple[str, str, str], Contrast | None] = {}
"""Every difference that the text or a table tells: its cells and its column -> the difference."""


def compared(left: str, right: str, column: str = "tuned") -> Contrast | None:
    """Return the difference of two cells in a column; None where one was not run."""
    if (left, right, column) not in TOLD:
        found = measured(left, column)
        gap = found.gap_in_time(left, right) if column == EQUAL_TIME else found.gap(left, right)
        empty = gap is None or (column.startswith("all_printed") and in_column(left, column) == left)
        TOLD[left, right, column] = None if empty else contrast(gap.to_numpy(), "")
    return TOLD[left, right, column]


SAID = {EQUIVALENT: "equivalent to", OPEN: "not distinguishable from"}
SAID |= {side + LITTLE: f"less than a point {side}" for side in (ABOVE, BELOW)}
"""Where a cell lies -> how the text says it, before the name of the right cell's method."""


def said(left: str, right: str, column: str) -> str:
    """Return where the left cell lies, as the text says it."""
    found = compared(left, right, column)
    if found is None:
        raise LookupError
    return SAID.get(found.side, found.side)


def shown(found: Contrast | None) -> str:
    """Return a difference in points with its interval, or a dash where it was not run."""
    return DASH if found is None else in_points(found)


def number(value: float) -> str:
    """Return a number of a configuration or of a paper's table as text, such as ``0.3`` or ``1,000``."""
    return f"{value:,}" if isinstance(value, int) or value >= 1000 else f"{value:g}".replace("e-0", "e-")


def setting(cell: str, name: str, column: str) -> str:
    """Return a setting of a cell's configuration, such as ``settings.clip``."""
    value: Any = recorded(tier_of(cell, column)).cells[in_column(cell, column)].config.as_dict()
    for part in name.split("."):
        value = value[part]
    return number(value)


def accuracy(cell: str, _: str, column: str) -> str:
    """Return a cell's mean accuracy in per cent."""
    return f"{100 * measured(cell, column).by_seed(cell).mean():.1f}"


def cost(left: str, right: str, column: str) -> str:
    """Return the processor time of a cell's runs as a multiple of another's."""
    results = recorded(tier_of(left, column)).results
    mean = [np.mean([run.timing["cpu_seconds"] for run in results[in_column(cell, column)]]) for cell in (left, right)]
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
    "says": said,
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
