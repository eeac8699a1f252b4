"""Checkers for lesson 12: scored positions, token accuracy and exact match, and how many problems a lead needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch

from asyncfl_course.exercises import Wrong, exercise
from asyncfl_course.expectations import expect_close, in_form, number, shown
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.task import Task


@lru_cache(maxsize=1)
def _task() -> Task:
    return TASKS.get("modmath")(samples=20, test_samples=10, scored=1).load()


@exercise("12.3", "Which positions count")
def counted(answer: Callable) -> str:
    """Check which positions' predictions are scored, for four batches of tokens."""
    for rows, because in (
        ([[3, 5, 4, 1, 7, 7, 2, 0]],
         "the marker predicts the first answer token, the last digit predicts the end, and the end predicts nothing"),
        ([[4, 1, 9, 2, 0, 0], [4, 6, 3, 1, 9, 2]], "the marker is at another position in each row"),
        ([[4, 6, 3, 1], [6, 1, 9, 9]], "a row may be full before its end; then all positions from the marker on count"),
        ([[2, 5, 1, 7, 2, 0]], "an end before the marker belongs to the question and stops nothing"),
    ):  # fmt: skip
        given = torch.tensor(rows)
        expect_close(answer, (given,), _task().counted(given).float(), because=because)
    return "The marker's own prediction is the first of the answer, and the last one says that the answer ends."


@exercise("12.4", "Right tokens and right answers")
def two_scores(answer: Callable) -> str:
    """Check token accuracy and exact match under teacher forcing."""
    for said, labels, wanted, because in (
        ([[7, 7, 4, 9, 2], [7, 8, 2, 7, 7]], [[-100, -100, 4, 7, 2], [-100, 8, 2, -100, -100]], (5 / 6, 1 / 2),
         "2 of 3 tokens and 2 of 2 are right, so the mean over the problems is 0.8333, not 4 of 5"),
        ([[5, 6, 2]], [[5, 6, 2]], (1.0, 1.0), "all tokens are right, so the model writes this answer"),
        ([[3, 4, 5], [3, 4, 5]], [[-100, 4, 6], [-100, 9, 5]], (1 / 2, 0.0),
         "half of the tokens of each answer are right, but no whole answer is"),
        ([[1, 2], [3, 4], [5, 6]], [[-100, 2], [-100, 4], [-100, 6]], (1.0, 1.0),
         "positions with the label -100 do not count, whatever the model says there"),
    ):  # fmt: skip
        expect_close(answer, (torch.tensor(said), torch.tensor(labels)), wanted, because=because)
    return "An answer needs all its tokens, so most tokens can be right while most answers are wrong."


@exercise("12.1", "How large a test set?")
def problems_needed(answer: Callable) -> str:
    """Check the number of test problems at which a lead equals two standard errors of the paired difference."""
    for lead, differ, because in (
        (0.01, 0.1, "one error is sqrt(0.1 / n), and two errors must equal 0.01, so n = 4 · 0.1 / 0.01²"),
        (0.0046, 0.05, "Table 5's lead, if one answer in twenty differs"),
        (0.05, 0.2, "a lead of 5 points needs few problems"),
        (0.0046, 0.0, "if no answer differed, there would be no error"),
    ):
        expect_close(answer, (lead, differ), 4 * differ / lead**2, because=because, atol=1.0, rtol=0.01)
    return "The error shrinks only with the root of n, so half the lead needs four times as many problems."


@exercise("12.2", "Guess: mild delays instead of large ones")
def changed_orders(answer: int) -> str:
    """Check a guess about how many of 20 schedules change their order of arrivals under mild delays."""
    guess = number(answer, asked := f"Give a number from 0 to 20; your answer is {shown(answer)}.")
    in_form(0 <= guess <= 20, asked)
    if guess != 0:
        raise Wrong(
            f"Your answer is {guess:g}, expected 0. A long job takes 10 to 20 units under the mild law and 50 to 80 "
            "under the large one. The fifteenth report arrives after 7 to 10 units, so no long job has reported by "
            "then.",
            f"Your answer {guess:g} is too large. How long does the shortest of the long jobs take under each law, and "
            "after how many units does the fifteenth report arrive?",
        )
    return "Such a run is over before the shortest long job ends, so no straggler has a say in it."
