"""Steps of gradient descent: gradients of losses, and optimisers.

Every row of a ``(G, d)`` matrix is one client's or one server's model. Gradients are autograd's, except for those that
:mod:`.handwritten_gradients` has. Each row takes the steps that ``torch.optim`` would take for this model alone (a test
compares them), with a state that starts fresh for every job. A later call may pass fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from asyncfl_lite.models import handwritten_gradients as handwritten
from asyncfl_lite.models.stacked import Forward


def with_backward(forward: Forward) -> handwritten.WithBackward:
    """Return a function like ``forward`` that returns detached outputs, and a function for the backward pass.

    The second function maps the gradient of the ``(G, B, …)`` outputs to the gradient of the parameters ``(G, d)``.
    """
    if handwritten.ENABLED and (shortcut := handwritten.shortcut(forward)) is not None:
        return shortcut

    def by_autograd(x: Tensor, inputs: Tensor) -> tuple[Tensor, handwritten.Backward]:
        point = x.detach().requires_grad_()
        outputs = forward(point, inputs)
        return outputs.detach(), lambda gradient: torch.autograd.grad(outputs, point, gradient)[0]

    return by_autograd


def losses_and_gradient(
    loss: handwritten.Loss, weights: Tensor, predictions: Tensor, *compared: Tensor
) -> tuple[Tensor | None, Tensor]:
    """Return the losses, if they were computed, and the gradient of their weighted sum with respect to ``predictions``.

    ``loss`` is a function, a method, or a :class:`~functools.partial` of one with settings.
    """
    if (gradient := handwritten.gradient_of(loss, weights, predictions, *compared)) is not None:
        return None, gradient
    leaf = predictions.detach().requires_grad_()
    losses = loss(leaf, *compared)
    return losses.detach(), torch.autograd.grad(losses, leaf, weights.to(losses))[0]


Step = Callable[[Tensor, Tensor], None]
"""``(x (G, d), gradient (G, d)) -> None``; changes ``x`` in place, and may overwrite ``gradient``."""
Change = Callable[[Tensor, Tensor], Tensor]
"""``(x (G, d), gradient (G, d)) ->`` what a step is taken along; may overwrite ``gradient``."""

BETAS = (0.9, 0.999)
EPS = 1e-8


def clipped_to(gradient: Tensor, largest: float) -> Tensor:
    """Scale down ``(…, d)`` gradients whose L2 norm exceeds ``largest``, so that it equals ``largest``."""
    norm = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True)
    return gradient * (largest / norm).clamp(max=1.0)


def _rate(lr: float | Tensor, rows: int) -> float | Tensor:
    return lr[:rows] if isinstance(lr, Tensor) else lr


@dataclass(frozen=True)
class SGD:
    """Plain gradient steps; a :data:`Step`.

    Attributes:
        lr: the learning rate, or ``(G, 1)`` learning rates, one per row.
        weight_decay: factor λ; λ times the weights is added to the gradient.
    """

    lr: float | Tensor
    weight_decay: float = 0.0

    def __call__(self, x: Tensor, gradient: Tensor) -> None:
        """Update ``x (g, d)``, the first g models, in place."""
        if self.weight_decay:
            gradient.add_(x, alpha=self.weight_decay)
        rate = _rate(self.lr, len(x))
        if isinstance(rate, Tensor):
            x.sub_(gradient.mul_(rate))
        else:
            x.add_(gradient, alpha=-rate)


class Momentum:
    """Gradient steps along the velocity ``v ← β v + g``, or along ``g + β v`` (Nesterov); a :data:`Step`.

    Rate and weight decay are those of :class:`SGD`; ``like (G, d)`` gives the shape of v.
    """

    def __init__(self, like: Tensor, lr: float | Tensor, weight_decay: float, momentum: float, nesterov: bool) -> None:
        self.velocity, self.plain = torch.zeros_like(like), SGD(lr, 0.0)
        self.weight_decay, self.momentum, self.nesterov = weight_decay, momentum, nesterov

    def __call__(self, x: Tensor, gradient: Tensor) -> None:
        """Update ``x (g, d)``, the first g models, in place."""
        if self.weight_decay:
            gradient.add_(x, alpha=self.weight_decay)
        velocity = self.velocity[: len(x)].mul_(self.momentum).add_(gradient)
        self.plain(x, gradient.add_(velocity, alpha=self.momentum) if self.nesterov else velocity.clone())


class Adam:
    """Adam, or AdamW, which multiplies the weights by ``1 - lr · λ`` (decoupled weight decay); a :data:`Step`.

    Rate and weight decay are those of :class:`SGD`; ``like`` gives the shape of the averages.
    """

    def __init__(
        self,
        like: Tensor,
        lr: float | Tensor,
        weight_decay: float = 0.0,
        *,
        decoupled: bool = False,
        betas: tuple[float, float] = BETAS,
    ) -> None:
        self.mean, self.square, self.count = torch.zeros_like(like), torch.zeros_like(like), 0
        self.lr, self.weight_decay, self.decoupled, self.betas = lr, weight_decay, decoupled, betas

    def __call__(self, x: Tensor, gradient: Tensor) -> None:
        """Update ``x (g, d)``, the first g models, in place."""
        self.count += 1
        rows, (first, second) = len(x), self.betas
        rate, mean, square = _rate(self.lr, rows), self.mean[:rows], self.square[:rows]
        if self.weight_decay and self.decoupled:
            x.mul_(1 - rate * self.weight_decay)
        elif self.weight_decay:
            gradient.add_(x, alpha=self.weight_decay)
        mean.lerp_(gradient, 1 - first)
        square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        size = square.sqrt().div_((1 - second**self.count) ** 0.5).add_(EPS)
        unbias = 1 - first**self.count
        if isinstance(rate, Tensor):
            x.sub_(rate / unbias * mean / size)
        else:
            x.addcdiv_(mean, size, value=-rate / unbias)


class Rows:
    """Models side by side that take gradient steps; each is a row of a copy of ``x (G, d)``.

    The optimiser is given what ``change`` makes of a gradient, or the gradient itself.
    """

    def __init__(self, forward: Forward, x: Tensor, optimiser: Step, change: Change | None = None) -> None:
        self.x = x.clone()
        self._optimiser, self._change = optimiser, change
        self._outputs_and_backward = with_backward(forward)

    def merge(self, row: int, x: Tensor, weight: float) -> None:
        """Move the model in ``row`` by a share ``weight`` of the way towards ``x (d,)``."""
        self.x[row].lerp_(x, weight)

    def outputs(self, rows: int, inputs: Tensor) -> Tensor:
        """Return the outputs ``(rows, B, …)`` of the first ``rows`` models for ``inputs (rows, B, …)``."""
        outputs, self._backward = self._outputs_and_backward(self.x[:rows], inputs)
        return outputs

    def step(self, gradient: Tensor) -> None:
        """Take a step with these models, given the gradient of their outputs."""
        gradient = self._backward(gradient)
        x = self.x[: len(gradient)]
        self._optimiser(x, gradient if self._change is None else self._change(x, gradient))


Models = Rows | handwritten.Layers


def descending(forward: Forward, x: Tensor, optimiser: Step, change: Change | None = None) -> Models:
    """Return models that take gradient steps from ``x (G, d)``: :class:`Rows`, or :mod:`.handwritten_gradients`'."""
    models = None
    if isinstance(optimiser, SGD) and change is None:
        models = handwritten.descending(forward, x, optimiser.lr, optimiser.weight_decay)
    return models or Rows(forward, x, optimiser, change)
