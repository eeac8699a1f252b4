"""Checkers for lesson 05, KUIPER: bursts, their weights, and the two moves in a server step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import call, expect, expect_close, shown
from asyncfl_lite.algorithms import make_algorithm
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.config import Config
from asyncfl_lite.simulator.jobs import Update


def _tensor(*values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _bursts(durations: Sequence[float], K: int, count: int) -> list[tuple[float, list[int]]]:
    """Return the time at which each burst closes on the package's clock, and the clients of the burst."""
    clients = {"clients": len(durations), "concurrency": len(durations), "buffer_size": K, "algorithm": "kuiper"}
    law = {"delay": "per_client", "delay_settings": {"durations": durations}}
    updates = schedule(Config(task="digits", partition="iid", **clients, **law, rounds=count)).updates
    groups = [updates.iloc[index : index + K] for index in range(0, count * K, K)]
    return [(group["arrived_at"].max(), group["client"].tolist()) for group in groups]


@exercise("05.1", "Bursts on a clock")
def bursts(answer: Any) -> str:
    """Compare the answer's bursts with the package's schedule."""
    for durations, K, count in (((2, 3.2, 4.5, 7.3, 12.4), 3, 8), ((3, 5.5, 11.2), 1, 6), ((2, 3.5, 7), 3, 3)):
        given, what = call(answer, durations, K, count), f"bursts({durations}, {K}, {count})"
        expect(
            len(given) == count and all(len(one) == 2 for one in given),
            f"{what} gives {shown(given)}: {count} pairs (time, members) are asked for.",
        )
        wanted = _bursts(durations, K, count)
        for index, ((time, members), (closes, who)) in enumerate(zip(given, wanted, strict=True), start=1):
            expect(
                list(members) == who and abs(float(time) - closes) < 0.06,
                f"{what}: burst {index} is {list(members)} at {float(time):.4g}, expected {who} at {closes:.4g}. The K "
                "clients of a burst start again at its last report, and no others do.",
            )
    return "The last report of a burst sets its time, and the clients that reported before it have waited."


def _mixed(x: Tensor, models: Tensor, n: Tensor, acc: Tensor, staleness: Tensor) -> Tensor:
    """Return the package's global model after one burst of KUIPER."""
    server = make_algorithm("kuiper", buffer_size=len(models))
    server.start(x)
    now = int(staleness.max())
    for _ in range(now):
        server.new_version(x)
    for i, model in enumerate(models):
        reported = {"num_samples": float(n[i]), "received_accuracy": float(acc[i]), "start": x}
        server.receive(Update(i, model - x, now - int(staleness[i]), **reported))
    return server.x


def _burst(x: Tensor, models: Tensor, shares: Tensor, rate: Tensor | float) -> Tensor:
    return (1 - rate) * x + rate * shares @ models


def _shares(weights: Tensor) -> Tensor:
    return weights / weights.sum()


def _rate(staleness: Tensor) -> Tensor:
    return 0.7 * (1 + staleness) ** -0.5


_X, _TWO = _tensor(1, 0), _tensor((2, 2), (4, -2))
_FOUR = _tensor((0, 1), (1, 1), (2, 0), (3, -1))

asks_for(
    "05.2", "One burst", _mixed,
    cases=[
        ((_X, _TWO, _tensor(100, 300), _tensor(0.6, 0.2), _tensor(0, 2)),
         "the shares are n (1 - acc) over their sum, and the rate uses s of the mean staleness"),
        ((_X, _TWO[:1], _tensor(50), _tensor(0.9), _tensor(0)),
         "a single client has the share 1, however good it is"),
        ((_X, _FOUR, _tensor(1, 2, 3, 4), _tensor(0.1, 0.9, 0.5, 1), _tensor(0, 0, 0, 40)),
         "the rate is s of the mean staleness, not the mean of s"),
        ((_X, _TWO, _tensor(10, 10), _tensor(1, 1), _tensor(0, 0)), "no client has a weight, so the model stays"),
    ],
    right="Dividing by the sum of the weights keeps the model's length: only the proportions of the members change.",
    mistakes={
        "Nobody has a weight here, so you divide 0 by 0; the model stays.":
            lambda x, m, n, acc, s: x * math.nan if not (n * (1 - acc)).sum() else None,
        "You divide n by its sum, and the weights do not add up to 1; divide n (1 − acc) by its sum.":
            lambda x, m, n, acc, s: _burst(x, m, _shares(n) * (1 - acc), _rate(s.mean())),
        "You take the mean of the rates; take the rate of the mean staleness.":
            lambda x, m, n, acc, s: _burst(x, m, _shares(n * (1 - acc)), _rate(s).mean()),
        "The accuracies are missing in the weights.":
            lambda x, m, n, acc, s: _burst(x, m, _shares(n), _rate(s.mean())),
        "You weigh by accuracy; the reward is for error, 1 − acc.":
            lambda x, m, n, acc, s: _burst(x, m, _shares(n * acc), _rate(s.mean())),
    },
)  # fmt: skip


@exercise("05.3", "Two moves")
def moves(answer: Any) -> str:
    """Compare the answer's step and pull with their definitions, for fresh and for stale starts and for two rates."""
    x, stale, none = _tensor(1, 0), _tensor((0, 0), (0.5, -1)), _tensor((1, 0), (1, 0))
    deltas, shares = _tensor((1, 2), (3, -2)), _tensor(0.25, 0.75)
    for starts, rate, because in (
        (none, 0.4, "it is the rate times the mean by shares, and a client that starts from x does not pull"),
        (stale, 0.4, "the pull leads from x to the old versions, with the same shares as the changes"),
        (stale, 1.0, "both moves are multiplied by the rate"),
    ):
        given, what = call(answer, x, starts, deltas, shares, rate), f"moves(x, {shown(starts)}, …, {rate})"
        expect(isinstance(given, tuple | list) and len(given) == 2, f"{what}: the pair (step, pull) is asked for.")
        for name, ours, theirs in (
            ("step", rate * shares @ deltas, given[0]),
            ("pull", rate * shares @ (starts - x), given[1]),
        ):
            expect_close(theirs, None, ours, called=f"{what}: the {name}", because=because, atol=1e-6)
    return "FedBuff makes only the first move. The pull undoes part of what happened since the members started."
