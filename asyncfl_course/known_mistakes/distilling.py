"""Known mistakes of lessons 06 to 10: distillation and the methods that distil."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot


def _softened(z: Tensor, v: Tensor) -> Tensor:
    return z.softmax(-1) - v.softmax(-1)


def _certainty(p: Tensor) -> Tensor:
    return -torch.xlogy(p, p).sum(-1) / math.log(p.shape[-1])


def _echo(
    W: Tensor, buffer: list, store: dict, inputs: Tensor, lr: float,
    *, base: str = "start", student: str = "moved", heard: str = "all", mean: str = "logits",
) -> Tensor:  # fmt: skip
    """Return the model after one version of FedEcho with one deliberate mistake."""
    moved = W + sum(delta for _, _, delta in buffer) / len(buffer)
    said = dict(store)
    for client, start, delta in buffer:
        said[client] = inputs @ ((start if base == "start" else W) + delta).T
    votes = torch.stack([said[client] for client in said if heard == "all" or client in {one for one, *_ in buffer}])
    p = votes.softmax(-1).mean(0) if mean == "probabilities" else votes.mean(0).softmax(-1)
    share = _certainty(p).mean()
    alpha = 0.8 * share + 0.2 * (1 - share)
    target = alpha * p + (1 - alpha) * one_hot(p.argmax(-1), p.shape[-1])
    error = (inputs @ (moved if student == "moved" else W).T).softmax(-1) - target
    return moved - lr * error.T @ inputs / len(inputs)


def _shares(taus: list[int]) -> list[float]:
    found = [1.0]
    for tau in taus:
        found = [(1 - (tau + 1) ** -0.5) * share for share in found] + [(tau + 1) ** -0.5]
    return found


def _kl(teacher: Tensor, student: Tensor) -> Tensor:
    return (teacher.softmax(-1) * (teacher.log_softmax(-1) - student.log_softmax(-1))).sum(-1)


def _labelled(z_C: Tensor, z_S: Tensor, y: Tensor, alpha: float, T: float, **other: Any) -> Tensor:
    """Return FedADT's loss with one deliberate mistake."""
    teacher, student = z_S / T, z_C / T
    kl = _kl(student, teacher) if other.get("turned") else _kl(teacher, student)
    ce = cross_entropy(student if other.get("softened") else z_C, y, reduction="none")
    losses = alpha * other.get("times", 1) * kl + (1 - alpha) * ce
    return losses.sum() if other.get("summed") else losses.mean()


def _beta(tau: float, s_max: float, *, held: bool = True) -> float:
    return 0.5 * (1 - math.cos(math.pi * (min(tau, 2 * s_max) if held else tau) / (2 * s_max)))


def _adversarial(t: Tensor, s: Tensor, y: Tensor, omega: Tensor, mask: Tensor | float = 1.0) -> Tensor:
    return -(omega[:, y] * mask * _kl(t, s)).sum(0).mean()


def _agree(t: Tensor, s: Tensor) -> Tensor:
    return t.argmax(-1) == s.argmax(-1)


def _moments(features: Tensor, correction: int = 0) -> Tensor:
    return torch.stack([features.mean(1), features.var(1, correction=correction)], dim=1)


def _norms(difference: Tensor) -> Tensor:
    return torch.linalg.vector_norm(difference, dim=-1).sum(-1)


KNOWN: dict[str, dict[str, Callable[..., Any]]] = {
    "06.1": {
        "The chain rule's 1 / T is missing: z enters as z / T.":
            lambda z, v, T: _softened(z / T, v / T),
        "The sign is the wrong way round: it is the student's probabilities minus the teacher's.":
            lambda z, v, T: -_softened(z / T, v / T) / T,
        "Both softmaxes must be at temperature T.":
            lambda z, v, T: _softened(z, v) / T,
        "You multiply by T; the chain rule divides by it.":
            lambda z, v, T: _softened(z / T, v / T) * T,
        "The factor T² is not in this loss.":
            lambda z, v, T: _softened(z / T, v / T) * T**2 / T,
    },
    "06.3": {
        "That is for one other client; the loud one must outweigh all n.":
            lambda n: 2.0,
        "The loud client need not outweigh itself: only the n others say 2.":
            lambda n: 2.0 * (n + 1),
    },
    "07.1": {
        "You weigh by the number of reports, as a buffer does; the store keeps one set of predictions per client.":
            lambda reports, client: reports.count(client) / len(reports),
    },
    "07.2": {
        "Divide the entropy by log C, so that it lies between 0 and 1.":
            lambda p, low, high: low + (high - low) * -torch.xlogy(p, p).sum(-1).mean(),
        "The ends are the wrong way round: an unsure teacher gets the high weight.":
            lambda p, low, high: high + (low - high) * _certainty(p).mean(),
        "The whole batch has one weight: take the mean over its rows.":
            lambda p, low, high: low + (high - low) * _certainty(p),
        "A probability of 0 gives 0 log 0, which is NaN here; torch.xlogy makes it 0.":
            lambda p, low, high: math.nan if (p == 0).any() else None,
    },
    "07.3": {
        "Predictions are those of the client's own model: start + delta, not W + delta.":
            lambda *known: _echo(*known, base="W"),
        "The step starts from the model after the mean delta, not from W, so take the gradient there.":
            lambda *known: _echo(*known, student="W"),
        "The teacher is the mean over everybody in the store, not only over the clients in the buffer.":
            lambda *known: _echo(*known, heard="buffer"),
        "Average the logits first, then take softmax.":
            lambda *known: _echo(*known, mean="probabilities"),
    },
    "08.1": {
        "Your own rows are among the rivals: leave them out before you take the best.":
            lambda table, ours: (table.loc[ours] - table.max()).to_numpy(),
        "You subtract the mean of the others; the claim is about the best of them.":
            lambda table, ours: (table.loc[ours] - table.drop(index=ours).mean()).to_numpy(),
        "You subtract one fixed row; the best rival may be another one in each column.":
            lambda table, ours: (table.loc[ours] - table.iloc[0]).to_numpy(),
    },
    "09.2": {
        "Later arrivals shrink the shares of earlier ones, too, not only the initial model's.":
            lambda taus: [1 - sum((t + 1) ** -0.5 for t in taus), *((t + 1) ** -0.5 for t in taus)],
        "The share of the initial model is missing at the beginning.":
            lambda taus: _shares(taus)[1:],
    },
    "09.3": {
        "You softened the cross entropy as well; the label's term does not use T.":
            lambda *known: _labelled(*known, softened=True),
        "The divergence is the wrong way round: it goes from the teacher to the student.":
            lambda *known: _labelled(*known, turned=True),
        "You multiplied by T²; Equation 7 has no such factor.":
            lambda *known: _labelled(*known, times=known[4] ** 2),
        "You took the sum; the mean over the batch is asked for.":
            lambda *known: _labelled(*known, summed=True),
    },
    "10.1": {
        "The weights are swapped: beta weighs the distilled part, and the client's has 1 − beta.":
            lambda x, d, k, tau, lr, s: x + lr * (_beta(tau, s) * d + (1 - _beta(tau, s)) * k),
        "The cosine turns back: hold the staleness at 2 s_max.":
            lambda x, d, k, tau, lr, s: x + lr * ((1 - _beta(tau, s, held=False)) * d + _beta(tau, s, held=False) * k),
        "The learning rate multiplies both parts; you left it out of the distilled one.":
            lambda x, d, k, tau, lr, s: x + lr * (1 - _beta(tau, s)) * d + _beta(tau, s) * k,
        "The learning rate is missing.":
            lambda x, d, k, tau, lr, s: x + (1 - _beta(tau, s)) * d + _beta(tau, s) * k,
    },
    "10.3": {
        "The mask is missing: where teacher and student disagree, nothing counts.":
            lambda t, s, y, omega: _adversarial(t, s, y, omega),
        "The sign is missing: the generator is rewarded where the two differ.":
            lambda t, s, y, omega: -_adversarial(t, s, y, omega, _agree(t, s)),
        "Your mask compares with the label; it should ask whether teacher and student name the same class.":
            lambda t, s, y, omega: _adversarial(t, s, y, omega, t.argmax(-1) == y),
    },
    "10.4": {
        "Your variance divides by B − 1; stored variances divide by B (correction=0).":
            lambda f, real, y, omega: (omega[:, y].mean(-1) * _norms(_moments(f, 1) - real)).sum(),
        "The norms are not squared here.":
            lambda f, real, y, omega: (omega[:, y].mean(-1) * (_moments(f) - real).square().sum((-2, -1))).sum(),
        "The teachers' weights are missing: each counts with the mean of its omega on the batch's labels.":
            lambda f, real, y, omega: _norms(_moments(f) - real).sum(),
    },
}  # fmt: skip
