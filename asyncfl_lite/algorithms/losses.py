"""Losses by which one model learns from the predictions of others.

All work on logits of shape ``(n, C)``, or on the logits of several models side by side, ``(G, n, C)``, and use natural
logarithms. In distillation, teachers are constants: no gradient flows into them.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from asyncfl_lite.models.handwritten_gradients import cross_entropy_gradient, has_gradient, kl_gradient


def kl_divergence(target: Tensor, logits: Tensor) -> Tensor:
    """Return ``KL(target ‖ softmax(logits))`` for each sample.

    Args:
        target: ``(n, C)`` probabilities; entries of 0 add nothing.
        logits: ``(n, C)`` logits of the student.

    Returns:
        ``(n,)`` nats.
    """
    return (torch.xlogy(target, target) - target * logits.log_softmax(-1)).sum(-1)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the ``(…, n)`` cross entropies of ``(…, n, C)`` logits and ``(…, n)`` int64 labels."""
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none")
    return losses.view(labels.shape)


def entropy(probabilities: Tensor) -> Tensor:
    """Return the ``(n,)`` entropies, in nats, of ``(n, C)`` probabilities."""
    return -torch.xlogy(probabilities, probabilities).sum(-1)


def _mean_gradient(weights: Tensor, logits: Tensor) -> Tensor:
    """Return the ``(…, n)`` gradient of ``weights (…)`` times the mean of n losses, with respect to each loss."""
    return (weights.unsqueeze(-1) / logits.shape[-2]).expand(logits.shape[:-1])


def mean_teacher(logits: Tensor, how: Literal["logits", "probs"] = "logits") -> Tensor:
    """Return the combined ``(n, C)`` class probabilities of several teachers.

    Args:
        logits: ``(S, n, C)`` one slice per teacher.
        how: ``logits``, the softmax of the mean logits (FedEcho Alg. 1, line 14), or ``probs``, the mean of the softmax
            outputs (FedEcho's Appendix B).
    """
    if how == "logits":
        return logits.mean(0).softmax(-1)
    return logits.softmax(-1).mean(0)


def uncertainty(probabilities: Tensor) -> Tensor:
    """Return the ``(…, n)`` entropies of ``(…, n, C)`` probabilities, divided by the largest possible entropy."""
    return entropy(probabilities) / math.log(probabilities.shape[-1])


def between(low: float, high: float, share: Tensor) -> Tensor:
    """Interpolate between ``low``, where ``share`` is 0, and ``high``, where it is 1."""
    return share * high + (1.0 - share) * low


def uncertainty_weight(teacher: Tensor, low: float, high: float) -> Tensor:
    """Return FedEcho's mixing weight α (Eq. 4): ``low`` for a certain teacher, ``high`` for a uniform one.

    Args:
        teacher: ``(n, C)`` probabilities; their mean entropy decides.
        low, high: α_min and α_max.
    """
    return between(low, high, uncertainty(teacher).mean(-1))


def _uncertainty_aware_gradient(weights: Tensor, logits: Tensor, teacher: Tensor, weight: Tensor | float) -> Tensor:
    each = _mean_gradient(weights, logits)
    of_kl = kl_gradient(each * weight, teacher, logits)
    return of_kl + cross_entropy_gradient(each * (1.0 - weight), logits, teacher.argmax(-1))


@has_gradient(_uncertainty_aware_gradient)
def uncertainty_aware_loss(logits: Tensor, teacher: Tensor, weight: Tensor | float) -> Tensor:
    """Return FedEcho's loss (Eq. 3), the mean of ``α KL(p ‖ σ(ŷ)) + (1 - α) CE(ŷ, argmax p)``.

    Args:
        logits: ``(…, n, C)`` logits ŷ of the student.
        teacher: ``(…, n, C)`` probabilities p.
        weight: α, a scalar or ``(…, n)``.
    """
    hard = cross_entropy(logits, teacher.argmax(-1))
    return (weight * kl_divergence(teacher, logits) + (1.0 - weight) * hard).mean(-1)


def _labelled_gradient(
    weights: Tensor,
    logits: Tensor,
    teacher: Tensor,
    labels: Tensor,
    weight: float | Tensor,
    *,
    temperature: float = 1.0,
) -> Tensor:
    each, exact = _mean_gradient(weights, logits), torch.as_tensor(weight, dtype=torch.float64)
    soft, hard = each * exact.to(logits), each * (1.0 - exact).to(logits)
    of_kl = kl_gradient(soft, (teacher / temperature).softmax(-1), logits / temperature) / temperature
    return of_kl + cross_entropy_gradient(hard, logits, labels)


@has_gradient(_labelled_gradient)
def labelled_distillation_loss(
    logits: Tensor,
    teacher: Tensor,
    labels: Tensor,
    weight: float | Tensor,
    *,
    temperature: float = 1.0,
) -> Tensor:
    """Return FedADT's loss (Eq. 7), the mean of ``α̃ KL(σ(z_S/T) ‖ σ(z_C/T)) + (1 - α̃) CE(z_C, y)``.

    Args:
        logits: ``(…, n, C)`` logits z_C of the student.
        teacher: ``(…, n, C)`` logits z_S of the teacher.
        labels: ``(…, n)`` int64 classes y.
        weight: α̃, a number or ``(…, n)``, in double precision.
        temperature: T of both softmax functions in the first term; the second has none.
    """
    kl = kl_divergence((teacher / temperature).softmax(-1), logits / temperature)
    exact = torch.as_tensor(weight, dtype=torch.float64)  # 1 - α̃ is rounded once
    return (exact.to(kl) * kl + (1.0 - exact).to(kl) * cross_entropy(logits, labels)).mean(-1)


def _multi_teacher_gradient(weights: Tensor, logits: Tensor, teachers: Tensor, temperature: float = 1.0) -> Tensor:
    each = _mean_gradient(weights * temperature**2, logits)
    return kl_gradient(each, (teachers / temperature).softmax(-1), logits / temperature) / temperature


@has_gradient(_multi_teacher_gradient)
def multi_teacher_loss(logits: Tensor, teachers: Tensor, temperature: float = 1.0) -> Tensor:
    """Return FedRevive's L_KD (§2.2, step 4): ``KL(σ(teacher / T) ‖ σ(student / T)) T²``, averaged.

    Args:
        logits: ``(…, n, C)`` logits of the student on the n inputs of all teachers' minibatches.
        teachers: ``(…, n, C)`` logits of each minibatch's teacher.
        temperature: T. The factor T² comes from the authors' code; the paper has no such factor, and prints T = 1.
    """
    return kl_divergence((teachers / temperature).softmax(-1), logits / temperature).mean(-1) * temperature**2
