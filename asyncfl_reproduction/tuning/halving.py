"""Search by successive halving, which runs all combinations with one seed and the best ones with more seeds.

After the first seed, every grid grows by one value of one option: beyond the edge on which the best value lies, or else
next to the best value. It grows for every method, so that all have the same number of tries. The outcome of every run
is saved as soon as it is known, in one table for each paper.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from math import isnan, sqrt
from pathlib import Path
from statistics import fmean

from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.tuning.choices import OTHERS, chosen_for, in_words
from asyncfl_reproduction.tuning.grids import Grid, Search, points_of
from asyncfl_reproduction.tuning.outcomes import METRIC, keep, of_cells, rows_of
from asyncfl_reproduction.tuning.search import Known, Point, run_missing, still_known, value_beyond


def carry_out(
    tier: str, search: Search, folder: Path | None = None, say: Callable[[str], None] = print, beyond: int = 0
) -> Point:
    """Run a search, or the rest of an interrupted one, and return its best combination.

    At the end, ``beyond`` values are tried beyond each edge on which the best combination lies.
    """
    path = of_cells(tier, search.name, folder)
    own = still_known(rows_of(path, search.name), search)
    known, used = known_of(path, search), dict.fromkeys(own)

    def save() -> None:
        keep(path, search.name, [known[key] for key in used if key in known])

    def run(points: Sequence[Point], seeds: Sequence[int]) -> None:
        wanted = [(point, seed) for seed in seeds for point in points]
        used.update(dict.fromkeys((json.dumps(point), seed) for point, seed in wanted))
        run_missing(search, wanted, known, save)

    def ranked(points: Iterable[Point]) -> list[Point]:
        """Return combinations by their mean over the seeds so far, the best first and diverged ones last."""
        means = [(fmean(known[json.dumps(point), seed][METRIC] for seed in seeds), point) for point in points]
        return [point for _, point in sorted(means, key=lambda one: 1.0 if isnan(one[0]) else -one[0])]

    seeds, points = list(search.seeds), points_of(search.grid)
    run(points, seeds)
    grid = grown(search, ranked(points))
    points = points_of(grid)
    run(points, seeds)
    tries = len(points)
    for stage in search.stages:
        points = ranked(points)[: stage.keep]
        run(points, stage.seeds)
        seeds += stage.seeds
    points += _further(search, grid, ranked(points)[0], beyond)
    run(points, seeds)
    save()
    best = ranked(points)[0]
    mean = fmean(known[json.dumps(best), seed][METRIC] for seed in seeds)
    say(f"{search.name}: {tries} combinations, best {in_words(best)}: {100 * mean:.1f}%")
    return best


def left_of(cell: Cell, folder: Path | None = None, beyond: int = 0) -> Cell | None:
    """Return a cell with the runs that its search still needs, to estimate their cost; None if it needs none.

    An ended search needs runs again if values ``beyond`` its edges are to be tried.
    """
    search = cell.search
    if search is None or not beyond and chosen_for(cell.tier, cell.name, cell.column, folder) is not None:
        return None
    known = known_of(of_cells(cell.tier, cell.name, folder), search)
    points = points_of(search.grid)
    runs = len(points) + max(len(points) // len(values) for values in search.grid.values() if len(values) > 1)
    runs += sum((stage.keep + beyond) * len(stage.seeds) for stage in search.stages)
    config = search.first()
    return replace(cell, name=f"search/{cell.name}", config=config, seeds=tuple(range(max(runs - len(known), 1))))


def known_of(path: Path, search: Search) -> Known:
    """Return the outcomes that a search need not run again: its own, and the cell's in other columns."""
    base = search.name.partition("@")[0]
    rows = [rows_of(path, name) for name in (base, *(base + ending for ending in OTHERS.values()))]
    return still_known(chain(*rows), search)


def edges(search: Search, grid: Grid, best: Point) -> list[str]:
    """Return the options whose best value is on an edge of the grid, with a valid value beyond it."""
    return [option for option, values in grid.items() if value_beyond(search, option, values, best) is not None]


def _further(search: Search, grid: Grid, best: Point, steps: int) -> list[Point]:
    """Return the combinations beyond each edge on which the best one lies, at most ``steps`` for an option."""
    points = []
    for option in edges(search, grid, best):
        values, point = grid[option], best
        for _ in range(steps):
            new = value_beyond(search, option, values, point)
            if new is None:
                break
            values, point = sorted([*values, new]), {**point, option: new}
            points.append(point)
    return points


def grown(search: Search, ranked: Sequence[Point]) -> Grid:
    """Return the grid with one more value, beyond an edge if the best value lies there, else next to the best value.

    In the second case the new value is a client learning rate between the best and the better of its neighbours, at the
    geometric mean of the two.
    """
    best = ranked[0]
    option = next(iter(edges(search, search.grid, best)), None)
    if option is not None:
        new = value_beyond(search, option, search.grid[option], best)
    else:
        option, rates = "client_lr", search.grid["client_lr"]
        index = rates.index(best[option])
        beside = [{**best, option: rate} for rate in rates[max(index - 1, 0) : index + 2] if rate != best[option]]
        neighbour = next(point for point in ranked if point in beside)
        new = float(f"{sqrt(best[option] * neighbour[option]):.2g}")
    return {**search.grid, option: sorted([*search.grid[option], new])}
