"""Checkers for lesson 06: gradients of softened losses, teachers' averages, a stale teacher."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, expect, number, numbers
from asyncfl_lite.algorithms.losses import kl_divergence


def _logits(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _gradient(z: Tensor, v: Tensor, temperature: float) -> Tensor:
    free = z.clone().requires_grad_()
    kl_divergence((v / temperature).softmax(-1), free / temperature).backward()
    return free.grad


def _apart(z: Tensor, v: Tensor) -> Tensor:
    return z.softmax(-1) - v.softmax(-1)


asks_for(
    "06.1", "The gradient of a softened loss", _gradient,
    cases=[
        ((_logits(0, 1, 0), _logits(2, 0, -1), 1.0), "at T = 1 it is the student's probabilities minus the teacher's"),
        ((_logits(0, 1, 0), _logits(2, 0, -1), 4.0), "both softmaxes have temperature T, and z enters as z / T"),
        ((_logits(3, -2), _logits(0, 0), 0.5), "T below 1 makes both sharper, and the gradient in z larger"),
        ((_logits(1, 2, 3, 4), _logits(6, 7, 8, 9), 2.0),
         "logits that differ by a constant give the same probabilities"),
    ],
    right="The chain rule through z/T adds one factor 1/T to the difference of outputs.",
    mistakes={
        "The chain rule's 1 / T is missing: z enters as z / T.":
            lambda z, v, T: _apart(z / T, v / T),
        "The sign is the wrong way round: it is the student's probabilities minus the teacher's.":
            lambda z, v, T: -_apart(z / T, v / T) / T,
        "Both softmaxes must be at temperature T.":
            lambda z, v, T: _apart(z, v) / T,
        "You multiply by T; the chain rule divides by it.":
            lambda z, v, T: _apart(z / T, v / T) * T,
        "The factor T² is not in this loss.":
            lambda z, v, T: _apart(z / T, v / T) * T**2 / T,
    },
)  # fmt: skip


@exercise("06.2", "From T = 10 to T = 30")
def shrinks(answer: Any) -> str:
    """Check that the answer is a factor of 8 to 10, and explain the missing 1 / T if it is near 3."""
    factor = number(answer, "Please give one number, such as 2.0.")
    if abs(factor - 3) < 0.8:
        raise Wrong(
            f"Your answer {factor:g} contains only the chain rule's 1 / T, from 10 to 30. The two distributions also "
            "come closer to each other by a factor of about 1 / T."
        )
    expect(factor >= 1, f"Your answer {factor:g} is below 1. By what factor is the gradient smaller at T = 30?")
    if not 8 <= factor <= 10:
        off = "too large" if factor > 10 else "too small"
        raise Wrong(
            f"Your answer {factor:g} for T from 10 to 30 is {off}, because there are two factors 1 / T.",
            f"Your answer {factor:g} is {off}. What factor does the chain rule give for z / T, and how far apart are "
            "the two softened distributions?",
        )
    return "One factor 1/T comes from the chain rule, the other from outputs that grow alike."


asks_for(
    "06.3", "The loud one", lambda others: 2.0 * others,
    cases=[  # FedEcho's experiments have 49 others
        ((others,), f"softmax keeps the order of logits, and each mean is over all {others + 1} clients")
        for others in (1, 9, 49)
    ],
    right="In a mean of logits, size is power: one large logit outweighs many small ones.",
    mistakes={
        "That is for one other client; the loud one must outweigh all n.":
            lambda n: 2.0,
        "The loud client need not outweigh itself: only the n others say 2.":
            lambda n: 2.0 * (n + 1),
    },
)  # fmt: skip


@exercise("06.4", "Before you run it")
def stale(answer: Any) -> str:
    """Accept guesses of at most 20 % accuracy if the update is added, and at least 75 % if it is distilled."""
    added, taught = numbers(answer, 2, "Please give two numbers in percent: (added, taught).")
    expect(min(added, taught) >= 0 and max(added, taught) <= 100, "Both are percentages, from 0 to 100.")
    expect(max(added, taught) > 1, "Both are percentages: 50 means half of the images, 0.5 means nearly none.")
    expect(
        added <= 20,
        f"Added: {added:g}% is too much. The update led from the common start to the client. From a server that has "
        "moved 300 steps it leads elsewhere, and the server's output layer has learned never to predict 7, 8 or 9.",
    )
    expect(
        taught >= 75,
        f"Taught: {taught:g}% is too little. The client's outputs are about the inputs, and the server's 300 steps "
        "have changed neither the inputs nor the outputs.",
    )
    return "An update depends on where it was computed; a prediction does not."
