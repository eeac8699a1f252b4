"""Optimisers that step a whole cohort: every row of a ``(G, d)`` matrix is one client's model.

A row is stepped exactly as ``torch.optim`` would step that client alone (held to it by a test), with
state that starts fresh for every job. Rows may drop out at the end: a later call may pass fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from asyncfl_lite.client import LocalTraining

Step = Callable[[Tensor, Tensor], None]
"""``(x (G, d), gradient (G, d)) -> None``; changes ``x`` in place."""

BETAS = (0.9, 0.999)
EPS = 1e-8


def make_optimiser(training: LocalTraining, like: Tensor) -> Step:
    """Return the step of ``training.optimiser`` for a matrix like ``like``, with fresh state."""
    step = _sgd(training) if training.optimiser == "sgd" else _adam(training, like)
    if training.clip is None:
        return step

    def clipped(x: Tensor, gradient: Tensor) -> None:
        step(x, clipped_to(gradient, training.clip))

    return clipped


def clipped_to(gradient: Tensor, largest: float) -> Tensor:
    """Return ``(…, d)`` gradients, scaled down where their L2 norm is above ``largest``, exactly to it."""
    norm = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True)
    return gradient * (largest / norm).clamp(max=1.0)


def _sgd(training: LocalTraining) -> Step:
    def step(x: Tensor, gradient: Tensor) -> None:
        if training.weight_decay:
            gradient = gradient.add(x, alpha=training.weight_decay)
        x.add_(gradient, alpha=-training.lr)

    return step


def _adam(training: LocalTraining, like: Tensor) -> Step:
    """Adam with L2 in the gradient, or AdamW with decay on the weights."""
    like = like[None] if like.dim() == 1 else like
    mean, square, count = torch.zeros_like(like), torch.zeros_like(like), 0
    decoupled = training.optimiser == "adamw"

    def step(x: Tensor, gradient: Tensor) -> None:
        nonlocal count
        count += 1
        rows = len(x)
        if training.weight_decay and decoupled:
            x.mul_(1 - training.lr * training.weight_decay)
        elif training.weight_decay:
            gradient = gradient.add(x, alpha=training.weight_decay)
        mean[:rows].lerp_(gradient, 1 - BETAS[0])
        square[:rows].mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        size = (square[:rows].sqrt() / (1 - BETAS[1] ** count) ** 0.5).add_(EPS)
        x.addcdiv_(mean[:rows], size, value=-training.lr / (1 - BETAS[0] ** count))

    return step
