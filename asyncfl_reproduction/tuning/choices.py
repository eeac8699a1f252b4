"""Settings chosen by searches; a choice is computed from the kept outcomes and stored nowhere."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

from asyncfl_reproduction.tuning.grids import Searched, nested, read_grids
from asyncfl_reproduction.tuning.outcomes import METRIC, Row, of_cells, of_studies, rows_of

OTHERS = {"printed": "@printed", "server_rate": "@server-rate"}
"""Columns whose searches can choose a tuned cell's settings, too, with the endings of their cells' names."""
Scores = dict[str, dict[int, float]]
"""Combination, as JSON -> seed -> accuracy."""


def best_in(tier: str, cell: str, column: Searched = "tuned", folder: Path | None = None) -> tuple[str, Scores] | None:
    """Return the best combination of a search, and all its scores; None if the search has not ended.

    A search has ended when as many combinations as the last stage keeps have been run with all seeds. The best of these
    has the highest mean; a combination with a run that diverged comes last.
    """
    file = getattr(read_grids(), column)
    scores: Scores = {}
    for row in rows_of(of_cells(tier, cell, folder), cell):
        scores.setdefault(row["point"], {})[row["seed"]] = row[METRIC]
    seeds = len(file.seeds) + sum(len(stage.seeds) for stage in file.stages)
    whole = {point: _mean(values.values()) for point, values in scores.items() if len(values) == seeds}
    if len(whole) < (file.stages[-1].keep if file.stages else file.tries):
        return None
    return max(whole, key=whole.__getitem__), scores


def chosen_for(tier: str, cell: str, column: Searched = "tuned", folder: Path | None = None) -> dict[str, Any] | None:
    """Return the settings that a cell takes, or None if its search has not ended.

    A tuned cell takes the best combination of all recorded searches of its place, also of those in which something was
    fixed, because these lie in the same space and tried more client rates. Another search's best combination is taken
    if it is better than every combination of the cell's own search on the seeds that both were run with.
    """
    best = best_in(tier, cell, column, folder)
    for other, ending in OTHERS.items() if best is not None and column == "tuned" else ():
        rival = best_in(tier, cell + ending, other, folder)
        if rival is not None:
            seeds = best[1][best[0]].keys() & rival[1][rival[0]].keys()
            if _best_on(seeds, rival[1]) > _best_on(seeds, best[1]):
                best = rival
    return None if best is None else json.loads(best[0])


def _best_on(seeds: Collection[int], scores: Scores) -> float:
    """Return the highest mean accuracy of a combination on these seeds."""
    return max((_mean(of[seed] for seed in seeds) for of in scores.values() if of.keys() >= seeds), default=-1.0)


def _mean(values: Iterable[float]) -> float:
    mean = fmean(values)
    return -1.0 if isnan(mean) else mean


def tried(search: str, folder: Path | None = None) -> list[Row]:
    """Return the outcomes of a study's search, or none if it was not made; ``folder`` is the package's own if None."""
    return rows_of(of_studies(folder), search)


def best_of(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the combination with the highest mean accuracy over seeds; of equal ones, the first.

    A combination with a run that diverged is chosen only if every combination has one.
    """
    by_point: dict[str, list[float]] = {}
    for row in outcomes:
        by_point.setdefault(row["point"], []).append(row[METRIC])
    return json.loads(max(by_point, key=lambda point: _mean(by_point[point])))


def edges_of(best: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the options whose best value is the smallest or largest tried, so that a better one may lie beyond.

    Values that are not numbers have no order, and so no edge.
    """
    points = [json.loads(point) for point in dict.fromkeys(row["point"] for row in outcomes)]
    tried = {knob: {point[knob] for point in points} for knob in best}
    ends = {
        knob: (min(values), max(values))
        for knob, values in tried.items()
        if len(values) > 1 and all(isinstance(value, int | float) for value in values)
    }
    return [knob.removeprefix("settings.") for knob in best if best[knob] in ends.get(knob, ())]


def chosen(search: str) -> dict[str, Any]:
    """Return the settings that a study chose for a method, in the form that a configuration takes."""
    return nested(best_of(tried(search)))


def in_words(point: Mapping[str, Any]) -> str:
    """Return a combination as text, such as ``client_lr 0.1, distill_lr 0.0001``."""
    return ", ".join(f"{knob.removeprefix('settings.')} {_shown(value)}" for knob, value in point.items())


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else "as the clients'" if value is None else str(value)
