"""What a grid will cost before it starts: cells, client updates, operations, hours on this device.

Operations come from ``workload.py``. How long they take is, where there are any, as recorded: seconds an
operation of finished cells with the same task, model, method and device. Otherwise two models, a small and a large one,
are trained for a moment; a model of a size between has a speed between theirs, on logarithmic scales.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pandas as pd
import torch
from torch.nn import functional

from asyncfl_lite.base.devices import torch_threads
from asyncfl_lite.base.errors import AsyncFLError, ResultError
from asyncfl_lite.models import MLP, ResNet
from asyncfl_lite.models.base import InputSpec, initial_model
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.reproduction.grid.cells import Cell
from asyncfl_lite.reproduction.grid.sizes import forward_of
from asyncfl_lite.reproduction.grid.workload import TRAINED, Workload, workload
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.results import Standing, read_record

HOURS_UNASKED = 2.0
"""A grid that takes longer asks first."""
STARTING = 3.0
"""Seconds of a cell's kernel and notebook beside its runs."""
MOMENT = 0.4
"""Seconds of training in which a model's speed is measured."""

Kind = tuple[str, str, str, str]
"""Task, model, method, device: whose recorded speed is taken."""


@dataclass
class Estimate:
    """What a grid will cost.

    Attributes:
        states: cell -> how what is recorded of it stands.
        rows: a row a cell that is to run: cell, paper, runs, updates, flop, seconds (NaN where the device is not
            here), recorded (whether its speed was).
        unknown: cell -> why it can't be estimated.
        workers: how many cells run at a time.
    """

    states: dict[str, Standing]
    rows: pd.DataFrame
    unknown: dict[str, str] = field(default_factory=dict)
    workers: int = 1

    @property
    def hours(self) -> float:
        """Estimated hours with all workers; NaN where a cell's device or size is not known."""
        if self.unknown:
            return math.nan
        return float(self.rows["seconds"].sum(skipna=False)) / 3600 / self.workers

    @property
    def asks(self) -> bool:
        """Whether it is long enough, or uncertain enough, to ask first."""
        return not self.hours <= HOURS_UNASKED

    def __str__(self) -> str:
        """Say it in a few lines: cells by state, then a line a paper, then all."""
        counts = pd.Series(list(self.states.values())).value_counts()
        waiting = len(self.states) - counts.get("complete", 0)
        again = ", ".join(f"{counts[state]} {state}" for state in ("stale", "changed") if state in counts)
        lines = [
            f"{len(self.states)} cells: {counts.get('complete', 0)} complete, "
            f"{waiting} to run{f' ({again})' if again else ''}"
        ]
        papers = list(self.rows.groupby("paper", sort=False))
        if len(papers) > 1:
            lines += [f"  {paper:13} {self._amount(rows)}" for paper, rows in papers]
        if waiting:
            lines.append(f"estimated cost: {self._amount(self.rows)}, {self._speed()}")
        if self.unknown:
            name, reason = next(iter(self.unknown.items()))
            lines.append(f"not estimated: {len(self.unknown)} cells, such as {name}: {reason}")
        return "\n".join(lines)

    def _amount(self, rows: pd.DataFrame) -> str:
        runs, updates, flop = (rows[name].sum() for name in ("runs", "updates", "flop"))
        took = duration(rows["seconds"].sum(skipna=False) / self.workers)
        return f"{runs} runs, {updates:,.0f} client updates, {flop:.1e} FLOP, {took}"

    def _speed(self) -> str:
        workers = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        return f"with {workers} (speed of {self.rows['recorded'].sum()} cells as recorded, else measured now)"


def duration(seconds: float) -> str:
    """Return it in minutes, hours or years."""
    if math.isnan(seconds):
        return "unknown time, as this machine has no such device"
    for size, unit in ((365.25 * 86400, "years"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}" if seconds >= 20 * size else f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def estimate(cells: Sequence[Cell], runs: str | Path, *, workers: int = 1) -> Estimate:
    """Return what it will cost to run those of ``cells`` that are not complete.

    Args:
        cells: of a grid.
        runs: folder of results, whose finished runs say how fast this device is; they may come from another one.
        workers: how many cells run at a time.
    """
    runs = Path(runs)
    states = {cell.name: cell.state(runs) for cell in cells}
    waiting = [cell for cell in cells if states[cell.name] != "complete"]
    works: dict[str, Workload] = {}
    unknown: dict[str, str] = {}
    for cell in waiting:
        try:
            works[cell.name] = workload(cell.config)
        except AsyncFLError as error:
            unknown[cell.name] = str(error)
    known = [cell for cell in waiting if cell.name in works]
    speeds = recorded_speeds(runs, {_kind(cell.config) for cell in known})
    rows = [_row(cell, works[cell.name], speeds.get(_kind(cell.config))) for cell in known]
    columns = ["cell", "paper", "runs", "updates", "flop", "seconds", "recorded"]
    return Estimate(states, pd.DataFrame(rows, columns=columns), unknown, workers)


def _row(cell: Cell, work: Workload, recorded: float | None) -> dict[str, object]:
    """Return a cell's row of the estimate, over all its seeds."""
    count = len(cell.seeds)
    seconds = measured_seconds(work, cell.config.device) if recorded is None else work.flop * recorded
    return {
        "cell": cell.name,
        "paper": cell.name.split("/")[0],
        "runs": count,
        "updates": count * work.updates,
        "flop": count * work.flop,
        "seconds": STARTING + count * seconds,
        "recorded": recorded is not None,
    }


def _kind(config: Config) -> Kind:
    return config.task, config.model, config.algorithm, config.device


def recorded_speeds(runs: Path, kinds: Iterable[Kind]) -> dict[Kind, float]:
    """Return seconds an operation, by kind, of the runs that are recorded; kinds without any are absent.

    Processor seconds, which other processes do not lengthen, and on a GPU seconds. One seed a cell is read.
    """
    kinds, told = set(kinds), {}
    for folder in sorted({path.parent.parent for path in runs.glob("*/**/seed-*/result.json")}):
        record = _first_record(folder)
        config = record.get("config", {})
        kind = tuple(config.get(name) for name in ("task", "model", "algorithm", "device"))
        if kind not in kinds or record.get("own_task") is not None:
            continue
        try:
            flop = workload(Config(**config)).flop
        except (AsyncFLError, TypeError):  # of settings that no longer exist
            continue
        told.setdefault(kind, []).append((record["timing"][_clock_of(config["device"])], flop))
    return {kind: sum(row[0] for row in rows) / sum(row[1] for row in rows) for kind, rows in told.items()}


def _first_record(cell: Path) -> dict:
    for path in sorted(cell.glob("seed-*/result.json")):
        try:
            return read_record(path)
        except ResultError:
            continue
    return {}


def _clock_of(device: str) -> str:
    return "cpu_seconds" if device == "cpu" else "seconds"


def measured_seconds(work: Workload, device: str) -> float:
    """Return how long a run takes by two models' measured speed; NaN where this machine has no such device."""
    try:
        (small, slow), (large, fast) = _speeds(device)
    except (RuntimeError, AssertionError):  # torch's own, for a device that is not there
        return math.nan
    place = (math.log(max(work.forward, 1.0)) - math.log(small)) / (math.log(large) - math.log(small))
    return work.flop / math.exp(math.log(slow) + min(1.0, max(0.0, place)) * (math.log(fast) - math.log(slow)))


@lru_cache(maxsize=4)
def _speeds(device: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return, of a small and a large model, operations of a forward pass and operations a second in training."""
    measured = []
    with torch_threads(1):
        for spec, inputs in ((MLP(), InputSpec((1, 8, 8), 10)), (ResNet(width=16), InputSpec((3, 32, 32), 10))):
            forward = forward_of(spec, inputs)
            measured.append((float(forward), forward * TRAINED * _samples_a_second(spec, inputs, device)))
    return tuple(measured)


def _samples_a_second(spec: MLP | ResNet, inputs: InputSpec, device: str, batch: int = 32) -> float:
    model = VectorModel(initial_model(spec, inputs, 0).to(device))
    x, _ = model.flatten()
    images, labels = torch.zeros(batch, *inputs.shape, device=device), torch.zeros(batch, device=device).long()

    def step() -> None:
        _, gradient = model.gradient(x, images, lambda outputs: functional.cross_entropy(outputs, labels))
        gradient.sum().item()  # waits for a GPU

    clock = time.process_time if device == "cpu" else time.perf_counter
    step()
    steps, began = 0, clock()
    while (spent := clock() - began) < MOMENT:
        step()
        steps += 1
    return steps * batch / spent
