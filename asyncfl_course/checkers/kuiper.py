"""Checkers for lesson 05, KUIPER: bursts, their weights, the two moves in a server step, and 1,000 clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from asyncfl_course.exercises import Wrong, exercise
from asyncfl_course.expectations import call, expect, expect_close, numbers, shown, words
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
def bursts(answer: Any) -> None:
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


def _mixed(
    x: Tensor, models: Tensor, n: Tensor, acc: Tensor, staleness: Tensor, start: Tensor | None = None, norm: str = ""
) -> Tensor:
    """Return the package's global model after one burst of KUIPER."""
    server = make_algorithm("kuiper", buffer_size=len(models), **({"kuiper_norm": norm} if norm else {}))
    server.start(x)
    now = int(staleness.max())
    for _ in range(now):
        server.new_version(x)
    for i, model in enumerate(models):
        begun = x if start is None else start[i]
        reported = {"num_samples": float(n[i]), "received_accuracy": float(acc[i]), "start": begun}
        server.receive(Update(i, model - begun, now - int(staleness[i]), **reported))
    return server.x


@exercise("05.2", "One burst")
def burst(answer: Any) -> None:
    """Compare the answer with the package's global model after one burst of KUIPER."""
    x, two = _tensor(1, 0), _tensor((2, 2), (4, -2))
    four = _tensor((0, 1), (1, 1), (2, 0), (3, -1))
    for inputs, because in (
        ((x, two, _tensor(100, 300), _tensor(0.6, 0.2), _tensor(0, 2)),
         "the shares are n (1 - acc) over their sum, and the rate uses s of the mean staleness"),
        ((x, two[:1], _tensor(50), _tensor(0.9), _tensor(0)), "a single client has the share 1, however good it is"),
        ((x, four, _tensor(1, 2, 3, 4), _tensor(0.1, 0.9, 0.5, 1), _tensor(0, 0, 0, 40)),
         "the rate is s of the mean staleness, not the mean of s"),
        ((x, two, _tensor(10, 10), _tensor(1, 1), _tensor(0, 0)), "no client has a weight, so the model stays"),
    ):  # fmt: skip
        expect_close(answer, inputs, _mixed(*inputs), because=because)


@exercise("05.3", "What is left")
def left(answer: Any) -> None:
    """Compare the answer with the share of a model left after some versions of KUIPER's Equation 2 as printed."""
    for accuracy, versions in ((0.7, 1), (0.7, 20), (0.2, 3), (0.0, 5), (1.0, 2)):
        x = _tensor(1)
        for _ in range(versions):
            x = _mixed(x, x[None], _tensor(1), _tensor(accuracy), _tensor(0), norm="literal")
        because = "each version multiplies the model by 1 - 0.7 times the accuracy"
        expect_close(answer, (accuracy, versions), x.item(), because=because, atol=1e-9)


@exercise("05.4", "How many clients count")
def effective(answer: Any) -> None:
    """Compare the answer's effective number of clients with exact values."""
    for n, acc, wanted, because in (
        ((1, 1, 1, 1), (0.5, 0.5, 0.5, 0.5), 4, "four equal shares count as four"),
        ((1, 1, 1, 1), (1, 1, 0.99, 0.98), 1.8, "the shares are 0, 0, 1/3 and 2/3"),
        ((100, 300), (0.6, 0.2), 49 / 37, "sizes count too, and the shares are 1/7 and 6/7"),
        ((5, 7), (1, 1), 0, "no client has any weight, so none counts"),
    ):
        expect_close(answer, (_tensor(*n), _tensor(*acc)), wanted, because=because)


@exercise("05.5", "Accuse somebody")
def order(answer: Any) -> None:
    """Compare the answer's order of KUIPER's four reward variants at bias 1 with the recorded order."""
    right = ["received", "no reward", "last epoch", "trained"]
    asked = f"Your answer {shown(answer)}: a list of the four names is asked for, {shown(sorted(right))} in some order."
    given = words(answer, 4, right, asked)
    expect(sorted(given) == sorted(right), asked)
    if given != right:
        _accuse(given)


def _accuse(given: list[str]) -> None:
    """Explain the wrong assumption behind an order that differs from the recorded one."""
    looks = (
        f"Your answer {shown(given)} is not the recorded order. On its own four classes, how accurate is each of the "
        "three models, and how many clients then keep a weight?"
    )
    rank = {name: given.index(name) for name in given}
    if max(rank["received"], rank["no reward"]) > min(rank["last epoch"], rank["trained"]):
        raise Wrong(
            f"Your answer {shown(given)} has a reading of the local model among the first two. A trained model is "
            "nearly perfect on its four classes, so most weights vanish. Equal weights would be better.",
            looks,
        )
    if rank["received"] > rank["no reward"]:
        raise Wrong(
            f"Your answer {shown(given)} has no reward first. The received model errs most where the global model "
            "lacks a client's classes, and its reward points there. In the recorded runs it ends above no reward.",
            looks,
        )
    raise Wrong(
        f"Your answer {shown(given)} has the trained model above the last epoch. The last epoch still counts errors "
        "that training then removes, so fewer of its weights are exactly 0.",
        looks,
    )


@exercise("05.6", "Two moves")
def moves(answer: Any) -> None:
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


@exercise("05.7", "A thousand clients")
def thousand(answer: Any) -> None:
    """Compare the answer's mean staleness, mixing rate and reports per client with the exact numbers."""
    said = numbers(answer, 3, f"Your answer {shown(answer)}: three numbers are asked for.")
    for name, given, wanted, near, because in (
        ("mean staleness", said[0], 99, 0.5, "when a burst's version is made, its K clients do not train, all others "
         "age by one version, and K updates share that"),
        ("mixing rate", said[1], 0.07, 6e-4, "β times (1 + that staleness) to the power of −α"),
        ("number of reports per client", said[2], 2, 6e-3, "1,000 clients share the 2,000 reports of 200 versions"),
    ):  # fmt: skip
        expect_close(given, None, wanted, called=f"Your {name}", because=because, atol=near, rtol=0)
