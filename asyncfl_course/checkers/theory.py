"""Exercises of lesson 14: a proof's terms, and statements that fail."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from asyncfl_course.exercises import asks_for


def _missed(g: Tensor, delays: Sequence[int], *, squared: bool = True, own: int = 0) -> np.ndarray:
    """Return, for each version, the added lengths of the steps that its gradient missed."""
    size = (g.square().sum(1) if squared else g.square().sum(1).sqrt()).numpy()
    return np.array([size[t - late : t + own].sum() for t, late in enumerate(delays)])


_RNG = np.random.default_rng(0)

asks_for(
    "14.1", "What staleness costs in one version",
    lambda g, late, eta, L: L**2 * eta**2 * max(late) * _missed(g, late),
    cases=[
        ((torch.from_numpy(_RNG.integers(-2, 3, (len(delays), 2)).astype(float)), delays, eta, smooth),
         "at version t, add the squared lengths of the steps t - delays[t] to t - 1, of which a fresh gradient has "
         "none; L and η are squared, but τ, the largest delay, is not")
        for delays, eta, smooth in (([0, 1, 2, 2], 0.4, 1.0), ([0, 0, 0], 0.1, 2.0), ([0, 1, 0, 3, 4, 2], 0.2, 3.0))
    ],
    right="Each missed step moved the model, and smoothness turns distance into error.",
    mistakes={
        "You count the step of version t itself, too; the sum ends at t − 1.":
            lambda g, late, eta, L: L**2 * eta**2 * max(late) * _missed(g, late, own=1),
        "The lengths of the steps must be squared.":
            lambda g, late, eta, L: L**2 * eta**2 * max(late) * _missed(g, late, squared=False),
        "L must be squared.":
            lambda g, late, eta, L: L * eta**2 * max(late) * _missed(g, late),
        "η must be squared.":
            lambda g, late, eta, L: L**2 * eta * max(late) * _missed(g, late),
        "τ must not be squared.":
            lambda g, late, eta, L: L**2 * eta**2 * max(late) ** 2 * _missed(g, late),
        "The factor τ, the largest delay, is missing.":
            lambda g, late, eta, L: L**2 * eta**2 * _missed(g, late),
    },
)  # fmt: skip

asks_for(
    "14.2", "The largest step that does not explode", lambda tau, L: 2 * np.sin(np.pi / (2 * (2 * tau + 1))) / L,
    cases=[
        (inputs,
         "x shrinks as long as all roots of z^(τ+1) - z^τ + ηL lie inside the unit circle; return the largest such η, "
         "not the largest that the theorem allows")
        for inputs in ((0, 1.0), (1, 1.0), (10, 1.0), (4, 5.0))
    ],
    atol=0,
    rtol=1e-2,
    right="Beyond it, the correction arrives when the model is already on the other side.",
    mistakes={
        "This is the largest step that the theorem allows; the question is which is the largest that works.":
            lambda tau, L: 1 / (2 * L * (1 + tau)),
        "This fits τ = 0 and 1 only; look at the roots for larger τ.":
            lambda tau, L: 2 / (L * (1 + tau)),
        "L is missing: the step is divided by it.":
            lambda tau, L: 2 * np.sin(np.pi / (2 * (2 * tau + 1))),
    },
)  # fmt: skip

asks_for(
    "14.3", "Where FedBuff settles", lambda d, c: np.average(c, weights=1 / np.array(d)),
    cases=[
        (inputs,
         "a client of duration d arrives 1/d times in a unit of time; where the model settles, the pulls of all "
         "arrivals add up to zero")
        for inputs in (((1.0, 10.0), (1.0, -1.0)), ((1.0, 2.0, 4.0), (1.0, 1.0, -1.0)), ((3.0, 3.0), (0.0, 1.0)))
    ],
    atol=0.02,
    right="A client of duration d arrives 1/d times per unit of time, and each arrival pulls once.",
    mistakes={
        "You weigh all clients equally; a fast client arrives more often.":
            lambda d, c: np.mean(c),
        "You weigh by duration; a client of duration d arrives 1/d times in a unit of time.":
            lambda d, c: np.average(c, weights=d),
    },
)  # fmt: skip
