"""Exercises of the course's fourth part, "Other data": lessons 11 to 13."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, expect, in_form, number, shown, word
from asyncfl_lite.runs.teacher_chain import logit_error
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.task import Task

# --- 11: text -------------------------------------------------------------------------------------


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


# --- 12: generation -------------------------------------------------------------------------------


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


# --- 13: video ------------------------------------------------------------------------------------


STARTS = ("random", "labels only", "teacher", "teacher, assistant")


asks_for(
    "13.1", "Which frames a model sees", lambda length, n: [int((k + 0.5) * length / n) for k in range(n)],
    cases=[
        ((32, 4), "the four parts have 8 frames each, and their middles are 4, 12, 20 and 28"),
        ((8, 8), "each of the 8 frames is shown once"),
        ((7, 2), "parts of 3.5 frames have their middles at 1.75 and 5.25, which are rounded down"),
        ((10, 1), "a single frame is the one in the middle"),
        ((3, 8), "a recording with fewer frames than are asked for shows some of them several times"),
    ],
    right="Middles show the action; the first and last frames of a recording often do not.",
    mistakes={
        "You spread the frames from the first to the last; take the middle of each part.":
            lambda length, n: np.linspace(0, length - 1, n).astype(int),
        "This is where each part begins; add half of a part.":
            lambda length, n: [k * length // n for k in range(n)],
        "You round; the brackets ⌊ ⌋ cut off.":
            lambda length, n: [round((k + 0.5) * length / n) for k in range(n)],
    },
)  # fmt: skip


def _dot(places: Sequence[int], width: int) -> Tensor:
    return torch.eye(width)[list(places)]


def _strongest(kernel: Tensor, clip: Tensor) -> float:
    windows = clip.unfold(0, 2, 1).unfold(1, 2, 1)
    return float((windows * kernel).sum((-1, -2)).max())


@exercise("13.2", "A filter that finds left")
def finds_left(answer: Sequence[Sequence[float]]) -> str:
    """Check that a 2×2 filter in time and space responds most strongly to dots that move left."""
    kernel = torch.as_tensor(answer, dtype=torch.float32)
    in_form(tuple(kernel.shape) == (2, 2), f"The filter has the shape {tuple(kernel.shape)}, expected (2, 2).")
    for left, other, width, what in (
        ((3, 2, 1), (1, 2, 3), 5, "moves right"),
        ((3, 2, 1), (2, 2, 2), 5, "stands still"),
        ((5, 4, 3, 2), (1, 2, 3, 4), 7, "moves right"),
    ):
        found, confused = _strongest(kernel, _dot(left, width)), _strongest(kernel, _dot(other, width))
        expect(
            found > confused,
            f"On a dot at {left} of {width} pixels, which moves left, your filter's strongest response is {found:g}. "
            f"On a dot at {other}, which {what}, it is {confused:g}, but should be smaller. Rows are time and columns "
            "are pixels. Where is the dot one frame later?",
        )
    return "The filter spans time and space, so it sees an order that no average over frames can see."


@exercise("13.3", "Guess: eight frames against two")
def eight_frames(answer: float) -> str:
    """Check a guess about how much eight frames gain over two if both use the smaller learning rate."""
    guess = number(answer, f"Give a number of points; your answer is {shown(answer)}.")
    expect(
        guess <= 4,
        f"Your guess {guess:+g} is too large. Two frames get 80% at the rate of 0.2, but they gain from the "
        "smaller rate as well. Compare both at the same rate.",
    )
    expect(
        guess >= -4,
        f"Your guess {guess:+g} is too low. The larger rate caused the collapse with eight frames. At the smaller rate "
        "the network learns from eight frames all that two frames show.",
    )
    return "The larger rate caused the collapse, not the frames: at a suitable rate the two are nearly level."


_STUDENT = torch.tensor([[2.0, 0.0, -1.0], [0.5, 0.5, 0.0]])
_TEACHER = torch.tensor([[1.0, 1.0, 0.0], [0.5, 2.5, 0.0]])
_LABELS = torch.tensor([0, 1])

asks_for(
    "13.4", "What a student learns from", lambda s, t, y, a: a * cross_entropy(s, y) + (1 - a) * logit_error(s, t),
    cases=[
        ((_STUDENT, _TEACHER, _LABELS, 0.0),
         "a = 0 leaves only the logits' squared error, a mean over classes and clips"),
        ((_STUDENT, _TEACHER, _LABELS, 1.0), "a = 1 leaves only the cross-entropy with the labels"),
        ((_STUDENT, _TEACHER, _LABELS, 0.5), "both terms count half"),
        ((_STUDENT[:1], _STUDENT[:1], _LABELS[:1], 0.25), "a teacher with the same logits adds nothing"),
    ],
    right="A sum over classes would weigh the teacher far more at the same a, so a means little by itself.",
    mistakes={
        "Your squared error is a sum over classes; take the mean over classes, too.":
            lambda s, t, y, a: a * cross_entropy(s, y) + (1 - a) * ((s - t) ** 2).sum(-1).mean(),
        "The weights are swapped: a weighs the labels.":
            lambda s, t, y, a: (1 - a) * cross_entropy(s, y) + a * ((s - t) ** 2).mean(),
        "You compare probabilities; the squared error compares logits.":
            lambda s, t, y, a: a * cross_entropy(s, y) + (1 - a) * ((s.softmax(-1) - t.softmax(-1)) ** 2).mean(),
    },
)  # fmt: skip


@exercise("13.5", "Guess: which start is best?")
def best_start(answer: str) -> str:
    """Check a guess about which of the four recorded starts is best."""
    asked = f"Your answer {shown(answer)} is none of the four starts: {', '.join(map(repr, STARTS))}."
    said = word(answer, STARTS, asked)
    if said != "labels only":
        low = f"Your answer {said!r} is not highest on any of the three recorded seeds."
        raise Wrong(
            f"{low} The student that saw the server's clips with their labels, without a teacher, is highest on each.",
            f"{low} What does a student learn from a teacher that it does not learn from the clips' labels?",
        )
    return "The control with labels only wins, so the extra clips help here, and the teacher does not."
