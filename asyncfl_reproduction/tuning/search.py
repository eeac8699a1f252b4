"""Carrying out searches: all of a grid with all seeds in lockstep, the grid extended while its edge is best.

What was tried so far is kept beside the outcomes' file, which is written when the search is at its end: nothing takes
its choice from half a search, and one that was stopped goes on. What another search of the study ran in just the same
configuration, such as the server's fixed rate among the tuned ones, is not run again.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from math import nan
from pathlib import Path
from typing import Any

from asyncfl_lite.base.errors import AsyncFLError, ConfigError, DivergedError
from asyncfl_lite.base.files import write_atomically
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.lockstep import finish_together
from asyncfl_lite.runs.results import Result, meaning, revised
from asyncfl_lite.runs.run import Run
from asyncfl_reproduction.tuning.studies import Grid, Search, points_of
from asyncfl_reproduction.tuning.tuned import FIELDS, METRIC, best_of, file_of, in_words

Name = tuple[str, str]
"""A point, as JSON, and a seed."""
Row = dict[str, str]
"""One outcome."""
EXTENSIONS = 2
"""How often a grid may grow by a row where the best lies on its edge."""
AT_ONCE = 32
"""Runs in lockstep; what a round has beyond them waits, so that memory stays small and a stop loses little."""


def tune(
    search: Search,
    folder: Path | None = None,
    say: Callable[[str], None] = print,
    extensions: int | None = None,
) -> dict[str, Any]:
    """Carry out a search, or what is left of it, and return the best point.

    Args:
        search: what is tried.
        folder: of outcomes; the package's own if None.
        say: called with a line on each round.
        extensions: how often the grid may grow; :data:`EXTENSIONS` times if None.
    """
    extensions = EXTENSIONS if extensions is None else extensions
    path = file_of(search.study, search.method, search.column, folder)
    so_far = path.with_name(f"{path.name}.part")
    known, grid = {}, dict(search.grid)
    for outcomes in (*sorted(path.parent.glob("*.csv")), path, so_far):
        known |= _known(outcomes, search)
    for round_ in range(extensions + 1):
        rows = _completed(search, grid, known, so_far)
        best = best_of(rows)
        tried = len({row["point"] for row in rows})
        mean = sum(float(row[METRIC]) for row in rows if json.loads(row["point"]) == best) / len(search.seeds)
        say(f"{search.name}: {tried} combinations, best {in_words(best)}: {100 * mean:.1f}%")
        wider = _extended(search, grid, best) if round_ < extensions else grid
        if wider == grid:
            break
        grid = wider
    write_rows(path, rows)  # without what an earlier grid had besides
    so_far.unlink(missing_ok=True)
    return best


def _known(path: Path, search: Search) -> dict[Name, Row]:
    """Return the outcomes that are recorded and still mean the same; others are dropped."""
    known: dict[Name, Row] = {}
    if not path.exists():
        return known
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            try:
                config = search.config(json.loads(row["point"]), int(row["seed"]))
            except AsyncFLError:
                continue
            if config.hash == row["config_hash"] and not revised(json.loads(row["meaning"]), meaning(config)):
                known[row["point"], row["seed"]] = row
    return known


def _completed(search: Search, grid: Grid, known: dict[Name, Row], so_far: Path) -> list[Row]:
    """Run what is missing of a grid, add it to what is known, and return the grid's outcomes, in its order."""
    wanted = {(json.dumps(point), str(seed)): (point, seed) for point in points_of(grid) for seed in search.seeds}
    missing = [(name, place) for name, place in wanted.items() if name not in known]
    for begin in range(0, len(missing), AT_ONCE):
        part = missing[begin : begin + AT_ONCE]
        configs = [search.config(*place) for _, place in part]
        tried = zip(part, configs, strict=True)
        for results in results_of(configs):
            known |= {
                name: row_of(*place, config, one) for one, ((name, place), config) in zip(results, tried, strict=False)
            }
            write_rows(so_far, list(known.values()))
    return [known[name] for name in wanted]


def results_of(configs: Sequence[Config]) -> Iterator[list[Result | None]]:
    """Run configurations and yield what ends together: small models' runs all at once, large ones' one by one.

    A run that diverges, for which None stands, ends those beside it: they are all run again, each alone.
    """
    first = Run(configs[0])
    runs = chain([first], map(Run, configs[1:]))
    if first.trainer.cohort:
        try:
            yield list(finish_together(list(runs)))  # none is left for below
        except DivergedError:
            runs = map(Run, configs)
    for run in runs:
        try:
            yield list(finish_together([run]))
        except DivergedError:
            yield [None]


def row_of(point: dict[str, Any], seed: int, config: Config, result: Result | None) -> Row:
    """Return an outcome; a run that diverged, of which there is no result, has no accuracy and no time."""
    numbers = [result.summary[METRIC], result.summary["final_accuracy"]] if result else [nan, nan]
    seconds = result.timing["cpu_seconds"] if result else 0.0
    values = [json.dumps(point), str(seed), *(f"{number:.6g}" for number in numbers)]
    values += [config.hash, json.dumps(meaning(config)), f"{seconds:.2f}"]
    return dict(zip(FIELDS, values, strict=True))


def write_rows(path: Path, rows: Sequence[Row], fields: Sequence[str] = FIELDS) -> None:
    """Write outcomes, atomically."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue())


def _extended(search: Search, grid: Grid, best: dict[str, Any]) -> Grid:
    """Return the grid with one more value of each knob whose best value is its smallest or largest.

    The new value is as far from the edge as the edge is from its neighbour, as a ratio. A value that a configuration
    cannot have is left out.
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
