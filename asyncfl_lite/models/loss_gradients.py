"""Gradients of losses with respect to a model's predictions.

A hand-written gradient performs the same operations as autograd, so its bits are the same. It saves autograd's
bookkeeping, which takes longer than the arithmetic of a small model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

Loss = Callable[..., Tensor]
"""``(predictions (…, C), *compared) -> losses``"""
Gradient = Callable[..., Tensor | None]
"""``(weights, predictions, *compared) ->`` the gradient of the weighted sum of the losses; None if it is not known."""

_L = TypeVar("_L", bound=Loss)
_written: dict[Loss, Gradient] = {}


def has_gradient(gradient: Gradient) -> Callable[[_L], _L]:
    """Register ``gradient`` as the hand-written gradient of the decorated loss; both take the same settings."""

    def registered(loss: _L) -> _L:
        _written[loss] = gradient
        return loss

    return registered


def losses_and_gradient(
    loss: Loss, weights: Tensor, predictions: Tensor, *compared: Tensor, wanted: bool = True
) -> tuple[Tensor | None, Tensor]:
    """Return the losses, and the gradient of their weighted sum with respect to ``predictions``.

    The gradient comes from the registered function if there is one, and from autograd otherwise.

    Args:
        loss: a function, a method, or a :class:`~functools.partial` of one with settings.
        weights: the losses' weights, in the shape of the losses.
        predictions: ``(…, C)``, detached from autograd's graph.
        compared: the loss's other arguments.
        wanted: whether the losses are needed; if not, None may be returned in their place.
    """
    plain, settings = (loss.func, loss.keywords) if isinstance(loss, partial) and not loss.args else (loss, {})
    written = _written.get(getattr(plain, "__func__", plain))
    if written is not None and not torch.is_autocast_enabled(predictions.device.type):
        gradient = written(weights, predictions, *compared, **settings)
        if gradient is not None:
            return loss(predictions, *compared) if wanted else None, gradient
    leaf = predictions.detach().requires_grad_()
    losses = loss(leaf, *compared)
    return losses.detach(), torch.autograd.grad(losses, leaf, weights.to(losses))[0]


def cross_entropy_gradient(weights: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
    """Return the ``(…, n, C)`` gradient, with respect to ``logits``, of weighted cross entropies.

    Args:
        weights: ``(…, n)``.
        logits: ``(…, n, C)``.
        labels: ``(…, n)`` int64.
    """
    log = logits.flatten(0, -2).log_softmax(-1)
    aten: Any = torch.ops.aten
    of_log = aten.nll_loss_backward(weights.flatten(), log, labels.flatten(), None, 0, -100, log.new_zeros(()))
    return aten._log_softmax_backward_data(of_log, log, 1, log.dtype).view(logits.shape)


def kl_gradient(weights: Tensor, target: Tensor, logits: Tensor) -> Tensor:
    """Return the ``(…, n, C)`` gradient, with respect to ``logits``, of weighted ``KL(target ‖ softmax(logits))``.

    Args:
        weights: ``(…, n)``.
        target: ``(…, n, C)`` probabilities.
        logits: ``(…, n, C)``.
    """
    of_log = -weights.unsqueeze(-1) * target
    return torch.ops.aten._log_softmax_backward_data(of_log, logits.log_softmax(-1), logits.dim() - 1, logits.dtype)
