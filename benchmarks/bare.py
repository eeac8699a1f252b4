"""The bare loop that everything is measured against, and how two things are measured side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from asyncfl_lite import Config
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.run import Run


def bare_loop(config: Config, *, evaluate: bool = False) -> Callable[[], None]:
    """Return a plain PyTorch loop over the jobs that arrive in a run, one after another: no aggregation, no clock.

    It takes as many stochastic gradient steps, on as many samples of the same clients. Jobs that a run's cohorts
    train though they are still in flight at its end are the run's own loss.

    Args:
        config: the run.
        evaluate: test the model as often as the run does.
    """
    run = Run(config)
    clients = schedule(config).updates["client"].tolist()
    evaluations = 1 + config.rounds // config.eval_every + (config.rounds % config.eval_every > 0) if evaluate else 0
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
    """Return the processor time that ``work`` takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def ratio(ours: Callable[[], object], theirs: Callable[[], object], pairs: int = 5) -> dict[str, float]:
    """Return medians over alternating pairs of processor times, and the median of the pairs' ratios."""
    ours(), theirs()  # the first call of anything pays for what is made once
    measured = [(cpu_seconds(ours), cpu_seconds(theirs)) for _ in range(pairs)]
    return {
        "ours_s": statistics.median(a for a, _ in measured),
        "bare_s": statistics.median(b for _, b in measured),
        "ratio": statistics.median(a / b for a, b in measured),
    }
