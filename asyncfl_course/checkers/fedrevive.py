"""Checkers for lesson 10, FedRevive: one arrival, a change of delays, and two terms of the generator's loss."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, shown, words
from asyncfl_course.explore import staleness_weight
from asyncfl_lite.algorithms import synthesis


def _tensor(*values: float | Sequence) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _arrival(x: Tensor, delta: Tensor, distilled: Tensor, tau: int, lr: float, s_max: float) -> Tensor:
    beta = staleness_weight("fedrevive", beta_family="cosine", s_max=s_max)(tau)
    return x + lr * ((1 - beta) * delta + beta * distilled)


def _beta(tau: float, s_max: float, *, held: bool = True) -> float:
    return 0.5 * (1 - math.cos(math.pi * (min(tau, 2 * s_max) if held else tau) / (2 * s_max)))


_PARTS = _tensor(1, 0), _tensor(0, 0.8), _tensor(0.2, -0.2)

asks_for(
    "10.1", "One arrival", _arrival,
    cases=[
        ((*_PARTS, 0, 0.1, 75.0),
         "a fresh update has beta 0, so the server takes all of it and nothing of the distilled one"),
        ((*_PARTS, 50, 0.1, 75.0),
         "beta(50) is 1/4 and weighs the distilled part; the client's part has weight 3/4"),
        ((*_PARTS, 200, 0.1, 75.0), "beyond 2 s_max beta stays at 1; the cosine must not turn back"),
        ((*_PARTS, 2, 0.1, 2.0), "beta is 1/2 at s_max, for every s_max"),
    ],
    right="The staler an update, the more of the step comes from what the teachers say about the model of today.",
    mistakes={
        "The weights are swapped: beta weighs the distilled part, and the client's has 1 − beta.":
            lambda x, d, k, tau, lr, s: x + lr * (_beta(tau, s) * d + (1 - _beta(tau, s)) * k),
        "The cosine turns back: hold the staleness at 2 s_max.":
            lambda x, d, k, tau, lr, s: x + lr * ((1 - _beta(tau, s, held=False)) * d + _beta(tau, s, held=False) * k),
        "The learning rate multiplies both parts; you left it out of the distilled one.":
            lambda x, d, k, tau, lr, s: x + lr * (1 - _beta(tau, s)) * d + _beta(tau, s) * k,
        "The learning rate is missing.":
            lambda x, d, k, tau, lr, s: x + (1 - _beta(tau, s)) * d + _beta(tau, s) * k,
    },
)  # fmt: skip


@exercise("10.2", "Eight times quicker")
def eight_times_quicker(answer: Sequence[str]) -> str:
    """Check a guess about how staleness and beta change if all delays are about eight times shorter."""
    allowed = ("up", "down", "same")
    asked = f"Please give two words of {', '.join(allowed)} as (staleness, beta); this is {shown(answer)}."
    said = words(answer, 2, allowed, asked)
    if said[0] != "same":
        raise Wrong(
            f"You say {said[0]!r} for staleness, but staleness counts versions. 100 clients stay in flight, so 99"
            " others make a version while one trains, however long that takes.",
            "Staleness: does it count time or versions, and how many clients are in flight?",
        )
    if said[1] != "up":
        raise Wrong(
            f"You say {said[1]!r} for beta. But nearly fresh updates, with beta near 0, become rarer, and so do very"
            " late ones, with beta 1. More updates lie in between, where beta is steep.",
            "Beta: draw it over staleness. The spread shrinks on both sides; on which side does beta change more?",
        )
    return "Staleness counts versions, so its mean stays; its shape changes, and with it the mean of beta."


_DRAW = torch.Generator().manual_seed(1)
_OMEGA = _tensor([0.875, 0.4, 1 / 7], [0.125, 0.6, 6 / 7])
_WRONG_TOGETHER, _HALF_SURE = _tensor([[0, 4, 0]], [[0, 3, 0]]), _tensor([0, 1, 0])


def _drawn(*shape: int) -> Tensor:
    return torch.round(3 * torch.randn(shape, generator=_DRAW)).double()


def _adversarial(t: Tensor, s: Tensor, y: Tensor, omega: Tensor, mask: Tensor | float = 1.0) -> Tensor:
    kl = (t.softmax(-1) * (t.log_softmax(-1) - s.log_softmax(-1))).sum(-1)
    return -(omega[:, y] * mask * kl).sum(0).mean()


asks_for(
    "10.3", "The adversarial term", synthesis.adversarial_loss,
    cases=[
        ((_WRONG_TOGETHER, _HALF_SURE, torch.tensor([0]), _OMEGA),
         "the mask compares teacher and student with each other, not with the label; the term is negative"),
        ((_WRONG_TOGETHER, -_HALF_SURE, torch.tensor([1]), _OMEGA),
         "where teacher and student disagree, the term is 0"),
        ((_drawn(2, 4, 3), _drawn(4, 3), torch.tensor([0, 1, 2, 1]), _OMEGA),
         "sum over the teachers, mean over the inputs, KL from the teacher to the student"),
    ],
    right="It looks for images on which the teachers are sure of a class and the student only leans towards it.",
    mistakes={
        "The mask is missing: where teacher and student disagree, nothing counts.":
            _adversarial,
        "The sign is missing: the generator is rewarded where the two differ.":
            lambda t, s, y, omega: -_adversarial(t, s, y, omega, t.argmax(-1) == s.argmax(-1)),
        "Your mask compares with the label; it should ask whether teacher and student name the same class.":
            lambda t, s, y, omega: _adversarial(t, s, y, omega, t.argmax(-1) == y),
    },
)  # fmt: skip


def _moments(features: Tensor, correction: int = 0) -> Tensor:
    return torch.stack([features.mean(1), features.var(1, correction=correction)], dim=1)


def _norms(difference: Tensor) -> Tensor:
    return torch.linalg.vector_norm(difference, dim=-1).sum(-1)


_BY_HAND, _STORED = _tensor([[2, -1], [6, -3]]), _tensor([[1, 2], [4, 5]])

asks_for(
    "10.4", "The feature term", lambda f, real, y, omega: synthesis.feature_loss([_moments(f)], real, y, omega),
    cases=[
        ((_BY_HAND, _STORED, torch.tensor([0, 1]), torch.ones_like(_OMEGA[:1])),
         "the means are off by (3, -4), the variances by (0, -4): 5 + 4, with variances that divide by the number of "
         "inputs"),
        ((_BY_HAND.expand(2, 2, 2), _STORED.expand(2, 2, 2), torch.tensor([0, 1]), _OMEGA),
         "each teacher counts with the mean of its weights on the labels of the batch"),
        ((_drawn(2, 5, 3), _drawn(2, 2, 3), torch.tensor([0, 1, 2, 2, 1]), _OMEGA),
         "one norm for the means and one for the variances of each teacher, not squared"),
    ],
    right="Images look like data if they excite a layer as the client's own data did, in mean and in variance.",
    mistakes={
        "Your variance divides by B − 1; stored variances divide by B (correction=0).":
            lambda f, real, y, omega: (omega[:, y].mean(-1) * _norms(_moments(f, 1) - real)).sum(),
        "The norms are not squared here.":
            lambda f, real, y, omega: (omega[:, y].mean(-1) * (_moments(f) - real).square().sum((-2, -1))).sum(),
        "The teachers' weights are missing: each counts with the mean of its omega on the batch's labels.":
            lambda f, real, y, omega: _norms(_moments(f) - real).sum(),
    },
)  # fmt: skip
