"""Exercises of lesson 12: scored positions, token accuracy and exact match, and how many problems a lead needs."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, in_form, number, shown
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.task import Task

asks_for(
    "12.1", "How large a test set?", lambda lead, differ: 4 * differ / lead**2,
    cases=[
        ((0.01, 0.1), "one error is sqrt(0.1 / n), and two errors must equal 0.01, so n = 4 · 0.1 / 0.01²"),
        ((0.0046, 0.05), "Table 5's lead, if one answer in twenty differs"),
        ((0.05, 0.2), "a lead of 5 points needs few problems"),
        ((0.0046, 0.0), "if no answer differed, there would be no error"),
    ],
    atol=1.0,
    rtol=0.01,
    right="The error shrinks only with the root of n, so half the lead needs four times as many problems.",
    mistakes={
        "That is one error; the lead must be two.":
            lambda lead, differ: differ / lead**2,
        "You used an error of two independent accuracies; the two models answer the same problems.":
            lambda lead, differ: 2 / lead**2,
        "You multiplied by 2; two errors make a factor 2² in n.":
            lambda lead, differ: 2 * differ / lead**2,
    },
)  # fmt: skip


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


@lru_cache(maxsize=1)
def _task() -> Task:
    return TASKS.get("modmath")(samples=20, test_samples=10, scored=1).load()


def _marked(rows: Tensor) -> Tensor:
    return (rows == 1).cumsum(-1) > 0


asks_for(
    "12.3", "Which positions count", lambda rows: _task().counted(rows).float(),
    cases=[
        ((torch.tensor([[3, 5, 4, 1, 7, 7, 2, 0]]),),
         "the marker predicts the first answer token, the last digit predicts the end, and the end predicts nothing"),
        ((torch.tensor([[4, 1, 9, 2, 0, 0], [4, 6, 3, 1, 9, 2]]),), "the marker is at another position in each row"),
        ((torch.tensor([[4, 6, 3, 1], [6, 1, 9, 9]]),),
         "a row may be full before its end; then all positions from the marker on count"),
        ((torch.tensor([[2, 5, 1, 7, 2, 0]]),), "an end before the marker belongs to the question and stops nothing"),
    ],
    right="The marker's own prediction is the first of the answer, and the last one says that the answer ends.",
    mistakes={
        "The end's own position does not count: nothing is predicted there.":
            lambda rows: _marked(rows) & (rows != 0),
        "The marker's own position counts: the first token of the answer is predicted there.":
            lambda rows: _marked(rows) & (rows != 1) & (rows != 0),
        "An end before the marker belongs to the question; only one after it stops the answer.":
            lambda rows: _marked(rows) & ((rows == 2).cumsum(-1) == 0),
    },
)  # fmt: skip


def _two_scores(said: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    counts, hits = labels != -100, (said == labels) & (labels != -100)
    shares = hits.sum(1) / counts.sum(1)
    return shares.mean(), (shares == 1).float().mean()


asks_for(
    "12.4", "Right tokens and right answers", _two_scores,
    cases=[
        ((torch.tensor([[7, 7, 4, 9, 2], [7, 8, 2, 7, 7]]),
          torch.tensor([[-100, -100, 4, 7, 2], [-100, 8, 2, -100, -100]])),
         "2 of 3 tokens and 2 of 2 are right, so the mean over the problems is 0.8333, not 4 of 5"),
        ((torch.tensor([[5, 6, 2]]), torch.tensor([[5, 6, 2]])),
         "all tokens are right, so the model writes this answer"),
        ((torch.tensor([[3, 4, 5], [3, 4, 5]]), torch.tensor([[-100, 4, 6], [-100, 9, 5]])),
         "half of the tokens of each answer are right, but no whole answer is"),
        ((torch.tensor([[1, 2], [3, 4], [5, 6]]), torch.tensor([[-100, 2], [-100, 4], [-100, 6]])),
         "positions with the label -100 do not count, whatever the model says there"),
    ],
    right="An answer needs all its tokens, so most tokens can be right while most answers are wrong.",
    mistakes={
        "You took all tokens together; take each problem's share first, then the mean over problems.":
            lambda said, y: [((said == y) & (y != -100)).sum() / (y != -100).sum(),
                             ((said == y) | (y == -100)).all(1).float().mean()],
        "You count positions with the label −100; leave them out.":
            lambda said, y: [(said == y).float().mean(), (said == y).all(1).float().mean()],
    },
)  # fmt: skip
