"""The synthesis loss and its three terms (FedRevive Eq. 4).

K teachers answer B made-up inputs. Every term is a mean over the inputs of a sum over the teachers, each
weighted by ω̂ of the input's label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from asyncfl_lite.algorithms.losses import kl_divergence

FeatureNorm = Literal["l2", "l2sq"]


@dataclass(frozen=True)
class TeacherAnswers:
    """What K teachers say to B inputs.

    Attributes:
        logits: ``(K, B, C)``.
        statistics: a teacher's φ on the batch, ``(2, channels)`` for each of its layers; empty if not wanted.
        stored: a teacher's ``(2, F)`` statistics φ̄ on real data.
    """

    logits: Tensor
    statistics: list[list[Tensor]]
    stored: list[Tensor]


def target_loss(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return L_target: the teachers' weighted cross-entropies with the labels that were asked for.

    Args:
        logits: ``(K, B, C)`` the teachers'.
        labels: ``(B,)``.
        weights: ``(K, C)`` ω̂.
    """
    losses = functional.cross_entropy(logits.movedim(-1, 1), labels.expand(len(logits), -1), reduction="none")
    return (weights[:, labels] * losses).sum(0).mean()


def adversarial_loss(logits: Tensor, student: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return L_adv: less the divergence from teacher to student where both name the same class.

    Args:
        logits: ``(K, B, C)`` the teachers'.
        student: ``(B, C)`` the global model's.
        labels: ``(B,)``.
        weights: ``(K, C)`` ω̂.
    """
    agree = logits.argmax(-1) == student.argmax(-1)
    divergence = kl_divergence(logits.softmax(-1), student)
    return -(weights[:, labels] * agree * divergence).sum(0).mean()


def feature_loss(
    statistics: list[list[Tensor]], stored: list[Tensor], labels: Tensor, weights: Tensor, norm: FeatureNorm = "l2"
) -> Tensor:
    """Return L_feat: how far the batch's features lie from those of real data.

    φ is that of the whole batch, since one sample has no variance; so a teacher's distance counts with its
    mean weight over the batch.

    Args:
        statistics: for each of K teachers, ``(2, channels)`` for each of its layers.
        stored: for each teacher ``(2, F)``.
        labels: ``(B,)``.
        weights: ``(K, C)`` ω̂.
        norm: ``l2``, the sum over layers of the norms of the means' and of the variances' differences (the
            authors' code), or ``l2sq``, the square of the norm of everything (the paper).
    """
    shares = weights[:, labels].mean(-1)
    return sum(
        share * _distance(layers, target, norm)
        for share, layers, target in zip(shares, statistics, stored, strict=True)
    )


def _distance(layers: list[Tensor], target: Tensor, norm: FeatureNorm) -> Tensor:
    if not layers:
        return target.new_zeros(())
    targets = target.split([layer.shape[-1] for layer in layers], dim=-1)
    differences = [layer - wanted for layer, wanted in zip(layers, targets, strict=True)]
    if norm == "l2sq":
        return torch.stack([difference.square().sum() for difference in differences]).sum()
    return torch.stack([torch.linalg.vector_norm(difference, dim=-1).sum() for difference in differences]).sum()


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
    """Return L_synth, the weighted sum of the three terms.

    Args:
        teachers: what the teachers say.
        student: ``(B, C)`` the global model's logits; may be None if ``alpha_adv`` is 0.
        labels: ``(B,)`` the classes that were asked for.
        weights: ``(K, C)`` ω̂.
        alpha_target, alpha_feat, alpha_adv: weights of the terms; a term of weight 0 is left out.
        feat_norm: the norm of the feature term.
    """
    loss = alpha_target * target_loss(teachers.logits, labels, weights)
    if alpha_feat:
        distance = feature_loss(teachers.statistics, teachers.stored, labels, weights, feat_norm)
        loss = loss + alpha_feat * distance
    if alpha_adv:
        loss = loss + alpha_adv * adversarial_loss(teachers.logits, student, labels, weights)
    return loss
