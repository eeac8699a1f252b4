"""Checkers for lesson 10, FedRevive: one arrival, a change of delays, and two terms of the generator's loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from asyncfl_course.exercises import Wrong, exercise
from asyncfl_course.expectations import expect_close, shown, words
from asyncfl_course.explore import staleness_weight
from asyncfl_lite.algorithms import synthesis


def _numbers(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.round(3 * torch.randn(shape, generator=generator)).double()


@exercise("10.1", "One arrival")
def one_arrival(answer: Callable) -> str:
    """Check the model after one arrival by FedRevive's Equation 3, for four values of staleness."""
    x, delta, distilled = (torch.tensor(row, dtype=torch.float64) for row in ([1, 0], [0, 0.8], [0.2, -0.2]))
    for tau, s_max, because in (
        (0, 75.0, "a fresh update has beta 0, so the server takes all of it and nothing of the distilled one"),
        (50, 75.0, "beta(50) is 1/4 and weighs the distilled part; the client's part has weight 3/4"),
        (200, 75.0, "beyond 2 s_max beta stays at 1; the cosine must not turn back"),
        (2, 2.0, "beta is 1/2 at s_max, for every s_max"),
    ):
        weight = staleness_weight("fedrevive", beta_family="cosine", s_max=s_max)(tau)
        wanted = x + 0.1 * ((1 - weight) * delta + weight * distilled)
        expect_close(answer, (x, delta, distilled, tau, 0.1, s_max), wanted, because=because)
    return "The staler an update, the more of the step comes from what the teachers say about the model of today."


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


@exercise("10.3", "The adversarial term")
def adversarial_term(answer: Callable) -> str:
    """Check the adversarial term of the generator's loss against the package's."""
    draw = torch.Generator().manual_seed(1)
    omega = torch.tensor([[0.875, 0.4, 1 / 7], [0.125, 0.6, 6 / 7]], dtype=torch.float64)
    wrong_together = torch.tensor([[[0.0, 4.0, 0.0]], [[0.0, 3.0, 0.0]]], dtype=torch.float64)
    half_sure = torch.tensor([[0.0, 1.0, 0.0]], dtype=torch.float64)
    inputs = [
        (wrong_together, half_sure, torch.tensor([0]), omega,
         "the mask compares teacher and student with each other, not with the label; the term is negative"),
        (wrong_together, -half_sure, torch.tensor([1]), omega, "where teacher and student disagree, the term is 0"),
        (_numbers(draw, 2, 4, 3), _numbers(draw, 4, 3), torch.tensor([0, 1, 2, 1]), omega,
         "sum over the teachers, mean over the inputs, KL from the teacher to the student"),
    ]  # fmt: skip
    for teachers, student, labels, weights, because in inputs:
        wanted = float(synthesis.adversarial_loss(teachers, student, labels, weights))
        expect_close(answer, (teachers, student, labels, weights), wanted, because=because)
    return "It looks for images on which the teachers are sure of a class and the student only leans towards it."


@exercise("10.4", "The feature term")
def feature_term(answer: Callable) -> str:
    """Check the feature term of the generator's loss, for one layer, against the package's."""
    draw = torch.Generator().manual_seed(2)
    omega = torch.tensor([[0.875, 0.4, 1 / 7], [0.125, 0.6, 6 / 7]], dtype=torch.float64)
    by_hand = torch.tensor([[[2.0, -1.0], [6.0, -3.0]]], dtype=torch.float64)
    stored = torch.tensor([[[1.0, 2.0], [4.0, 5.0]]], dtype=torch.float64)
    one = torch.ones(1, 3, dtype=torch.float64)
    inputs = [
        (by_hand, stored, torch.tensor([0, 1]), one,
         "the means are off by (3, -4), the variances by (0, -4): 5 + 4, with variances that divide by the number of"
         " inputs"),
        (by_hand.expand(2, 2, 2), stored.expand(2, 2, 2), torch.tensor([0, 1]), omega,
         "each teacher counts with the mean of its weights on the labels of the batch"),
        (_numbers(draw, 2, 5, 3), _numbers(draw, 2, 2, 3), torch.tensor([0, 1, 2, 2, 1]), omega,
         "one norm for the means and one for the variances of each teacher, not squared"),
    ]  # fmt: skip
    for features, real, labels, weights, because in inputs:
        found = torch.stack([features.mean(1), features.var(1, correction=0)], dim=1)
        wanted = float(synthesis.feature_loss([found], real, labels, weights))
        expect_close(answer, (features, real, labels, weights), wanted, because=because)
    return "Images look like data if they excite a layer as the client's own data did, in mean and in variance."
