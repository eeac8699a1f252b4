"""Checkers for lesson 09, FedADT: late models, shares in the global model, the loss, a control without a teacher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from asyncfl_course.exercises import Wrong, exercise
from asyncfl_course.expectations import call, expect, expect_close, numbers, shown
from asyncfl_course.explore import predicted_staleness
from asyncfl_lite.algorithms import FedADT
from asyncfl_lite.algorithms.losses import labelled_distillation_loss
from asyncfl_lite.algorithms.mixing import poly
from asyncfl_lite.base.errors import AsyncFLError


@exercise("09.1", "How late, and how light")
def late_and_light(answer: Sequence[float]) -> str:
    """Check the mean staleness for a target of 200 clients in flight, and the weight that follows from it."""
    wanted = predicted_staleness("refill", 200, 1)
    age, weight = numbers(answer, 2, f"Please give two numbers, (staleness, beta); this is {shown(answer)}.")
    if abs(age - wanted) >= 10:
        hint = (
            "groups of 100 are sent when fewer than 200 are in flight, so think of the mean between the fewest and the "
            "most in flight"
        )
        raise Wrong(
            f"Your staleness is {age:g}, expected about {wanted:g} for a target of 200 clients: {hint}.",
            f"Your staleness {age:g} is too {'large' if age > wanted else 'small'}: {hint}.",
        )
    expect_close(
        weight, None, poly(age), atol=2e-3, because="beta is one over the square root of staleness plus one",
        called="Your beta",
    )  # fmt: skip
    return "While one client trains, each of the others in flight makes a version, so staleness is their number."


@exercise("09.2", "Whose model is the global one?")
def shares(answer: Callable) -> str:
    """Check each arrival's share in the global model, and the share of the initial model."""
    for taus in ([0], [3], [8, 3], [0, 1, 3], [5, 0, 99], [99] * 4, []):
        wanted = [1.0]
        for tau in taus:
            beta = poly(tau)
            wanted = [(1 - beta) * share for share in wanted] + [beta]
        expect_close(
            answer,
            (taus,),
            wanted,
            because="an arrival multiplies every older share, even the initial one, by 1 - beta",
        )
    return "Each arrival takes its share from all before it, so a fresh one wipes out everything older."


@exercise("09.3", "Equation 7 for a batch")
def loss_of_a_batch(answer: Callable) -> str:
    """Check the answer's loss for a batch against the package's FedADT loss."""
    draw = torch.Generator().manual_seed(0)
    for rows, alpha, temperature, because in (
        (1, 0.0, 3.0, "with alpha = 0 only the label's cross entropy is left, which does not use T"),
        (1, 1.0, 3.0, "with alpha = 1 only the divergence is left, from the teacher to the student, both softened by T,"
                      " not multiplied by T²"),
        (1, 0.3, 3.0, "alpha weights the divergence, and 1 - alpha the cross entropy"),
        (4, 0.6, 2.0, "take the mean over the batch"),
    ):  # fmt: skip
        z_C, z_S = (torch.round(3 * torch.randn(rows, 3, generator=draw)).double() for _ in range(2))
        y = torch.randint(3, (rows,), generator=draw)
        wanted = float(labelled_distillation_loss(z_C, z_S, y, alpha, temperature=temperature))
        expect_close(answer, (z_C, z_S, y, alpha, temperature), wanted, because=because)
    far = torch.tensor([[900.0, 0.0, 0.0]], dtype=torch.float64)
    given = call(answer, far, torch.zeros(1, 3, dtype=torch.float64), torch.tensor([1]), 0.5, 1.0)
    expect(
        bool(torch.isfinite(torch.as_tensor(given))),
        f"loss gives {shown(given)} for the student's logits {shown(far)}. Take log_softmax, not log of softmax.",
    )
    return "Only the teacher's term is softened, so a high temperature weakens the teacher and not the label."


@exercise("09.4", "Take the teacher out, and nothing else")
def without_teacher(answer: Callable) -> str:
    """Check that the answer removes the teacher's term but keeps the length of the labels' gradient step."""
    for rate, weight in ((0.3, 0.6), (0.1, 0.2), (0.03, 0.0), (0.3, 1.0)):
        given: Any = call(answer, rate, weight)
        where = f"control({rate:g}, {weight:g}) gives {shown(given)}"
        needed = {"alpha_min", "alpha_max", "kd_lr"}
        expect(isinstance(given, dict) and set(given) == needed, f"{where}; a dictionary of {', '.join(sorted(needed))}"
               " is asked for.")  # fmt: skip
        try:
            server = FedADT(**given)
        except AsyncFLError as error:
            raise Wrong(f"{where}, which FedADT does not take: {error}") from None
        most = max(server.kl_weight(0), server.kl_weight(10**6))
        expect(most == 0, f"{where}: the teacher still has the weight {most:g} in the loss.")
        before, after = rate * (1 - weight), float(server.settings.kd_lr)
        expect(
            abs(before - after) < 1e-9,
            f"{where}: a label's step was {rate:g} · {1 - weight:g} = {before:g} long, and is now {after:g}. A"
            " difference may then come from the labels.",
        )
    return "Without the teacher a label has the whole weight, so the rate must shrink to keep its step as long."
