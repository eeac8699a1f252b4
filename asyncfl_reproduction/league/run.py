"""A newcomer's runs: one run to measure the cost, then the same search that all others had, then one run per seed.

Everything is in one folder, ``runs/league/<name>-<digest>/``: the outcomes of the newcomer's searches, and its cells,
in the form that a grid writes. Runs that are finished there are not repeated.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from asyncfl_lite.base.errors import ResultError, SimulationError, needs
from asyncfl_lite.base.registry import import_own
from asyncfl_lite.runs.assembly import task_of
from asyncfl_lite.runs.results import Result
from asyncfl_lite.runs.run import Run
from asyncfl_lite.runs.store import FORMAT, read_record, write_record
from asyncfl_lite.tasks import Task
from asyncfl_lite.tasks.task import UnlabelledSet
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.grid.interrupts import end_with
from asyncfl_reproduction.grid.run import run_grid
from asyncfl_reproduction.league.entry import Entry
from asyncfl_reproduction.league.field import Place
from asyncfl_reproduction.tuning.grids import Search, points_of
from asyncfl_reproduction.tuning.search import tune

TRIAL, CELLS = "trial.json", "cells"
"""Files in an entry's folder, beside the outcomes of its searches: the cost of its first run, and its cells."""


class Trial(NamedTuple):
    """The cost of one run of a newcomer.

    Attributes:
        updates: number of client updates.
        seconds: seconds of processor time that the run took alone.
        unlabelled: whether its server read unlabelled inputs.
        labelled: share of the training samples that its server keeps with their labels.
    """

    updates: int
    seconds: float
    unlabelled: bool
    labelled: float


@dataclass(frozen=True)
class Newcomer:
    """An entry to the league, the settings in which it runs, and the folder of its results.

    Its grids may grow ``extensions`` times; if None, as often as the field's.
    """

    entry: Entry
    places: Sequence[Place]
    folder: Path
    extensions: int | None = None

    def search(self, place: Place) -> Search:
        """Return the newcomer's search in one setting."""
        grid = place.usual_grid(self.entry.method) if self.entry.grid is None else self.entry.grid
        return place.search_for(self.entry.name, self.entry.method, grid)

    @property
    def untried(self) -> str:
        """A warning if the declared grid does not try the server learning rate, otherwise an empty string."""
        grid = self.entry.grid
        if grid is None or "server_lr" in grid or not self.entry.method.uses_server_lr:
            return ""
        search = self.search(self.places[0])
        rate = search.first().server_lr
        return (
            f"GRID does not try server_lr, which stays at {rate:g}, while other methods tune theirs: the "
            f"server learning "
            "rate decides most comparisons"
        )

    @property
    def count(self) -> int:
        """Number of runs in all searches and comparisons, not counting those that a growing grid adds."""
        tried = [self.search(place) for place in self.places]
        searched = sum(len(points_of(search.grid)) * len(search.seeds) for search in tried)
        return searched + sum(len(place.seeds) for place in self.places)

    def trial(self) -> Trial:
        """Run the first combination of the newcomer's first search once, or read that run's cost if it is known.

        Raises:
            SimulationError: if the run's number of client updates is not the setting's.
        """
        path, place = self.folder / TRIAL, self.places[0]
        with suppress(ResultError, KeyError, TypeError):  # none yet, or damaged: it is run again
            return Trial(**read_record(path)["trial"])
        search = self.search(place)
        config = search.first()
        looked: list[str] = []
        began = time.process_time()
        result = Run(config, _watched(task_of(config), looked)).finish()
        took = Trial(result.summary["client_updates"], time.process_time() - began, bool(looked), config.held_out)
        if took.updates != place.updates:
            raise SimulationError(
                f"{self.entry.file}: {config.rounds} versions of {self.entry.name} took {took.updates} client updates, "
                f"where every other method gets {place.updates}: each {config.buffer_size} received make a version; "
                "an update that the method drops must count as received, with weight 0, see docs/league.md"
            )
        write_record(path, {"format": FORMAT, "trial": took._asdict()})
        return took

    def run(self, workers: int = 1, say: Callable[[str], None] = print) -> dict[str, list[Result]]:
        """Run the searches, then one run per seed, and return the runs by cell; runs that exist are not repeated."""
        chosen = searched(map(self.search, self.places), self.folder, workers, say, self.extensions, [self.entry.file])
        cells = self.cells(chosen)
        report = run_grid(cells, self.folder, workers=workers)
        for name, error in report.failed.items():
            raise SimulationError(f"{name}: {error}")
        for name, where in report.elsewhere.items():
            raise SimulationError(f"{name}: another command runs it, {where}; wait for it and start again")
        return {cell.name: cell.load(self.folder) for cell in cells}

    def cells(self, chosen: dict[str, dict[str, Any]]) -> list[Cell]:
        """Return the newcomer's cells with the combinations that its searches have chosen."""
        cells = []
        for place in self.places:
            search = self.search(place)
            config = search.config(chosen[search.name], place.seeds[0])
            name, about = place.cell(self.entry.name), f"{self.entry.name}, {place.name}, {place.column}"
            cells.append(Cell(name, CELLS, config, place.seeds, about=about, imports=(self.entry.file,)))
        return cells


def _watched(task: Task, looked: list[str]) -> Task:
    """Return a copy of a task that records which of its unlabelled sets are read."""

    def noting(name: str, own: UnlabelledSet) -> UnlabelledSet:
        return lambda count, rng: looked.append(name) or own(count, rng)

    in_no_world = {"worlds": None} if hasattr(task, "worlds") else {}  # it already belongs to one seed
    sets = {name: noting(name, own) for name, own in task.unlabelled.items()}
    return dataclasses.replace(task, unlabelled=sets, **in_no_world)


def searched(
    searches: Iterable[Search],
    folder: Path | None,
    workers: int = 1,
    say: Callable[[str], None] = print,
    extensions: int | None = None,
    imports: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """Run several searches at a time, and return the combination that each one chose, by the search's name.

    Other processes import the files in ``imports``, which register the methods to search.
    """
    with needs("grid", "several workers"):
        from joblib import Parallel, delayed

    ends = {"initializer": end_with, "initargs": (os.getpid(),)} if workers > 1 else {}
    parallel = Parallel(workers, batch_size=1, return_as="generator_unordered", **ends)
    chosen = {}
    for name, best, lines in parallel(delayed(_searched)(one, folder, extensions, imports) for one in searches):
        chosen[name] = best
        for line in lines:
            say(line)
    return chosen


def _searched(
    search: Search, folder: Path | None, extensions: int | None, imports: Sequence[str]
) -> tuple[str, dict[str, Any], list[str]]:
    for place in imports:
        import_own(place)
    lines: list[str] = []
    return search.name, tune(search, folder, lines.append, extensions), lines
