"""Losses by which one model learns from others' predictions.

All work on logits of shape ``(n, C)`` and use natural logarithms. Teachers are constants: no gradient
flows into them.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor


def kl_divergence(target: Tensor, logits: Tensor) -> Tensor:
    """Return ``KL(target ‖ softmax(logits))`` of each sample.

    Args:
        target: ``(n, C)`` probabilities; entries of 0 count 0.
        logits: ``(n, C)`` the student's.

    Returns:
        ``(n,)`` nats.
    """
    return (torch.xlogy(target, target) - target * logits.log_softmax(-1)).sum(-1)


def entropy(probabilities: Tensor) -> Tensor:
    """Return the ``(n,)`` entropies, in nats, of ``(n, C)`` probabilities."""
    return -torch.xlogy(probabilities, probabilities).sum(-1)


def mean_teacher(logits: Tensor, how: Literal["logits", "probs"] = "logits") -> Tensor:
    """Return the ``(n, C)`` probabilities of several teachers together.

    Args:
        logits: ``(S, n, C)`` one slice per teacher.
        how: mean of logits and then softmax (FedEcho Alg. 1, line 13), or mean of softmax outputs
            (its Appendix B).
    """
    if how == "logits":
        return logits.mean(0).softmax(-1)
    return logits.softmax(-1).mean(0)


def uncertainty_weight(teacher: Tensor, low: float, high: float, scope: Literal["batch", "sample"] = "batch") -> Tensor:
    """Return FedEcho's mixing weight α (Eq. 4): ``low`` for a certain teacher, ``high`` for a uniform one.

    Args:
        teacher: ``(n, C)`` probabilities.
        low, high: α_min and α_max.
        scope: one weight per batch, from its mean entropy, or one per sample.

    Returns:
        ``()`` or ``(n,)``.
    """
    normalised = entropy(teacher) / math.log(teacher.shape[-1])
    if scope == "batch":
        normalised = normalised.mean()
    return normalised * high + (1.0 - normalised) * low


def uncertainty_aware_loss(logits: Tensor, teacher: Tensor, weight: Tensor | float) -> Tensor:
    """Return FedEcho's loss (Eq. 3), the mean of ``α KL(p ‖ σ(ŷ)) + (1 - α) CE(ŷ, argmax p)``.

    Args:
        logits: ``(n, C)`` the student's ŷ.
        teacher: ``(n, C)`` probabilities p.
        weight: α, a scalar or ``(n,)``.
    """
    hard = torch.nn.functional.cross_entropy(logits, teacher.argmax(-1), reduction="none")
    return (weight * kl_divergence(teacher, logits) + (1.0 - weight) * hard).mean()


def labelled_distillation_loss(
    logits: Tensor,
    teacher: Tensor,
    labels: Tensor,
    weight: float,
    *,
    temperature: float = 1.0,
    direction: Literal["forward", "reverse"] = "forward",
    times_t2: bool = False,
) -> Tensor:
    """Return FedADT's loss (Eq. 7), the mean of ``α̃ KL(σ(z_S/T) ‖ σ(z_C/T)) + (1 - α̃) CE(z_C, y)``.

    Args:
        logits: ``(n, C)`` the student's z_C.
        teacher: ``(n, C)`` logits z_S of the teacher.
        labels: ``(n,)`` int64 classes y.
        weight: α̃.
        temperature: T of both softmax functions in the first term; the second has none.
        direction: ``forward`` as above; ``reverse`` for KL(σ(z_C/T) ‖ σ(z_S/T)).
        times_t2: multiply the first term by T².
    """
    if direction == "forward":
        kl = kl_divergence((teacher / temperature).softmax(-1), logits / temperature)
    else:
        kl = kl_divergence((logits / temperature).softmax(-1), teacher / temperature)
    if times_t2:
        kl = kl * temperature**2
    hard = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    return (weight * kl + (1.0 - weight) * hard).mean()


def multi_teacher_loss(logits: Tensor, teachers: Tensor, temperature: float = 1.0) -> Tensor:
    """Return FedRevive's L_KD (§2.2, step 4): ``KL(σ(teacher / T) ‖ σ(student / T)) T²``, averaged.

    Args:
        logits: ``(K, b, C)`` the student's, on each of K teachers' own minibatch of b inputs.
        teachers: ``(K, b, C)`` logits of each teacher on its minibatch.
        temperature: T. The factor T² is that of the authors' code; the paper, which has none, prints T = 1.
    """
    return kl_divergence((teachers / temperature).softmax(-1), logits / temperature).mean() * temperature**2
