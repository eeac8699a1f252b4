"""What the searches of cells found: one table for each study, one row for each run, and the choice that follows."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from asyncfl_reproduction import home
from asyncfl_reproduction.tuning.grids import ColumnOfGrids, read_grids, study_of
from asyncfl_reproduction.tuning.tuned import FIELDS as OUTCOME
from asyncfl_reproduction.tuning.tuned import METRIC

FIELDS = ("cell", *OUTCOME)
"""Columns of a study's table."""


def file_of(tier: str, study: str, folder: Path | None = None) -> Path:
    """Return where a study's runs are kept."""
    return (home.TUNING if folder is None else folder) / tier / f"{study}.csv"


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return a study's runs that are kept; none where there is no file yet."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def choice_of(rows: Iterable[Mapping[str, str]], file: ColumnOfGrids) -> dict[str, Any] | None:
    """Return the best combination of a search from its rows; None if the search is not at its end.

    At its end as many combinations as the last stage keeps have been run with all seeds; the best has the highest mean.
    """
    seeds = len(file.seeds) + sum(len(stage.seeds) for stage in file.stages)
    accuracies: dict[str, list[float]] = {}
    for row in rows:
        accuracies.setdefault(row["point"], []).append(float(row[METRIC]))
    means = {point: fmean(values) for point, values in accuracies.items() if len(values) == seeds}
    if len(means) < (file.stages[-1].keep if file.stages else file.tries):
        return None
    return json.loads(max(means, key=lambda point: -1.0 if isnan(means[point]) else means[point]))


def chosen_for(
    tier: str, cell: str, column: Literal["tuned", "printed"] = "tuned", folder: Path | None = None
) -> dict[str, Any] | None:
    """Return the best combination of a cell's own search in a column; None if the search is not at its end."""
    path = file_of(tier, study_of(cell), folder)
    if not path.exists():
        return None
    return choice_of(_by_cell(path, path.stat().st_mtime_ns).get(cell, []), getattr(read_grids(), column))


@lru_cache(maxsize=256)
def _by_cell(path: Path, _: int) -> dict[str, list[dict[str, str]]]:
    by_cell: dict[str, list[dict[str, str]]] = {}
    for row in rows_of(path):
        by_cell.setdefault(row["cell"], []).append(row)
    return by_cell
