"""Checkers for lesson 03, the baselines."""

from __future__ import annotations

from typing import Any

import torch

from asyncfl_course.exercises import exercise
from asyncfl_course.expectations import call, expect, expect_close
from asyncfl_lite.algorithms import mixing


@exercise("03.1", "The hinge")
def hinge(answer: Any) -> str:
    """Compare the answer with FedAsync's hinge function, which maps staleness to a weight."""
    cases = {
        (3, 10, 4): "up to b the weight is 1",
        (4, 10, 4): "at b itself the weight is still 1",
        (5, 10, 4): "one version above b the weight is 1/(a + 1)",
        (9, 2, 4): "what counts is the age above b, τ − b, not τ",
        (1, 0.5, 0): "without the + 1 this weight would exceed 1",
    }
    for inputs, why in cases.items():
        tau, a, b = inputs
        expect_close(answer, inputs, mixing.hinge(tau, a, b), because=why)
    return "The + 1 joins the two cases, so the weight never jumps above 1."


@exercise("03.2", "CA²FL's direction")
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
        kept = cache.clone()
        given = call(answer, cache, entries)
        expect(
            isinstance(given, tuple | list) and len(given) == 2, f"In {name} you must return two tensors, v and cache."
        )
        expect(
            torch.equal(cache, kept), f"In {name} your function changes the cache that it was given. Clone it first."
        )
        wanted = cache.mean(0) + torch.stack([delta - cache[client] for client, delta in entries]).mean(0)
        expect_close(given[0], None, wanted, because=f"{name}, v of entries {sent}: {why}", called="v",
                     of=(cache, entries))  # fmt: skip
        for client, delta in entries:
            kept[client] = delta
        expect_close(given[1], None, kept, called="the new cache",
                     because=f"{name}: the rows of clients that reported are their deltas")  # fmt: skip
        cache = kept
    return "All corrections use the old cache, so an unchanged client adds nothing new."


@exercise("03.3", "Where FedBuff rests")
def resting_place(answer: Any) -> str:
    """Compare the answer with the model at which two clients' pulls balance."""
    cases = {
        (1, 1, 1): "both report equally often with equal weight, so the result is the fair 0",
        (10, 1, 1): "there are ten steps towards 1 for each step towards −1",
        (10, 2**-0.5, 12**-0.5): "balance k · fast · (1 − x) against slow · (1 + x)",
        (10, 1, 10): "a weight of 10 makes up for reporting a tenth as often",
        (4, 0.5, 1): "weights multiply frequencies",
    }
    for inputs, why in cases.items():
        k, fast, slow = inputs
        expect_close(answer, inputs, (k * fast - slow) / (k * fast + slow), because=why)
    return "The model rests where the pulls of all reports cancel, and a fast client pulls more often."
