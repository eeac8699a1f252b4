"""Exercises of lesson 11: a constant answer's scores, the attention mask, rows that few clients use, possible means."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from asyncfl_course.exercises import asks_for


def _constant_scores(labels: Tensor) -> tuple[Tensor, Tensor]:
    counts = labels.bincount()
    return counts.max() / len(labels), 1 / (counts > 0).sum()


asks_for(
    "11.1", "What a constant answer scores", _constant_scores,
    cases=[
        ((torch.tensor([1, 0, 1, 1]),), "one class is right each time and the other never, so their mean is a half"),
        ((torch.tensor([0, 0, 0, 1, 1, 2]),), "the commonest class need not be 1, and here three classes occur"),
        ((torch.tensor([2, 2, 2]),), "classes that no text has do not count in the mean over classes"),
        ((torch.tensor([0] * 129 + [1] * 279),), "279 of 408 pairs of MRPC mean the same"),
    ],
    right="Accuracy follows the commonest class; balanced accuracy shows that nothing has been learned.",
    mistakes={
        "The commonest class is not always class 1, and there may be more than two.":
            lambda labels: [labels.float().mean(), 0.5],
        "You divide by the number of possible classes; only those that occur count.":
            lambda labels: [labels.bincount().max() / len(labels), 1 / len(labels.bincount())],
        "There are not always two classes: count those that occur.":
            lambda labels: [labels.bincount().max() / len(labels), 0.5],
    },
)  # fmt: skip


def _possible(printed: float, pairs: int, runs: int) -> bool:
    answers = pairs * runs
    return round(100 * round(printed / 100 * answers) / answers, 2) == printed


asks_for(
    "11.2", "Can this be a mean?", _possible,
    cases=[
        ((68.38, 408, 1), "279 of 408 is 68.38 when rounded"),
        ((71.47, 408, 1), "291 of 408 is 71.32 and 292 is 71.57; nothing lies between"),
        ((71.47, 408, 5), "five runs have 2040 answers together, and 1458 of them are 71.47%"),
        ((50.0, 3, 1), "1 of 3 and 2 of 3 are the neighbours"),
        ((100.0, 408, 3), "it is possible that all answers are right"),
        ((66.67, 3, 1), "2 of 3 is 66.67 when rounded, though not exactly"),
    ],
    right="A mean of whole numbers has few possible values, so a printed one can be checked without any data.",
    mistakes={
        "You left out the runs: all of them together have pairs · runs answers.":
            lambda printed, pairs, runs: _possible(printed, pairs, 1),
        "A printed percentage is rounded: ask whether some whole number of answers rounds to it.":
            lambda printed, pairs, runs: (printed / 100 * pairs * runs).is_integer(),
    },
)  # fmt: skip


_SCORES = torch.tensor([1.0, 2.0, 3.0]).log()
_VALUES = torch.tensor([3.0, 6.0, -12.0])

asks_for(
    "11.3", "One position attends to the others",
    lambda scores, values, here: scores.masked_fill(~here, float("-inf")).softmax(-1) @ values,
    cases=[
        ((_SCORES, _VALUES, torch.tensor([True, True, False])),
         "the weights of the positions with a token add up to 1, here a third and two thirds"),
        ((_SCORES, _VALUES, torch.tensor([True, True, True])), "nothing is padding, so it is an ordinary softmax"),
        ((torch.tensor([-5.0, 4.0, 4.0]), torch.tensor([7.0, 1.0, 1.0]), torch.tensor([True, False, False])),
         "a single position has weight 1, whatever its score"),
        ((torch.tensor([200.0, 201.0, 0.0]), torch.tensor([1.0, 0.0, 5.0]), torch.tensor([True, True, False])),
         "exp(200) is infinite in single precision, so let softmax subtract the largest score"),
    ],
    right="A score of minus infinity before the softmax gives padding no weight, and the rest still adds up to one.",
    mistakes={
        "A score of 0 still gets a weight in softmax; padding needs the score −∞.":
            lambda s, v, here: (s * here).softmax(-1) @ v,
        "You mask after softmax, so the weights no longer add up to 1.":
            lambda s, v, here: (s.softmax(-1) * here) @ v,
        "exp(200) is infinite in single precision; softmax subtracts the largest score first.":
            lambda s, v, here: math.nan if s.max() > 80 else None,
    },
)  # fmt: skip


def _by_users(deltas: Tensor) -> Tensor:
    users = (deltas != 0).any(-1).sum(0)
    return deltas.sum(0) / users.clamp(min=1)[:, None]


asks_for(
    "11.4", "Divide by the users of a word", _by_users,
    cases=[
        ((torch.tensor([[[-0.1], [-0.1]], [[-0.1], [0.0]], [[-0.1], [0.0]]]),),
         "word B has one client, so its sum is divided by 1"),
        ((torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[3.0, 2.0], [0.0, 0.0]]]),),
         "a row counts as used if any of its numbers moved, and a row that nobody used stays, 0 and not 0/0"),
        ((torch.tensor([[[1.0, -1.0]], [[-1.0, 1.0]], [[0.0, 0.0]]]),),
         "two clients used the word, and their updates cancel"),
        ((torch.tensor([[[2.0], [4.0], [0.0]]]),), "with a single client, nothing is divided"),
    ],
    right="Rare words are not diluted by clients that never saw them, but may then follow a single client.",
    mistakes={
        "You divide by all clients; divide by those that used the word.":
            lambda d: d.mean(0),
        "A word that nobody used gives 0 / 0; it stays where it is.":
            lambda d: d.sum(0) / (d != 0).any(-1).sum(0)[:, None],
        "You count users for each number; a client used the whole row if any of its numbers moved.":
            lambda d: d.sum(0) / (d != 0).sum(0).clamp(min=1),
    },
)  # fmt: skip
