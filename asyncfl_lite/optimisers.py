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
    from asyncfl_lite.local_training import LocalTraining

Step = Callable[[Tensor, Tensor], None]
"""``(x (G, d), gradient (G, d)) -> None``; changes ``x`` in place."""

BETAS = (0.9, 0.999)
EPS = 1e-8


def make_optimiser(training: LocalTraining, like: Tensor, lr: float | Tensor | None = None) -> Step:
    """Return the step of ``training.optimiser`` for a matrix like ``like``, with fresh state.

    Args:
        training: optimiser, weight decay, clipping.
        like: ``(G, d)`` or ``(d,)``.
        lr: learning rate, or ``(G, 1)`` of them; by default the training's own.
    """
    lr = training.lr if lr is None else lr
    step = _sgd(training, lr) if training.optimiser == "sgd" else _adam(training, like, lr)
    if training.clip is None:
        return step

    def clipped(x: Tensor, gradient: Tensor) -> None:
        step(x, clipped_to(gradient, training.clip))

    return clipped


def clipped_to(gradient: Tensor, largest: float) -> Tensor:
    """Return ``(…, d)`` gradients, scaled down where their L2 norm is above ``largest``, exactly to it."""
    norm = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True)
    return gradient * (largest / norm).clamp(max=1.0)


def _rate(lr: float | Tensor, rows: int) -> float | Tensor:
    """Return the learning rate of the first ``rows`` clients."""
    return lr[:rows] if isinstance(lr, Tensor) else lr


def _sgd(training: LocalTraining, lr: float | Tensor) -> Step:
    def step(x: Tensor, gradient: Tensor) -> None:
        if training.weight_decay:
            gradient = gradient.add(x, alpha=training.weight_decay)
        rate = _rate(lr, len(x))
        if isinstance(rate, Tensor):
            x.sub_(rate * gradient)
        else:
            x.add_(gradient, alpha=-rate)

    return step


def _adam(training: LocalTraining, like: Tensor, lr: float | Tensor) -> Step:
    """Adam with L2 in the gradient, or AdamW with decay on the weights."""
    like = like[None] if like.dim() == 1 else like
    mean, square, count = torch.zeros_like(like), torch.zeros_like(like), 0
    decoupled = training.optimiser == "adamw"

    def step(x: Tensor, gradient: Tensor) -> None:
        nonlocal count
        count += 1
        rows = len(x)
        rate = _rate(lr, rows)
        if training.weight_decay and decoupled:
            x.mul_(1 - rate * training.weight_decay)
        elif training.weight_decay:
            gradient = gradient.add(x, alpha=training.weight_decay)
        mean[:rows].lerp_(gradient, 1 - BETAS[0])
        square[:rows].mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        size = (square[:rows].sqrt() / (1 - BETAS[1] ** count) ** 0.5).add_(EPS)
        unbias = 1 - BETAS[0] ** count
        if isinstance(rate, Tensor):
            x.sub_(rate / unbias * mean[:rows] / size)
        else:
            x.addcdiv_(mean[:rows], size, value=-rate / unbias)

    return step
