"""Settings chosen by cells' own searches; a choice is computed from the kept outcomes and stored nowhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

from asyncfl_reproduction.tuning.grids import ColumnOfGrids, Searched, read_grids
from asyncfl_reproduction.tuning.outcomes import METRIC, of_cells, rows_of


def choice_of(rows: Iterable[Mapping[str, Any]], file: ColumnOfGrids) -> dict[str, Any] | None:
    """Return the best combination from a search's rows, or None if the search has not ended.

    A search has ended when as many combinations as the last stage keeps have been run with all seeds. The best of these
    has the highest mean.
    """
    seeds = len(file.seeds) + sum(len(stage.seeds) for stage in file.stages)
    accuracies: dict[str, list[float]] = {}
    for row in rows:
        accuracies.setdefault(row["point"], []).append(row[METRIC])
    means = {point: fmean(values) for point, values in accuracies.items() if len(values) == seeds}
    if len(means) < (file.stages[-1].keep if file.stages else file.tries):
        return None
    return json.loads(max(means, key=lambda point: -1.0 if isnan(means[point]) else means[point]))


def chosen_for(tier: str, cell: str, column: Searched = "tuned", folder: Path | None = None) -> dict[str, Any] | None:
    """Return the best combination of a cell's own search in a column, or None if the search has not ended."""
    rows = rows_of(of_cells(tier, cell, folder), cell)
    return choice_of(rows, getattr(read_grids(), column)) if rows else None
