"""A bare PyTorch loop that is the baseline of the benchmarks, and functions that time programs side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from asyncfl_lite import Config
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.run import Run

LONG = 5.0
"""Seconds of processor time from which a first call counts, because its one-time costs are then a small part."""


def bare_loop(config: Config, *, evaluate: bool = False) -> Callable[[], None]:
    """Return a plain PyTorch loop over the jobs that arrive in a run, one after another: no aggregation, no clock.

    It takes as many stochastic gradient steps, on as many samples of the same clients. Jobs that a run's cohorts
    train though they are still in flight at its end are the run's own loss.

    Args:
        config: the run.
        evaluate: test the model as often as the run does, which tests it once more at its end, class by class.
    """
    run = Run(config)
    clients = schedule(config).updates["client"].tolist()
    evaluations = 2 + config.rounds // config.eval_every + (config.rounds % config.eval_every > 0) if evaluate else 0
    module = run.model.module
    parts = [torch.from_numpy(part) for part in run.parts]
    inputs, labels = run.task.inputs, run.task.labels
    loss = torch.nn.CrossEntropyLoss()
    initial = {name: value.clone() for name, value in module.state_dict().items()}

    def loop() -> None:
        module.train()
        for client in clients:
            module.load_state_dict(initial)
            optimiser = torch.optim.SGD(module.parameters(), lr=config.client_lr, weight_decay=config.weight_decay)
            part = parts[client]
            for _ in range(config.local_epochs):
                for places in part[torch.randperm(len(part))].split(config.batch_size):
                    optimiser.zero_grad()
                    loss(module(inputs[places]), labels[places]).backward()
                    optimiser.step()
        module.eval()
        with torch.no_grad():
            for _ in range(evaluations):
                run.task.evaluate(module)

    return loop


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the seconds of processor time that a call of ``work`` takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def ratio(ours: Callable[[], object], theirs: Callable[[], object], most: int = 7) -> dict[str, float]:
    """Time two programs in turn; return their median processor times and the median of their ratios."""
    found = medians(ours, theirs, most=most)
    return {"ours_s": found[0][0], "bare_s": found[0][1], "ratio": found[1][0], "pairs": found[2]}


def medians(*works: Callable[[], object], most: int = 7) -> tuple[list[float], list[float], int]:
    """Time functions in turn until the medians of their ratios to the last one are known within 5 %.

    That is three times or more, or two where one round takes long.

    Returns:
        The median processor times, the median ratios of all but the last to the last, and how often it was measured.
    """
    measured: list[list[float]] = []
    row = [cpu_seconds(work) for work in works]
    if sum(row) > LONG:  # else the first call, which pays for what is made once, is left out
        measured.append(row)
    least = 2 if sum(row) > 2 * LONG else 3
    while len(measured) < least or (len(measured) < most and not all(map(_steady, _ratios(measured)))):
        measured.append([cpu_seconds(work) for work in works])
    times = [statistics.median(column) for column in zip(*measured, strict=True)]
    return times, [statistics.median(column) for column in _ratios(measured)], len(measured)


def _ratios(measured: list[list[float]]) -> list[tuple[float, ...]]:
    return list(zip(*([time / row[-1] for time in row[:-1]] for row in measured), strict=True))


def _steady(values: tuple[float, ...]) -> bool:
    """Return whether a median is known within 5 %, by twice its standard error.

    The error is estimated from the median absolute deviation.
    """
    middle = statistics.median(values)
    spread = 1.4826 * statistics.median(abs(value - middle) for value in values)
    return 2 * 1.2533 * spread / len(values) ** 0.5 < 0.05 * middle
