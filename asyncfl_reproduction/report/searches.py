"""Tables of the searches for methods' settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.tuning.choices import best_in, best_of, edges_of, in_words
from asyncfl_reproduction.tuning.grids import parts_of, study_of
from asyncfl_reproduction.tuning.halving import edges
from asyncfl_reproduction.tuning.outcomes import METRIC, kept_in, of_cells, of_studies, rows_of

COLUMNS = [
    *("study", "method", "column", "combinations", "runs", "best", "on an edge"),
    *("accuracy %", "worst %", "CPU minutes"),
]


def searches(folder: Path | None = None) -> pd.DataFrame:
    """Return one row per recorded search of a study, with its size, its best combination and its scores.

    Returns:
        study, method, column, combinations and runs (how many were tried), best (settings of the
        best combination), on an edge (options whose best value is the smallest or largest tried), accuracy % (of the
        best combination: mean over seeds of the last five tests), worst % (of the worst combination; "diverged" if any
        run diverged), CPU minutes.
    """
    rows = []
    for search, tried in sorted(kept_in(of_studies(folder)).items()):
        best = best_of(tried)
        rows.append([*parts_of(search), *_numbers(pd.DataFrame(tried), best, edges_of(best, tried))])
    return pd.DataFrame(rows, columns=COLUMNS)


def own_searches(cells: Iterable[Cell], folder: Path | None = None) -> pd.DataFrame:
    """Return one row per finished search of a single cell, in the form of :func:`searches`."""
    rows = []
    for cell in cells:
        found = best_in(cell.tier, cell.name, cell.column, folder) if cell.search is not None else None
        if found is not None:
            best = json.loads(found[0])
            table = pd.DataFrame(rows_of(of_cells(cell.tier, cell.name, folder), cell.name))
            method = cell.name.rpartition("/")[2].partition("@")[0]
            tried = [json.loads(point) for point in table["point"].unique()]
            grid = {option: _in_order({point[option] for point in tried}) for option in best}
            on_edge = edges(cell.search, grid, best)
            rows.append([study_of(cell.name), method, cell.column, *_numbers(table, best, on_edge)])
    return pd.DataFrame(rows, columns=COLUMNS)


def _in_order(values: set[Any]) -> list[Any]:
    return sorted(values, key=lambda value: value if isinstance(value, int | float) else 0)


def _numbers(table: pd.DataFrame, best: Mapping[str, Any], on_edge: Iterable[str]) -> list[Any]:
    """Return a search's values for :data:`COLUMNS`, from ``combinations`` to ``CPU minutes``."""
    means = 100 * table.groupby("point")[METRIC].agg(lambda accuracies: accuracies.mean(skipna=False))
    return [
        len(means),
        len(table),
        in_words(best),
        ", ".join(option.removeprefix("settings.") for option in on_edge),
        round(means[json.dumps(best)], 1),
        "diverged" if means.isna().any() else round(means.min(), 1),
        round(table["cpu_seconds"].sum() / 60, 1),
    ]
