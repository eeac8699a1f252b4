"""Checkers for lesson 16: the luckiest of several tries, KUIPER's accuracies, and statements that intervals support."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from asyncfl_course.evidence import in_column
from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, expect, letters, shown, words
from asyncfl_course.records import EQUIVALENT, HOLDS, REVERSED, TUNED


def _luckiest(tries: int) -> float:
    """Return the mean of the largest of n standard normal numbers."""
    x = np.linspace(-9, 9, 20_001)
    mean = np.trapezoid(x * tries * stats.norm.pdf(x) * stats.norm.cdf(x) ** (tries - 1), x)
    return round(mean, 4) + 0.0


asks_for(
    "16.1", "The luckiest of n tries", _luckiest,
    cases=[
        ((tries,),
         "draw n scores from the same normal distribution, keep the largest, and average that over many repetitions")
        for tries in (1, 2, 6, 60)
    ],
    atol=0.05,
    rtol=0,
    right="More tries find a luckier best, although no setting is better. So every method needs as many tries.",
    mistakes={
        "This is a quantile of one score, not the mean of the best of n.":
            lambda n: stats.norm.ppf(1 - 1 / (n + 1)),
        "You took the absolute value; a score below the mean stays below it.":
            lambda n: math.sqrt(2 / math.pi) if n == 1 else None,
        "You averaged the n scores; keep the largest of them.":
            lambda n: 0.0 if n > 1 else None,
    },
)  # fmt: skip


def _effective(n: Tensor, acc: Tensor) -> Tensor | float:
    weights = n * (1 - acc)
    return weights.sum() ** 2 / weights.square().sum() if weights.any() else 0.0


def _clients(sizes: tuple, accuracies: tuple) -> tuple[Tensor, Tensor]:
    return torch.tensor(sizes).double(), torch.tensor(accuracies).double()


asks_for(
    "16.2", "How many clients count", _effective,
    cases=[
        (_clients((1, 1, 1, 1), (0.5, 0.5, 0.5, 0.5)), "four equal shares count as four"),
        (_clients((1, 1, 1, 1), (1, 1, 0.99, 0.98)), "the shares are 0, 0, 1/3 and 2/3"),
        (_clients((100, 300), (0.6, 0.2)), "sizes count too, and the shares are 1/7 and 6/7"),
        (_clients((5, 7), (1, 1)), "no client has any weight, so none counts"),
    ],
    right="Clients without an error have no weight, so one that errs on one sample in fifty outweighs the others.",
    mistakes={
        "Nobody has a weight here, so you divide 0 by 0; return 0.":
            lambda n, acc: math.nan if not (n * (1 - acc)).sum() else None,
        "The sizes n are missing: the weights are n (1 − acc).":
            lambda n, acc: _effective(torch.ones_like(n), acc),
        "You count the clients that have any weight; a client with a small weight counts for less than one.":
            lambda n, acc: ((1 - acc) > 0).sum(),
    },
)  # fmt: skip


@exercise("16.3", "Accuse somebody")
def order(answer: Any) -> str:
    """Compare the answer's order of KUIPER's four reward variants at bias 1 with the recorded order."""
    right = ["received", "no reward", "last epoch", "trained"]
    asked = f"Your answer {shown(answer)}: a list of the four names is asked for, {shown(sorted(right))} in some order."
    given = words(answer, 4, right, asked)
    expect(sorted(given) == sorted(right), asked)
    if given != right:
        _accuse(given)
    return "The received model's error says what the global model lacks; a trained model knows its own few classes."


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


SHAPES, DIGITS = "kuiper/fig3b", "fedrevive/table1/cifar10"
STATEMENTS = {
    "A": (f"{SHAPES}/bias0", TUNED, REVERSED),
    "B": (f"{SHAPES}/bias1", TUNED, REVERSED),
    "C": (f"{SHAPES}/bias0", "plain FedBuff at 1", HOLDS),
    "D": (DIGITS, TUNED, EQUIVALENT),
    "E": (DIGITS, TUNED, HOLDS),
    "F": ("fedrevive/same-rates/cifar10-shifted", TUNED, EQUIVALENT),
}
"""Statement -> the cells without their method, the column, and the verdict on "above FedBuff" that supports it."""


@exercise("16.4", "What the record supports")
def supported(answer: Any) -> str:
    """Check which lettered statements the recorded intervals support."""
    asked = f"Your answer {shown(answer)} is not a set of letters; give one such as {{'A', 'B'}}."
    chosen = letters(answer, "".join(STATEMENTS), asked)
    for letter, (place, column, wanted) in STATEMENTS.items():
        paper = place.split("/")[0]
        found = in_column(paper, column).above(f"{place}/{paper}", f"{place}/fedbuff")
        told = f"{letter}: the record says {found.verdict} ({found.detail})"
        looks = f"{letter}: read its interval and its verdict again."
        if found.verdict == wanted and letter not in chosen:
            raise Wrong(f"You left out {told}, which supports it.", f"You left out {looks}")
        if found.verdict != wanted and letter in chosen:
            raise Wrong(f"You took {told}, which does not support it.", f"You took {looks}")
    return 'An interval that contains zero decides nothing; "equivalent" needs one that lies within a point of it.'
