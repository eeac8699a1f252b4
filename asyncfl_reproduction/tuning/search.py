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
from asyncfl_reproduction.tuning.grids import OwnSearch
from asyncfl_reproduction.tuning.outcomes import FIELDS, METRIC, UNFINISHED, Row, keep, kept_in, of_studies
from asyncfl_reproduction.tuning.studies import Grid, Search, points_of
from asyncfl_reproduction.tuning.tuned import best_of, in_words

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
) -> dict[str, Any]:
    """Run the missing part of a search, and return the best combination.

    Args:
        search: the search.
        folder: folder of records; the package's own if None.
        say: called with a line about each round.
        extensions: number of times that the grid may grow; :data:`EXTENSIONS` if None.
    """
    extensions = EXTENSIONS if extensions is None else extensions
    path, so_far = of_studies(folder), of_studies(folder, UNFINISHED)
    known, grid = Known(), dict(search.grid)
    of_study = [rows for name, rows in sorted(kept_in(path).items()) if name.startswith(f"{search.study}/")]
    own = [kept_in(file).get(search.name, []) for file in (path, so_far)]
    for rows in (*of_study, *own):
        known |= still_known(rows, search)
    for round_ in range(extensions + 1):
        rows = _completed(search, grid, known, so_far)
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


def still_known(rows: Iterable[Row], search: Search | OwnSearch) -> Known:
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


def _completed(search: Search, grid: Grid, known: Known, so_far: Path) -> list[Row]:
    """Run a grid's missing combinations, add them to the known ones, and return all outcomes in order."""
    wanted = {(json.dumps(point), seed): (point, seed) for point in points_of(grid) for seed in search.seeds}
    missing = [(name, one) for name, one in wanted.items() if name not in known]
    for begin in range(0, len(missing), AT_ONCE):
        part = missing[begin : begin + AT_ONCE]
        configs = [search.config(*one) for _, one in part]
        tried = zip(part, configs, strict=True)
        for results in results_of(configs):
            known |= {
                name: row_of(*one, config, result)
                for result, ((name, one), config) in zip(results, tried, strict=False)
            }
            keep(so_far, search.name, list(known.values()))
    return [known[name] for name in wanted]


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


def row_of(point: dict[str, Any], seed: int, config: Config, result: Result | None) -> Row:
    """Return an outcome as a row; a run that diverged has no accuracy and no time."""
    numbers = [result.summary[METRIC], result.summary["final_accuracy"]] if result else [nan, nan]
    seconds = result.timing["cpu_seconds"] if result else 0.0
    values = [json.dumps(point), seed, *(float(f"{number:.6g}") for number in numbers)]
    values += [config.hash, json.dumps(meaning(config)), round(seconds, 2)]
    return dict(zip(FIELDS[1:], values, strict=True))


def _extended(search: Search, grid: Grid, best: dict[str, Any]) -> Grid:
    """Return the grid with one more value for each option whose best value is on an edge.

    The ratio of the new value to the edge is that of the edge to its neighbour. Values that a configuration cannot have
    are left out.
    """
    wider = {}
    for knob, values in grid.items():
        wider[knob] = list(values)
        if len(values) < 2 or best[knob] not in (values[0], values[-1]):
            continue
        first = best[knob] == values[0]
        edge, neighbour = (values[0], values[1]) if first else (values[-1], values[-2])
        new = float(f"{edge * edge / neighbour:.2g}")
        try:
            search.config({**best, knob: new}, search.seeds[0])
        except ConfigError:
            continue
        wider[knob] = [new, *values] if first else [*values, new]
    return wider
