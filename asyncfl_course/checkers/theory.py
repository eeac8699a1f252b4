"""Checkers for lesson 14: a proof's terms, and statements that fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from asyncfl_course.exercises import exercise
from asyncfl_course.expectations import expect_close


@exercise("14.1", "What staleness costs in one version")
def staleness_bound(answer: Any) -> str:
    """Compare the answer with the right side of line 3 of the proof, computed version by version."""
    rng = np.random.default_rng(0)
    for delays, eta, smooth in (([0, 1, 2, 2], 0.4, 1.0), ([0, 0, 0], 0.1, 2.0), ([0, 1, 0, 3, 4, 2], 0.2, 3.0)):
        g = torch.from_numpy(rng.integers(-2, 3, (len(delays), 2)).astype(float))
        sums = [sum(float(g[s].square().sum()) for s in range(t - late, t)) for t, late in enumerate(delays)]
        expect_close(
            answer,
            (g, delays, eta, smooth),
            [smooth**2 * eta**2 * max(delays) * one for one in sums],
            because="at version t, add the squared lengths of the steps t - delays[t] to t - 1, of which a fresh "
            "gradient has none; L and η are squared, but τ, the largest delay, is not",
        )
    return "Each missed step moved the model, and smoothness turns distance into error."


@exercise("14.2", "The largest step that does not explode")
def largest_step(answer: Any) -> str:
    """Compare the answer with the largest stable step in closed form, 2 sin(π / (4τ + 2)) / L."""
    for tau, smooth in ((0, 1.0), (1, 1.0), (10, 1.0), (4, 5.0)):
        expect_close(
            answer,
            (tau, smooth),
            2 * np.sin(np.pi / (2 * (2 * tau + 1))) / smooth,
            atol=0,
            rtol=1e-2,
            because="x shrinks as long as all roots of z^(τ+1) - z^τ + ηL lie inside the unit circle; return the "
            "largest such η, not the largest that the theorem allows",
        )
    return "Beyond it, the correction arrives when the model is already on the other side."


@exercise("14.3", "Where FedBuff settles")
def settles(answer: Any) -> str:
    """Compare the answer with the mean of the clients' optima, weighted by how often each client arrives."""
    cases = (((1.0, 10.0), (1.0, -1.0)), ((1.0, 2.0, 4.0), (1.0, 1.0, -1.0)), ((3.0, 3.0), (0.0, 1.0)))
    for durations, centres in cases:
        expect_close(
            answer,
            (durations, centres),
            np.average(centres, weights=1 / np.array(durations)),
            atol=0.02,
            because="a client of duration d arrives 1/d times in a unit of time; where the model settles, the pulls "
            "of all arrivals add up to zero",
        )
    return "A client of duration d arrives 1/d times per unit of time, and each arrival pulls once."
