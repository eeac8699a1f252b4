"""The synthesis loss and its three terms (FedRevive Eq. 4).

K teachers classify B synthetic inputs. Every term is a mean over the inputs of a sum over the teachers, each weighted
by its ω̂ for the input's label. Leading dimensions ``…`` may hold several servers side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from asyncfl_lite.algorithms.losses import cross_entropy, kl_divergence
from asyncfl_lite.base.errors import ConfigError

FeatureNorm = Literal["l2", "l2sq"]


@dataclass(frozen=True)
class TeacherAnswers:
    """Outputs of K teachers for B inputs.

    Attributes:
        logits: the teachers' ``(…, K, B, C)`` logits.
        statistics: for each layer of φ, the teachers' ``(…, K, 2, channels)`` statistics on the batch; empty if not
            needed.
        stored: the teachers' ``(…, K, 2, F)`` statistics φ̄ on real data; None if not needed.
    """

    logits: Tensor
    statistics: list[Tensor]
    stored: Tensor | None


def weights_of(labels: Tensor, weights: Tensor) -> Tensor:
    """Return each teacher's weight ω̂ for each input's label, ``(…, K, B)``."""
    return weights.gather(-1, labels.unsqueeze(-2).expand(*weights.shape[:-1], -1))


def target_loss(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return L_target: the teachers' weighted cross entropies with the requested labels.

    Args:
        logits: the teachers' ``(…, K, B, C)`` logits.
        labels: ``(…, B)`` requested classes.
        weights: the teachers' ``(…, K, C)`` weights ω̂.
    """
    losses = cross_entropy(logits, labels.unsqueeze(-2).expand(logits.shape[:-1]))
    return (weights_of(labels, weights) * losses).sum(-2).mean(-1)


def adversarial_loss(logits: Tensor, student: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return L_adv: minus the divergence of the teachers from the student, where both predict the same class.

    Args:
        logits: the teachers' ``(…, K, B, C)`` logits.
        student: the global model's ``(…, B, C)`` logits.
        labels: ``(…, B)`` requested classes.
        weights: the teachers' ``(…, K, C)`` weights ω̂.
    """
    student = student.unsqueeze(-3)
    agree = logits.argmax(-1) == student.argmax(-1)
    divergence = kl_divergence(logits.softmax(-1), student)
    return -(weights_of(labels, weights) * agree * divergence).sum(-2).mean(-1)


def feature_loss(
    statistics: list[Tensor], stored: Tensor, labels: Tensor, weights: Tensor, norm: FeatureNorm = "l2"
) -> Tensor:
    """Return L_feat: the distance between the feature statistics of the batch and those of real data.

    φ is computed on the whole batch, since one sample has no variance; so each teacher's distance counts with the
    teacher's mean weight over the batch.

    Args:
        statistics: for each layer, the teachers' ``(…, K, 2, channels)`` statistics on the batch.
        stored: the teachers' ``(…, K, 2, F)`` statistics on real data.
        labels: ``(…, B)`` requested classes.
        weights: the teachers' ``(…, K, C)`` weights ω̂.
        norm: ``l2``, the norm of the difference in means plus that of the difference in variances, summed over layers
            (the authors' code), or ``l2sq``, the squared norm of all differences (the paper).
    """
    targets = stored.split([layer.shape[-1] for layer in statistics], dim=-1) if statistics else ()
    distance = stored.new_zeros(stored.shape[:-2])
    for layer, target in zip(statistics, targets, strict=True):
        difference = layer - target
        if norm == "l2sq":
            distance = distance + difference.square().sum((-2, -1))
        else:
            distance = distance + torch.linalg.vector_norm(difference, dim=-1).sum(-1)
    return (weights_of(labels, weights).mean(-1) * distance).sum(-1)


def synthesis_loss(
    teachers: TeacherAnswers,
    student: Tensor | None,
    labels: Tensor,
    weights: Tensor,
    *,
    alpha_target: float = 1.0,
    alpha_feat: float = 0.0,
    alpha_adv: float = 0.0,
    feat_norm: FeatureNorm = "l2",
) -> Tensor:
    """Return L_synth (FedRevive Eq. 4), the weighted sum of the target, feature and adversarial terms.

    Args:
        teachers: the teachers' outputs and statistics.
        student: the global model's ``(…, B, C)`` logits; may be None if ``alpha_adv`` is 0.
        labels: ``(…, B)`` requested classes.
        weights: the teachers' ``(…, K, C)`` weights ω̂.
        alpha_target, alpha_feat, alpha_adv: weights of the terms; a term of weight 0 is left out.
        feat_norm: the norm of the feature term.
    """
    loss = alpha_target * target_loss(teachers.logits, labels, weights)
    if alpha_feat:
        if teachers.stored is None:
            raise ConfigError("alpha_feat: the feature term needs what clients' features are like")
        distance = feature_loss(teachers.statistics, teachers.stored, labels, weights, feat_norm)
        loss = loss + alpha_feat * distance
    if alpha_adv:
        if student is None:
            raise ConfigError("alpha_adv: the adversarial term needs the global model's logits")
        loss = loss + alpha_adv * adversarial_loss(teachers.logits, student, labels, weights)
    return loss
