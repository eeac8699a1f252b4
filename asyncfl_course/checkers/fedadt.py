"""Checkers for lesson 09, FedADT: late models, shares in the global model, the loss, a control without a teacher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, call, expect, expect_close, numbers, shown
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


def _shares(taus: Sequence[int]) -> list[float]:
    found = [1.0]
    for tau in taus:
        found = [(1 - poly(tau)) * share for share in found] + [poly(tau)]
    return found


asks_for(
    "09.2", "Whose model is the global one?", _shares,
    cases=[
        ((taus,), "an arrival multiplies every older share, even the initial one, by 1 - beta")
        for taus in ([0], [3], [8, 3], [0, 1, 3], [5, 0, 99], [99] * 4, [])
    ],
    right="Each arrival takes its share from all before it, so a fresh one wipes out everything older.",
    mistakes={
        "Later arrivals shrink the shares of earlier ones, too, not only the initial model's.":
            lambda taus: [1 - sum(map(poly, taus)), *map(poly, taus)],
        "The share of the initial model is missing at the beginning.":
            lambda taus: _shares(taus)[1:],
    },
)  # fmt: skip


def _kl(teacher: Tensor, student: Tensor) -> Tensor:
    return (teacher.softmax(-1) * (teacher.log_softmax(-1) - student.log_softmax(-1))).sum(-1)


def _labelled(z_C: Tensor, z_S: Tensor, y: Tensor, alpha: float, T: float, **other: Any) -> Tensor:
    """Return FedADT's loss with one deliberate mistake."""
    teacher, student = z_S / T, z_C / T
    kl = _kl(student, teacher) if other.get("turned") else _kl(teacher, student)
    ce = cross_entropy(student if other.get("softened") else z_C, y, reduction="none")
    losses = alpha * other.get("times", 1) * kl + (1 - alpha) * ce
    return losses.sum() if other.get("summed") else losses.mean()


def _logits(*row: float) -> Tensor:
    return torch.tensor([row], dtype=torch.float64)


_DRAW = torch.Generator().manual_seed(0)


def _drawn(rows: int, alpha: float, temperature: float) -> tuple[Tensor, Tensor, Tensor, float, float]:
    z_C, z_S = (torch.round(3 * torch.randn(rows, 3, generator=_DRAW)).double() for _ in range(2))
    return z_C, z_S, torch.randint(3, (rows,), generator=_DRAW), alpha, temperature


asks_for(
    "09.3", "Equation 7 for a batch",
    lambda z_C, z_S, y, alpha, T: labelled_distillation_loss(z_C, z_S, y, alpha, temperature=T),
    cases=[
        (_drawn(1, 0.0, 3.0), "with alpha = 0 only the label's cross entropy is left, which does not use T"),
        (_drawn(1, 1.0, 3.0),
         "with alpha = 1 only the divergence is left, from the teacher to the student, both softened by T, not "
         "multiplied by T²"),
        (_drawn(1, 0.3, 3.0), "alpha weights the divergence, and 1 - alpha the cross entropy"),
        (_drawn(4, 0.6, 2.0), "take the mean over the batch"),
        ((_logits(900, 0, 0), _logits(0, 0, 0), torch.tensor([1]), 0.5, 1.0), "take log_softmax, not log of softmax"),
    ],
    right="Only the teacher's term is softened, so a high temperature weakens the teacher and not the label.",
    mistakes={
        "You softened the cross entropy as well; the label's term does not use T.":
            lambda *known: _labelled(*known, softened=True),
        "The divergence is the wrong way round: it goes from the teacher to the student.":
            lambda *known: _labelled(*known, turned=True),
        "You multiplied by T²; Equation 7 has no such factor.":
            lambda *known: _labelled(*known, times=known[4] ** 2),
        "You took the sum; the mean over the batch is asked for.":
            lambda *known: _labelled(*known, summed=True),
    },
)  # fmt: skip


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
