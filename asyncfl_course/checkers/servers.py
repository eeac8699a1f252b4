"""Exercises of the course's second part, "Servers": lessons 03 to 05."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import call, expect, expect_close, in_order, number, shown
from asyncfl_course.explore import swing
from asyncfl_lite.algorithms import make_algorithm, mixing
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.config import Config
from asyncfl_lite.simulator.jobs import Update

# --- 03: baselines --------------------------------------------------------------------------------


asks_for(
    "03.1", "The hinge", mixing.hinge,
    cases=[
        ((3, 10, 4), "up to b the weight is 1"),
        ((4, 10, 4), "at b itself the weight is still 1"),
        ((5, 10, 4), "one version above b the weight is 1/(a + 1)"),
        ((9, 2, 4), "what counts is the age above b, τ − b, not τ"),
        ((1, 0.5, 0), "without the + 1 this weight would exceed 1"),
    ],
    right="The + 1 joins the two cases, so the weight never jumps above 1.",
    mistakes={
        "The + 1 in the denominator is missing.":
            lambda tau, a, b: 1.0 if tau <= b else 1 / (a * (tau - b)),
        "You count the whole age τ; only τ − b, the age above b, counts.":
            lambda tau, a, b: 1.0 if tau <= b else 1 / (a * tau + 1),
        "At τ = b the weight is still 1: compare with ≤.":
            lambda tau, a, b: 1.0 if tau < b else 1 / (a * tau + 1),
    },
)  # fmt: skip


def _corrections(cache: Tensor, entries: list) -> Tensor:
    return torch.stack([delta - cache[client] for client, delta in entries]).mean(0)


def _filled(cache: Tensor, entries: list) -> Tensor:
    new = cache.clone()
    for client, delta in entries:
        new[client] = delta
    return new


@exercise(
    "03.2", "CA²FL's direction",
    mistakes={  # the direction alone
        "You take the mean of the new cache alone; add the mean correction to the mean of the old one.":
            lambda cache, entries: _filled(cache, entries).mean(0),
        "You take the mean of the new cache; Equation 2 has the mean of the old one.":
            lambda cache, entries: _filled(cache, entries).mean(0) + _corrections(cache, entries),
        "The mean of the cache is missing.":
            lambda cache, entries: _corrections(cache, entries),
    },
)  # fmt: skip
def cached_direction(answer: Any) -> str:
    """Compare the answer with CA²FL's direction and cache in four rounds, the last one with an unchanged update."""
    rounds = {
        "round 1": ([(0, (0.4, 0.0)), (1, (0.0, 0.8))], "with an empty cache v is the buffer's mean"),
        "round 2": ([(0, (0.2, 0.2)), (2, (0.6, -0.4))], "v = mean of all rows + mean of (delta − its old row)"),
        "round 3": ([(1, (0.2, 0.4)), (2, (0.0, 0.0))], "the cached mean is over all N clients, even silent ones"),
        "round 4": ([(1, (0.2, 0.4))], "no update has changed, so v is the cached mean"),
    }
    cache = torch.zeros(3, 2, dtype=torch.float64)
    for name, (sent, why) in rounds.items():
        entries = [(client, torch.tensor(delta, dtype=torch.float64)) for client, delta in sent]
        before = cache.clone()
        given = call(answer, cache, entries)
        expect(
            isinstance(given, tuple | list) and len(given) == 2, f"In {name} you must return two tensors, v and cache."
        )
        expect(
            torch.equal(cache, before), f"In {name} your function changes the cache that it was given. Clone it first."
        )
        wanted = cache.mean(0) + _corrections(cache, entries)
        expect_close(given[0], None, wanted, because=f"{name}, v of entries {sent}: {why}", called="v",
                     of=(cache, entries))  # fmt: skip
        cache = _filled(cache, entries)
        expect_close(given[1], None, cache, called="the new cache",
                     because=f"{name}: the rows of clients that reported are their deltas")  # fmt: skip
    return "All corrections use the old cache, so an unchanged client adds nothing new."


asks_for(
    "03.3", "Where FedBuff rests", lambda k, fast, slow: (k * fast - slow) / (k * fast + slow),
    cases=[
        ((1, 1, 1), "both report equally often with equal weight, so the result is the fair 0"),
        ((10, 1, 1), "there are ten steps towards 1 for each step towards −1"),
        ((10, 2**-0.5, 12**-0.5), "balance k · fast · (1 − x) against slow · (1 + x)"),
        ((10, 1, 10), "a weight of 10 makes up for reporting a tenth as often"),
        ((4, 0.5, 1), "weights multiply frequencies"),
    ],
    right="The model rests where the pulls of all reports cancel, and a fast client pulls more often.",
    mistakes={
        "The weights are missing: an update of weight ½ counts as half an update.":
            lambda k, fast, slow: (k - 1) / (k + 1),
        "The denominator needs the weights, too: it is the sum of both pulls.":
            lambda k, fast, slow: (k * fast - slow) / (k + 1),
        "The sign is the wrong way round: 1 is the fast client's optimum.":
            lambda k, fast, slow: (slow - k * fast) / (k * fast + slow),
    },
)  # fmt: skip


# --- 04: the server's step ------------------------------------------------------------------------


asks_for(
    "04.1", "Swing", swing,
    cases=[
        (([50, 60, 50, 60], 4),
         "all three jumps are 10 long, up or down, and the distance from the mean does not count"),
        (([0, 90, 80, 82, 79], 3), "only the last 3 tests count, and 3 tests have 2 differences"),
        (([0.7, 0.7, 0.7], 20), "there are fewer tests than asked for, so all of them count"),
    ],
    right="Absolute values first: ups and downs would cancel.",
    mistakes={
        "The sign of a jump does not count: take absolute values before the mean.":
            lambda tests, last: np.diff(tests[-last:]).mean(),
        "You take all tests; only the last ones count.":
            lambda tests, last: np.abs(np.diff(tests)).mean(),
        "You take the last differences; take the last tests, then their differences.":
            lambda tests, last: np.abs(np.diff(tests))[-last:].mean(),
        "This is the standard deviation, the distance from the mean; swing is the distance from the test before.":
            lambda tests, last: np.std(tests[-last:]),
        "You divide by the number of tests; n tests have n − 1 differences.":
            lambda tests, last: np.abs(np.diff(tests[-last:])).sum() / len(tests[-last:]),
    },
)  # fmt: skip

asks_for(
    "04.2", "The noise at rest", lambda eta, k, sigma, m: sigma * (eta * k / (2 - eta * k) / m) ** 0.5,
    cases=[
        ((1.0, 1.0, 1.0, 1), "at η = 1 and κ = 1 the model is one client's centre, whose deviation is σ"),
        ((1.0, 1.0, 3.0, 4),
         "at η = 1 and κ = 1 the model is the mean of M unrelated clients' centres; what variance does that have, and "
         "what deviation?"),
        ((0.3, 1.0, 1.0, 5), "at κ = 1 this is Section 2's quadratic, whose V is a variance"),
        ((1.0, 0.5, 1.0, 5), "clients that go half of the way change x_{t+1} by half as much; what replaces η?"),
        ((0.1, 0.2, 3.0, 10), "here both the server and the clients go only part of the way"),
    ],
    rtol=0.03,  # a few thousand simulated versions suffice
    right="Only the product of the server's step and the clients' share enters the recursion.",
    mistakes={
        "κ is missing: clients go only part of the way.":
            lambda eta, k, sigma, m: sigma * (eta / (2 - eta) / m) ** 0.5,
        "This is the variance; take its square root.":
            lambda eta, k, sigma, m: sigma**2 * eta * k / (2 - eta * k) / m,
        "The buffer is missing: a mean of M centres scatters less than one.":
            lambda eta, k, sigma, m: sigma * (eta * k / (2 - eta * k)) ** 0.5,
        "You divide the deviation by M; the variance is divided by M.":
            lambda eta, k, sigma, m: sigma * (eta * k / (2 - eta * k)) ** 0.5 / m,
    },
)  # fmt: skip


def _late(step: float, tau: int, versions: int) -> list[float]:
    path = [1.0]
    for version in range(versions):
        path.append(path[-1] - step * path[max(0, version - tau)])
    return path


asks_for(
    "04.3", "Old news", _late,
    cases=[
        ((0.5, 0, 3), "with τ = 0 each version keeps a share 1 − a of the last one"),
        ((0.3, 2, 5), "until version τ the update comes from the model of version 0, which is 1"),
        ((1.0, 1, 8), "a = 1 is the limit for τ = 1, where the path repeats itself"),
        ((0.29, 5, 60), "the update at version t comes from the model of version t − τ"),
        ((0.5, 3, 0), "after no version the list holds only x_0"),
    ],
    right="Each step repeats a correction that was already made, which is why a long step overshoots.",
    mistakes={
        "Versions before 0 are not part of the list, which goes from x_0 to the last version.":
            lambda a, tau, n: [1.0] * tau + _late(a, tau, n),
        "The list begins with x_0, which is 1.":
            lambda a, tau, n: _late(a, tau, n)[1:],
        "The list ends with the last version; yours stops before.":
            lambda a, tau, n: _late(a, tau, n)[:-1],
        "You look one version further back than τ.":
            lambda a, tau, n: _late(a, tau + 1, n),
        "This is τ = 0: each step uses the newest model.":
            lambda a, tau, n: _late(a, 0, n),
    },
)  # fmt: skip


@exercise("04.4", "Guess the control")
def guess_of_controls(answer: Any) -> str:
    """Compare the answer's order of four conditions with the recorded one; explain the error behind a wrong order."""
    right = ["clients alike", "as it is", "nobody late", "alike, nobody late"]
    asked = f"Four names are asked for, each once: {'; '.join(sorted(right))}."
    names = in_order(answer, right, asked)
    below = {name: index for index, name in enumerate(names)}
    expect(
        max(below["as it is"], below["clients alike"]) < min(below["nobody late"], below["alike, nobody late"]),
        f"{names[0]!r} first and {names[-1]!r} last is a fair guess, but the records differ. It takes unequal data for "
        "the cause. What did Section 3's clients, which agreed, do at a step of 1?",
    )
    expect(
        below["clients alike"] < below["as it is"],
        "'clients alike' above 'as it is' is what most would guess, but the records differ. In which of the two do all "
        "clients push the same old correction?",
    )
    expect(
        below["nobody late"] < below["alike, nobody late"],
        "You have 'nobody late' above 'alike, nobody late'. If no update is old, only unequal data can do harm.",
    )
    return "Staleness ruins the full step, and clients that agree all push the same old correction."


def _searches(lucky: float = 0.0) -> pd.DataFrame:
    """Return a table of the searches of two methods, A and B, with ``lucky`` added to one accuracy of A."""
    level = {
        ("A", 0.1, 1.0): 75, ("A", 0.3, 1.0): 70, ("A", 0.1, 0.3): 81, ("A", 0.3, 0.3): 80,
        ("B", 0.1, 1.0): 68, ("B", 0.3, 1.0): 40, ("B", 0.1, 0.3): 80, ("B", 0.3, 0.3): 82,
    }  # fmt: skip
    rows = [
        (*setting, seed, accuracy + shift + lucky * (setting == ("A", 0.3, 1.0) and not seed))
        for setting, accuracy in level.items()
        for seed, shift in enumerate((-1.0, 0.0, 1.0))
    ]
    return pd.DataFrame(rows, columns=["method", "client_lr", "server_lr", "seed", "accuracy"])


@exercise("04.5", "An equal comparison")
def equal_lead(answer: Any) -> str:
    """Check that a function returns the difference between two methods' best mean accuracies."""
    table, lucky = _searches(), _searches(lucky=12.0)
    cases = [
        (table, "A", "B", 1.0, 7, "the server rate 1 holds for both methods, and their best means there are 75 and 68"),
        (table, "A", "B", None, -1, "each method may choose both rates, and the best means are 81 and 82"),
        (table, "B", "A", None, 1, "the second name is the baseline, whose best is subtracted"),
        (lucky, "A", "B", 1.0, 7, "A has one lucky seed at client rate 0.3, whose mean is 74, so judge by means"),
    ]
    for rows, method, baseline, rate, wanted, why in cases:
        given = call(answer, rows, method, baseline, rate)
        given = number(given, f"lead(table, {method!r}, …) gives {shown(given)}, which is no number.")
        called = f"lead(table, {method!r}, {baseline!r}, {rate})"
        expect(abs(given - wanted) < 1e-4, f"{called} gives {given:g}, expected {wanted}: {why}.")
    return "Each method is judged by its own best setting, and by means, so luck is not rewarded."


# --- 05: KUIPER -----------------------------------------------------------------------------------


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
