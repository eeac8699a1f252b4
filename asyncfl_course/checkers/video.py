"""Checkers for lesson 13: the frames that a model sees, a filter for a direction, a student's loss, two guesses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, expect, in_form, number, shown, word
from asyncfl_lite.runs.teacher_chain import logit_error

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
