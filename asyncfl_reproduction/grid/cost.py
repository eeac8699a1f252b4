"""Cost estimates of grids before they start: cells, runs, client updates, and hours on this machine.

The time of a run is assumed to grow linearly with its number of client updates. The speed is read from finished runs of
the same task, model, method and device, in the folder of runs or in the tables of ``results/``. If there are none,
shortened runs of 1, 2, 4, … server versions are timed here, and the line through the last two is extrapolated. Runs
that become slower on the way, such as those of a server that begins to distil after some versions, take longer than
estimated.
"""

from __future__ import annotations

import itertools
import math
import signal
import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pandas as pd

from asyncfl_lite.base.devices import actual
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, ResultError, how_many
from asyncfl_lite.runs.assembly import load_task, make_simulation
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.run import run
from asyncfl_lite.runs.store import Standing, read_record
from asyncfl_lite.simulator.clock_only import ClockOnly, VersionCounter
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.grid.record import RUNS
from asyncfl_reproduction.parquet import read_table

HOURS_UNASKED = 2.0
"""Hours above which a grid asks first."""
STARTING = 3.0
"""Seconds that a cell's kernel and notebook take, in addition to its runs."""
LONG_ENOUGH = 1.0
"""Seconds from which a shortened run is long enough to measure speed; until then, the next is twice as long."""
LIMIT = 15.0
"""Most seconds of processor time spent on timing one kind of run."""
PATIENCE = 20
"""Timing ends after this many times :data:`LIMIT` by the clock, however busy the machine is; so does reading data."""
WINDOW = 1000
"""Client updates that are simulated without training; longer runs are extrapolated from them."""

Kind = tuple[str, str, str, str]
"""Task, model, method, device: runs of one kind have the same speed."""


class Speed(NamedTuple):
    """The speed of one kind of run, which takes ``fixed + updates * an_update`` seconds."""

    fixed: float
    an_update: float
    recorded: bool = False


@dataclass
class Estimate:
    """The estimated cost of a grid.

    Attributes:
        states: cell -> the state of its recorded results, as in :meth:`.Cell.state`.
        rows: one row per cell to run: cell, paper, runs, updates, seconds, recorded (whether its speed was recorded).
        unknown: cell -> the reason why its cost cannot be estimated.
        workers: number of cells that run at the same time.
    """

    states: dict[str, Standing]
    rows: pd.DataFrame
    unknown: dict[str, str] = field(default_factory=dict)
    workers: int = 1

    @property
    def hours(self) -> float:
        """Estimated hours with all workers; NaN if the time of any cell is unknown."""
        if self.unknown:
            return math.nan
        return float(self.rows["seconds"].sum()) / 3600 / self.workers

    @property
    def asks(self) -> bool:
        """Whether to ask the user first, because the grid takes long or its time is unknown."""
        return not self.hours <= HOURS_UNASKED

    def __str__(self) -> str:
        """Return a summary with the number of cells in each state, one line per paper, and the total."""
        counts = pd.Series(list(self.states.values())).value_counts()
        waiting = len(self.states) - counts.get("complete", 0)
        again = ", ".join(f"{counts[state]} {state}" for state in ("stale", "changed") if state in counts)
        lines = [
            f"{how_many(len(self.states), 'cell')}: {counts.get('complete', 0)} complete, "
            f"{waiting} to run{f' ({again})' if again else ''}"
        ]
        papers = list(self.rows.groupby("paper", sort=False))
        if len(papers) > 1:
            lines += [f"  {paper:13} {self._amount(rows)}" for paper, rows in papers]
        if len(self.rows):
            lines.append(f"estimated cost: {self._amount(self.rows)}, {self._speed()}")
        if self.unknown:
            name, reason = next(iter(self.unknown.items()))
            lines.append(f"not estimated: {how_many(len(self.unknown), 'cell')}, such as {name}: {reason}")
        return "\n".join(lines)

    def _amount(self, rows: pd.DataFrame) -> str:
        took = duration(rows["seconds"].sum() / self.workers)
        updates = how_many(round(rows["updates"].sum()), "client update")
        return f"{how_many(rows['runs'].sum(), 'run')}, {updates}, about {took}"

    def _speed(self) -> str:
        workers = how_many(self.workers, "worker")
        return (
            f"with {workers} (speed of {how_many(self.rows['recorded'].sum(), 'cell')} as recorded, else measured now)"
        )


def duration(seconds: float) -> str:
    """Return a duration as text, in seconds, minutes, hours or years."""
    for size, unit in ((365.25 * 86400, "years"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}" if seconds >= 20 * size else f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def estimate(cells: Sequence[Cell], runs: str | Path, *, kept: str | Path | None = None, workers: int = 1) -> Estimate:
    """Estimate the cost of the cells that are not complete.

    Args:
        cells: the cells of a grid.
        runs: folder of results, whose finished runs give the speed; they may come from another machine.
        kept: folder of the tables that ``asyncfl-lite record`` wrote, for kinds of runs that ``runs`` does not have.
        workers: number of cells that run at the same time.
    """
    states = {cell.name: cell.state(Path(runs)) for cell in cells}
    waiting = [cell for cell in cells if states[cell.name] != "complete"]
    speeds = {} if kept is None else kept_speeds(cells, Path(kept))
    speeds |= recorded_speeds(Path(runs), {kind_of(cell.config) for cell in waiting})
    rows, unknown = [], {}
    failed: dict[Hashable, AsyncFLError] = {}
    for cell in waiting:
        kind, data, paper = kind_of(cell.config), cell.config.task_settings, cell.name.split("/")[0]
        try:
            if why := failed.get(data) or failed.get(kind):
                raise why
            if kind not in speeds:
                speeds[kind] = timed_speed(cell.config)
            updates, speed = client_updates(cell.config), speeds[kind]
        except AsyncFLError as error:
            unknown[cell.name] = str(failed.setdefault(data if isinstance(error, _SlowData) else kind, error))
            continue
        seconds = STARTING + len(cell.seeds) * (speed.fixed + updates * speed.an_update)
        rows.append([cell.name, paper, len(cell.seeds), len(cell.seeds) * updates, seconds, speed.recorded])
    columns = ["cell", "paper", "runs", "updates", "seconds", "recorded"]
    return Estimate(states, pd.DataFrame(rows, columns=columns), unknown, workers)


def kind_of(config: Config) -> Kind:
    """Return a run's task, model, method and device; runs that agree in all four have the same speed."""
    return config.task, config.model, config.algorithm, actual(config.device)


def recorded_speeds(runs: Path, kinds: set[Kind]) -> dict[Kind, Speed]:
    """Return the speed of each kind of run that has a finished result in ``runs``, measured on one seed per cell."""
    rows = []
    for folder in sorted({path.parent.parent for path in runs.glob("*/**/seed-*/result.json")}) if kinds else ():
        record = _first_record(folder)
        config = record.get("config", {})
        kind = tuple(config.get(name) for name in ("task", "model", "algorithm", "device"))
        if kind in kinds and record.get("own_task") is None:
            with suppress(KeyError, TypeError):  # earlier code wrote other fields, or files were edited
                seconds = record["timing"]["cpu_seconds" if config["device"] == "cpu" else "seconds"]
                updates = record["summary"]["client_updates"]
                if math.isfinite(seconds) and math.isfinite(updates):
                    rows.append((kind, seconds, updates))
    return _mean_speeds(rows)


def _first_record(cell: Path) -> dict:
    for path in sorted(cell.glob("seed-*/result.json")):
        with suppress(ResultError):
            return read_record(path)
    return {}


def kept_speeds(cells: Sequence[Cell], kept: Path) -> dict[Kind, Speed]:
    """Return the speed of each kind of run in this grid from the recorded tables in ``kept``; this covers CPUs only."""
    rows = []
    kinds = {(cell.tier, cell.name): kind_of(cell.config) for cell in cells if actual(cell.config.device) == "cpu"}
    for tier in {tier for tier, _ in kinds}:
        for path in sorted((kept / tier).glob(f"*/{RUNS}")):
            table = read_table(path).reindex(columns=["cell", "cpu_seconds", "client_updates"]).dropna()
            rows += [(kinds[tier, name], *numbers) for name, *numbers in table.to_numpy() if (tier, name) in kinds]
    return _mean_speeds(rows)


def _mean_speeds(rows: list[tuple[Kind, float, float]]) -> dict[Kind, Speed]:
    sums: dict[Kind, tuple[float, float]] = {}
    for kind, seconds, updates in rows:
        before = sums.get(kind, (0.0, 0.0))
        sums[kind] = before[0] + seconds, before[1] + updates
    return {kind: Speed(0.0, seconds / updates, True) for kind, (seconds, updates) in sums.items() if updates}


class _SlowData(ConfigError):
    """Data that take too long to read, for one kind of run as for the next."""


def timed_speed(config: Config) -> Speed:
    """Time runs of ``config`` with 1, 2, 4, … server versions on this device, and return their speed.

    Raises:
        ConfigError: if reading the data or two versions take too long, or the data might have to be fetched first.
        AsyncFLError: if the configuration cannot run here.
    """
    if getattr(config.task_settings, "download", False):
        raise ConfigError("its data may have to be fetched first (download=true)")
    try:
        with _time_limit(PATIENCE * LIMIT):
            load_task(config.task_settings)
    except TimeoutError:
        raise _SlowData(f"its data take longer than {PATIENCE * LIMIT:g} seconds to read here") from None
    clock = time.process_time if actual(config.device) == "cpu" else time.perf_counter
    points: list[tuple[int, float]] = []
    with suppress(TimeoutError), _time_limit(LIMIT):
        _shortened(config, 1)  # warms up
        for versions in (2**power for power in itertools.count()):
            began = clock()
            points.append((_shortened(config, versions), clock() - began))
            ends = versions >= (config.rounds or math.inf) or [points[-1][0]] == [more for more, _ in points[-2:-1]]
            if ends or (len(points) > 1 and points[-1][1] >= LONG_ENOUGH):
                break
    if not points:
        raise ConfigError(f"two server versions take longer than {LIMIT:g} seconds here, of processor time")
    more, long = points[-1]
    fewer, short = next((point for point in reversed(points) if point[0] < more), (0, 0.0))
    an_update = max(0.0, (long - short) / (more - fewer))
    return Speed(max(0.0, long - more * an_update), an_update)


def _shortened(config: Config, versions: int) -> int:
    changed = {"rounds": versions, "checkpoint_every": None, "checkpoint_seconds": None}
    return run(config.model_copy(update=changed)).summary["client_updates"]


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block after this many seconds of processor time, if system and thread allow it.

    It is also raised :data:`PATIENCE` times :data:`LIMIT` seconds later by the clock.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    used, latest = time.process_time(), time.monotonic() + PATIENCE * LIMIT

    def over(number: int, frame: FrameType | None) -> None:  # again and again, in case a library swallows the error
        if time.process_time() - used > seconds or time.monotonic() > latest:
            raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, LIMIT / PATIENCE, LIMIT / PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def client_updates(config: Config) -> float:
    """Return the number of updates that the server receives in a run; recorded speeds are per update received, too.

    Jobs that are called off or in flight at the end do not count. Few of them are trained: at most an eighth of the
    received ones in our cells, and usually a hundredth. If a virtual time ends the run, or rounds end with a buffer
    that is not full, the first :data:`WINDOW` updates are simulated on the run's own clock, with clients of equal size,
    and the number is extrapolated.
    """
    rounds = math.inf if config.rounds is None else config.rounds
    fills = config.scheduling != "rounds" or config.concurrency % config.buffer_size == 0
    if config.horizon is None and fills:
        return float(rounds * config.buffer_size)
    begun = config.model_copy(update={"rounds": int(min(math.ceil(WINDOW / config.buffer_size), rounds))})
    parts = [range(100)] * config.clients
    simulation = make_simulation(begun, parts, VersionCounter(config.buffer_size), kind=ClockOnly)
    simulation.run_alone()
    versions = simulation.algorithm.version
    if versions < begun.rounds or begun.rounds == rounds:
        return float(simulation.received)
    return simulation.received * min(rounds / versions, (config.horizon or math.inf) / simulation.clock)
