"""Steps of gradient descent: gradients of losses, and optimisers.

Both work on one model, or on several side by side: every row of a ``(G, d)`` matrix is one client's or one server's
model. Gradients are autograd's; what :mod:`.fast` has written out by hand is taken from there, with the same bits. Each
row takes exactly the steps that ``torch.optim`` would take for this model alone (a test compares them), with a state
that starts fresh for every job. The last rows may drop out, because a later call may pass fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from asyncfl_lite.models import fast
from asyncfl_lite.models.draws import Draws
from asyncfl_lite.models.stacked import Forward


def with_backward(forward: Forward) -> fast.WithBackward:
    """Return a function like ``forward`` that returns detached outputs, and a function for the backward pass.

    The second function maps the gradient of the ``(G, B, …)`` outputs to the gradient of the parameters ``(G, d)``.
    """
    if fast.ENABLED and (shortcut := fast.shortcut(forward)) is not None:
        return shortcut

    def by_autograd(x: Tensor, inputs: Tensor, draws: Draws | None = None) -> tuple[Tensor, fast.Backward]:
        point = x.detach().requires_grad_()
        outputs = forward(point, inputs, draws)
        return outputs.detach(), lambda gradient: torch.autograd.grad(outputs, point, gradient)[0]

    return by_autograd


def losses_and_gradient(
    loss: fast.Loss, weights: Tensor, predictions: Tensor, *compared: Tensor, wanted: bool = True
) -> tuple[Tensor | None, Tensor]:
    """Return the losses, and the gradient of their weighted sum with respect to ``predictions``.

    Args:
        loss: a function, a method, or a :class:`~functools.partial` of one with settings.
        weights: the losses' weights, in the shape of the losses.
        predictions: ``(…, C)``, detached from autograd's graph.
        compared: the loss's other arguments.
        wanted: whether the losses are needed; if not, None may be returned in their place.
    """
    if (gradient := fast.gradient_of(loss, weights, predictions, *compared)) is not None:
        return loss(predictions, *compared) if wanted else None, gradient
    leaf = predictions.detach().requires_grad_()
    losses = loss(leaf, *compared)
    return losses.detach(), torch.autograd.grad(losses, leaf, weights.to(losses))[0]


Step = Callable[[Tensor, Tensor], None]
"""``(x (G, d), gradient (G, d)) -> None``; changes ``x`` in place, and may overwrite ``gradient``."""

BETAS = (0.9, 0.999)
EPS = 1e-8


def clipped_to(gradient: Tensor, largest: float) -> Tensor:
    """Scale down ``(…, d)`` gradients whose L2 norm exceeds ``largest``, so that it equals ``largest``."""
    norm = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True)
    return gradient * (largest / norm).clamp(max=1.0)


def _rate(lr: float | Tensor, rows: int) -> float | Tensor:
    """Return the learning rates of the first ``rows`` clients, or the rate that all clients share."""
    return lr[:rows] if isinstance(lr, Tensor) else lr


def sgd(lr: float | Tensor, weight_decay: float = 0.0) -> Step:
    """Return a function that takes a plain SGD step, with L2 regularisation in the gradient."""

    def step(x: Tensor, gradient: Tensor) -> None:
        if weight_decay:
            gradient.add_(x, alpha=weight_decay)
        rate = _rate(lr, len(x))
        if isinstance(rate, Tensor):
            x.sub_(gradient.mul_(rate))
        else:
            x.add_(gradient, alpha=-rate)

    return step


class Adam:
    """Adam with L2 regularisation in the gradient, or AdamW with decoupled weight decay; a :data:`Step`.

    Args:
        like: ``(G, d)`` or ``(d,)`` parameters to optimise, which give the shape of the averages.
        lr: the learning rate, or ``(G, 1)`` learning rates, one per row.
        weight_decay: factor λ; λ times the weights is added to the gradient.
        decoupled: multiply the weights by ``1 - lr · λ`` instead.

    Attributes:
        mean, square: running averages of the gradient and of its square, shaped like ``like``.
        count: number of steps so far.
    """

    def __init__(self, like: Tensor, lr: float | Tensor, weight_decay: float = 0.0, *, decoupled: bool = False) -> None:
        self.mean, self.square, self.count = torch.zeros_like(like), torch.zeros_like(like), 0
        self.lr, self.weight_decay, self.decoupled = lr, weight_decay, decoupled

    def __call__(self, x: Tensor, gradient: Tensor) -> None:
        """Update ``x (g, d)``, the models of the first g clients, in place."""
        self.count += 1
        rows = len(x)
        rate, mean, square = _rate(self.lr, rows), self.mean[:rows], self.square[:rows]
        if self.weight_decay and self.decoupled:
            x.mul_(1 - rate * self.weight_decay)
        elif self.weight_decay:
            gradient.add_(x, alpha=self.weight_decay)
        mean.lerp_(gradient, 1 - BETAS[0])
        square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        size = square.sqrt().div_((1 - BETAS[1] ** self.count) ** 0.5).add_(EPS)
        unbias = 1 - BETAS[0] ** self.count
        if isinstance(rate, Tensor):
            x.sub_(rate / unbias * mean / size)
        else:
            x.addcdiv_(mean, size, value=-rate / unbias)

    def state(self) -> tuple[Tensor, Tensor, int]:
        """Return copies of the state that :meth:`restore` loads."""
        return self.mean.clone(), self.square.clone(), self.count

    def restore(self, state: tuple[Tensor, Tensor, int]) -> None:
        """Load a saved state, without changing it."""
        mean, square, self.count = state
        self.mean, self.square = mean.clone(), square.clone()
