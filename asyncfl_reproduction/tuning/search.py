"""Search of a grid, which runs all combinations and seeds in lockstep and adds values while an edge is best.

Outcomes of unfinished searches are kept apart from those of finished ones, so that nothing takes its choice from half a
search, and a search that was stopped can continue. Runs that another search of the study has made with exactly the same
configuration, such as those at the fixed server rate among the tuned ones, are not repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from math import nan
from pathlib import Path
from typing import Any

from asyncfl_lite.base.errors import AsyncFLError, ConfigError, DivergedError
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.lockstep import finish_together
from asyncfl_lite.runs.results import Result
from asyncfl_lite.runs.run import Run
from asyncfl_lite.runs.store import meaning, revised
from asyncfl_reproduction.tuning.choices import best_of, in_words
from asyncfl_reproduction.tuning.grids import Grid, Search, parts_of, points_of
from asyncfl_reproduction.tuning.outcomes import FIELDS, METRIC, UNFINISHED, Row, keep, kept_in, of_studies

Point = dict[str, Any]
"""A combination: option -> value."""
Known = dict[tuple[str, int], Row]
"""A combination, as JSON, and a seed -> the outcome of its run."""
EXTENSIONS = 2
"""Largest number of times that a grid grows if the best lies on its edge."""
AT_ONCE = 32
"""Runs in lockstep; further runs of a round wait, so that memory stays small and a stop loses little."""


def tune(
    search: Search,
    folder: Path | None = None,
    say: Callable[[str], None] = print,
    extensions: int | None = None,
) -> Point:
    """Run the missing part of a search, and return the best combination.

    The grid may grow ``extensions`` times, or :data:`EXTENSIONS` times if None.
    """
    extensions = EXTENSIONS if extensions is None else extensions
    path, so_far = of_studies(folder), of_studies(folder, UNFINISHED)
    known, grid, study = Known(), search.grid, parts_of(search.name)[0]
    of_study = [rows for name, rows in sorted(kept_in(path).items()) if parts_of(name)[0] == study]
    own = [kept_in(file).get(search.name, []) for file in (path, so_far)]
    for rows in (*of_study, *own):
        known |= still_known(rows, search)
    for round_ in range(extensions + 1):
        wanted = [(point, seed) for point in points_of(grid) for seed in search.seeds]
        run_missing(search, wanted, known, lambda: keep(so_far, search.name, list(known.values())))
        rows = [known[json.dumps(point), seed] for point, seed in wanted]
        best = best_of(rows)
        tried = len({row["point"] for row in rows})
        mean = sum(row[METRIC] for row in rows if json.loads(row["point"]) == best) / len(search.seeds)
        say(f"{search.name}: {tried} combinations, best {in_words(best)}: {100 * mean:.1f}%")
        wider = _extended(search, grid, best) if round_ < extensions else grid
        if wider == grid:
            break
        grid = wider
    keep(path, search.name, rows)  # without outcomes that belong only to an earlier grid
    keep(so_far, search.name, [])
    return best


def still_known(rows: Iterable[Row], search: Search) -> Known:
    """Return the outcomes whose configuration and meaning are still valid."""
    known = Known()
    for row in rows:
        try:
            config = search.config(json.loads(row["point"]), row["seed"])
        except AsyncFLError:
            continue
        if config.hash == row["config_hash"] and not revised(json.loads(row["meaning"]), meaning(config)):
            known[row["point"], row["seed"]] = row
    return known


def run_missing(search: Search, wanted: Iterable[tuple[Point, int]], known: Known, save: Callable[[], None]) -> None:
    """Run the combinations and seeds that are not known yet, in lockstep, and add their outcomes to the known ones.

    ``save`` is called whenever some outcomes were added.
    """
    missing = [(point, seed) for point, seed in wanted if (json.dumps(point), seed) not in known]
    for begin in range(0, len(missing), AT_ONCE):
        part = missing[begin : begin + AT_ONCE]
        configs = [search.config(*one) for one in part]
        tried = zip(part, configs, strict=True)
        for results in results_of(configs):
            for result, ((point, seed), config) in zip(results, tried, strict=False):
                known[json.dumps(point), seed] = row_of(point, seed, config, result)
            save()


def results_of(configs: Sequence[Config]) -> Iterator[list[Result | None]]:
    """Run configurations and yield results as they end: small models all at once, large ones one by one.

    If a run diverges, the runs beside it end, too, and all are run again, each alone. None stands for a run that
    diverged.
    """
    first = Run(configs[0])
    runs = chain([first], map(Run, configs[1:]))
    if first.trainer.cohort:
        try:
            yield list(finish_together(list(runs)))  # leaves no runs for the loop below
        except DivergedError:
            runs = map(Run, configs)
    for run in runs:
        try:
            yield list(finish_together([run]))
        except DivergedError:
            yield [None]


def row_of(point: Point, seed: int, config: Config, result: Result | None) -> Row:
    """Return an outcome as a row; a run that diverged has no accuracy and no time."""
    numbers = [result.summary[METRIC], result.summary["final_accuracy"]] if result else [nan, nan]
    seconds = result.timing["cpu_seconds"] if result else 0.0
    values = [json.dumps(point), seed, *(float(f"{number:.6g}") for number in numbers)]
    values += [config.hash, json.dumps(meaning(config)), round(seconds, 2)]
    return dict(zip(FIELDS[1:], values, strict=True))


def value_beyond(search: Search, option: str, values: Sequence[Any], best: Point) -> float | None:
    """Return a value that extends a grid beyond its best edge, by the ratio of the edge to its neighbour.

    The result is None if the best value is not on an edge, or if nothing lies beyond the edge: the value is a word or
    0, or the option's bounds exclude the next one.
    """
    value = best[option]
    if len(values) < 2 or value not in (values[0], values[-1]) or not isinstance(value, int | float) or not value:
        return None
    neighbour = values[1] if value == values[0] else values[-2]
    if not neighbour:
        return None
    new = float(f"{value * value / neighbour:.2g}")
    if new == value:  # such as a decay of 1 beside 0.98
        return None
    try:
        search.config({**best, option: new}, search.seeds[0])
    except ConfigError:
        return None
    return new


def _extended(search: Search, grid: Grid, best: Point) -> Grid:
    wider = {}
    for option, values in grid.items():
        new = value_beyond(search, option, values, best)
        more = [] if new is None else [new]
        wider[option] = [*more, *values] if best[option] == values[0] else [*values, *more]
    return wider
