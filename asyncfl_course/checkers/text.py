"""Checkers for lesson 11: a constant answer's scores, the attention mask, rows that few clients use, possible means."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from asyncfl_course.exercises import exercise
from asyncfl_course.expectations import expect_close, expect_equal


@exercise("11.1", "What a constant answer scores")
def constant_scores(answer: Callable) -> str:
    """Check the accuracy and the balanced accuracy of always predicting the commonest class."""
    for labels, wanted, because in (
        (
            [1, 0, 1, 1],
            (3 / 4, 1 / 2),
            "one class is right each time and the other never, so their mean is a half",
        ),
        ([0, 0, 0, 1, 1, 2], (1 / 2, 1 / 3), "the commonest class need not be 1, and here three classes occur"),
        ([2, 2, 2], (1.0, 1.0), "classes that no text has do not count in the mean over classes"),
        ([0] * 129 + [1] * 279, (279 / 408, 1 / 2), "279 of 408 pairs of MRPC mean the same"),
    ):
        expect_close(answer, (torch.tensor(labels),), wanted, because=because)
    return "Accuracy follows the commonest class; balanced accuracy shows that nothing has been learned."


@exercise("11.3", "One position attends to the others")
def attend(answer: Callable) -> str:
    """Check masked attention for one position."""
    one, two, three = torch.tensor([1.0, 2.0, 3.0]).log()
    for scores, values, here, because in (
        ([one, two, three], [3.0, 6.0, -12.0], [True, True, False],
         "the weights of the positions with a token add up to 1, here a third and two thirds"),
        ([one, two, three], [3.0, 6.0, -12.0], [True, True, True], "nothing is padding, so it is an ordinary softmax"),
        ([-5.0, 4.0, 4.0], [7.0, 1.0, 1.0], [True, False, False], "a single position has weight 1, whatever its score"),
        ([200.0, 201.0, 0.0], [1.0, 0.0, 5.0], [True, True, False],
         "exp(200) is infinite in single precision, so let softmax subtract the largest score"),
    ):  # fmt: skip
        given = torch.tensor(scores), torch.tensor(values), torch.tensor(here)
        expect_close(answer, given, _attend(*given), because=because)
    return "A score of minus infinity before the softmax gives padding no weight, and the rest still adds up to one."


def _attend(scores: Tensor, values: Tensor, here: Tensor) -> Tensor:
    return scores.masked_fill(~here, float("-inf")).softmax(-1) @ values


@exercise("11.4", "Divide by the users of a word")
def by_users(answer: Callable) -> str:
    """Check that each row of the update is averaged over the clients that changed it."""
    for deltas, wanted, because in (
        ([[[-0.1], [-0.1]], [[-0.1], [0.0]], [[-0.1], [0.0]]], [[-0.1], [-0.1]],
         "word B has one client, so its sum is divided by 1"),
        ([[[1.0, 0.0], [0.0, 0.0]], [[3.0, 2.0], [0.0, 0.0]]], [[2.0, 1.0], [0.0, 0.0]],
         "a row counts as used if any of its numbers moved, and a row that nobody used stays, 0 and not 0/0"),
        ([[[1.0, -1.0]], [[-1.0, 1.0]], [[0.0, 0.0]]], [[0.0, 0.0]],
         "two clients used the word, and their updates cancel"),
        ([[[2.0], [4.0], [0.0]]], [[2.0], [4.0], [0.0]], "with a single client, nothing is divided"),
    ):  # fmt: skip
        expect_close(answer, (torch.tensor(deltas),), wanted, because=because)
    return "Rare words are not diluted by clients that never saw them, but may then follow a single client."


@exercise("11.2", "Can this be a mean?")
def possible(answer: Callable) -> str:
    """Check that the answer tells whether a printed percentage can be a mean of whole counts."""
    for printed, pairs, runs, because in (
        (68.38, 408, 1, "279 of 408 is 68.38 when rounded"),
        (71.47, 408, 1, "291 of 408 is 71.32 and 292 is 71.57; nothing lies between"),
        (71.47, 408, 5, "five runs have 2040 answers together, and 1458 of them are 71.47%"),
        (50.0, 3, 1, "1 of 3 and 2 of 3 are the neighbours"),
        (100.0, 408, 3, "it is possible that all answers are right"),
        (66.67, 3, 1, "2 of 3 is 66.67 when rounded, though not exactly"),
    ):
        expect_equal(answer, (printed, pairs, runs), _possible(printed, pairs, runs), because=because)
    return "A mean of whole numbers has few possible values, so a printed one can be checked without any data."


def _possible(printed: float, pairs: int, runs: int) -> bool:
    answers = pairs * runs
    return round(100 * round(printed / 100 * answers) / answers, 2) == printed
