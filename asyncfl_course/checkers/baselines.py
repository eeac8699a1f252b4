"""Checkers for lesson 03, the baselines."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import call, expect, expect_close
from asyncfl_lite.algorithms import mixing

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
