"""Gradient descent on a loss, minibatch by minibatch, for one server's model or for several servers side by side.

Every row of a ``(G, d)`` matrix is one server's model; all models take each step together, like clients' models in a
cohort.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from asyncfl_lite.models.loss_gradients import losses_and_gradient
from asyncfl_lite.models.minibatches import Minibatches
from asyncfl_lite.models.stacked import OneByOne, keeps_bits, outputs_and_backward, shared_chain, stacked_forward
from asyncfl_lite.models.steps import Adam, Step, clipped_to, sgd
from asyncfl_lite.models.vectors import VectorModel

AdamState = tuple[Tensor, Tensor, int]
"""Running averages of the gradient and of its square, each ``(d,)``, and the number of steps so far."""


class Optimiser(NamedTuple):
    """Settings of an optimiser: kind, learning rate, weight decay and clipping.

    Attributes:
        kind: Adam (0.9, 0.999, 1e-8), or plain gradient steps.
        lr: learning rate.
        weight_decay: factor of the L2 term that is added to the gradient.
        clip: the largest global L2 norm of a gradient, or None.
    """

    kind: Literal["adam", "sgd"]
    lr: float
    weight_decay: float = 0.0
    clip: float | None = None


class Descended(NamedTuple):
    """The result of gradient descent: parameters and Adam's state.

    Attributes:
        x: ``(d,)`` the parameters.
        adam: Adam's state at the end, or None for plain steps.
    """

    x: Tensor
    adam: AdamState | None


@dataclass(frozen=True, eq=False)
class Descent:
    """A request for gradient steps of one model, each on its own minibatch.

    Attributes:
        model: the model, which computes outputs from parameters.
        start: ``(d,)`` initial parameters, which are not changed.
        batches: the minibatch of every step.
        loss: ``(predictions (…, b, C), *compared (…, b, …)) -> (…,)``, the mean loss over the rows of each minibatch: a
            function defined in a module, or a :class:`~functools.partial` of one with plain settings.
        optimiser: the optimiser's settings.
        tables: ``(m, …)`` tensors with which the loss compares predictions, with a row for every prediction on the
            whole set of inputs.
        given: ``(r, …)`` further tensors for the loss, with a row for every prediction in the minibatches.
        predictions: ``(outputs, inputs) -> (b, C)``, all predictions in a minibatch's outputs.
        buffers: ``(b,)`` running statistics, or None; training mode writes into them.
        train: whether BatchNorm and dropout act as in training.
        adam: the state from which Adam continues; None for a fresh start.
        skips: a function that is called with every step's loss; if it returns true, that step's gradient is replaced by
            zero.

    The request's result is a :class:`Descended`.
    """

    model: VectorModel
    start: Tensor
    batches: Minibatches
    loss: Callable[..., Tensor]
    optimiser: Optimiser
    tables: Sequence[Tensor] = ()
    given: Sequence[Tensor] = ()
    predictions: Callable[[Tensor, Tensor], Tensor] = lambda outputs, inputs: outputs
    buffers: Tensor | None = None
    train: bool = False
    adam: AdamState | None = None
    skips: Callable[[float], bool] | None = None

    @property
    def shared(self) -> Hashable:
        """Key that requests must share to be computed together with bit-identical results; None if computed alone."""
        chain = shared_chain(self.model, self.buffers)
        if chain is None or self.skips is not None:
            return None
        if self.train and any(type(layer) is nn.Dropout for layer in chain.vectors):
            return None
        loss, kind, batches = self.loss, self.optimiser, self.batches
        named = (loss.func, tuple(sorted(loss.keywords.items()))) if isinstance(loss, partial) else loss
        return (
            None if keeps_bits(chain, *batches.sizes) else id(self),
            self.model.architecture,
            (self.start.dtype, self.start.device, batches.inputs.shape[1:]),
            named,
            kind if kind.kind == "adam" else kind._replace(lr=0.0),  # plain steps may have a learning rate per row
            (tuple(batches.sizes), tuple(batches.row_sizes)),
            tuple((table.shape[1:], table.dtype) for table in (*self.tables, *self.given)),
            self.adam and self.adam[2],
        )

    def _compared(self) -> list[Tensor]:
        """Return the tensors that predictions are compared with, one row per prediction in all minibatches."""
        return [*(table[self.batches.rows] for table in self.tables), *self.given]

    def alone(self) -> Descended:
        """Run the steps of this request only; each step reads only its own minibatch's rows of ``tables``."""
        x, step, batches, forward = self.start.clone(), _Stepping([self]), self.batches, OneByOne(self.model)
        by_row = (given.split(batches.row_sizes) for given in (batches.rows, *self.given))
        for indices, rows, *given in zip(batches.indices.split(batches.sizes), *by_row, strict=True):
            inputs, compared = batches.inputs[indices], [*(table[rows] for table in self.tables), *given]
            point = x.detach().requires_grad_()
            outputs = forward(point, self.model.laid_out(inputs), self.buffers, train=self.train)
            predictions = self.predictions(outputs, inputs)
            loss, of_predictions = losses_and_gradient(
                self.loss, x.new_ones(()), predictions.detach(), *compared, wanted=self.skips is not None
            )
            (gradient,) = torch.autograd.grad(predictions, point, of_predictions)
            if self.skips is not None and loss is not None and self.skips(float(loss)):
                gradient = torch.zeros_like(gradient)
            step(x[None], gradient[None])
        return step.descended(x[None])[0]

    @classmethod
    def together(cls, requests: Sequence[Descent]) -> list[Descended]:
        """Run the steps of all requests side by side."""
        first, step = requests[0], _Stepping(requests)
        forward, x = stacked_forward(first.model), torch.stack([one.start for one in requests])
        pool, indices = _pooled([one.batches for one in requests])
        together = [torch.stack(same) for same in zip(*(one._compared() for one in requests), strict=True)]
        by_row = (same.split(first.batches.row_sizes, 1) for same in together)
        for chosen, *compared in zip(indices.split(first.batches.sizes, 1), *by_row, strict=True):
            inputs = pool.index_select(0, chosen.flatten()).unflatten(0, chosen.shape)
            outputs, backward = outputs_and_backward(forward, x, inputs)
            step(x, backward(_of_outputs(requests, outputs, inputs, compared)))
        return step.descended(x)


def _pooled(batches: Sequence[Minibatches]) -> tuple[Tensor, Tensor]:
    """Return the union of several servers' inputs, and the ``(G, s)`` indices of each server's inputs in it."""
    pools = {id(one.inputs): one.inputs for one in batches}
    indices = torch.stack([one.indices for one in batches])
    if len(pools) == 1:
        return batches[0].inputs, indices
    begins, total = {}, 0
    for name, inputs in pools.items():
        begins[name], total = total, total + len(inputs)
    shift = torch.tensor([begins[id(one.inputs)] for one in batches], device=indices.device)
    return torch.cat(list(pools.values())), indices + shift[:, None]


def _of_outputs(requests: Sequence[Descent], outputs: Tensor, inputs: Tensor, compared: Sequence[Tensor]) -> Tensor:
    """Return the gradient of all requests' losses with respect to a minibatch's ``(G, b, …)`` outputs."""
    loss, weights = requests[0].loss, outputs.new_ones(len(requests))
    predictions = _predictions(requests, outputs, inputs)
    if predictions is outputs:
        return losses_and_gradient(loss, weights, outputs, *compared, wanted=False)[1]
    leaf = outputs.requires_grad_()
    predictions = _predictions(requests, leaf, inputs)
    _, gradient = losses_and_gradient(loss, weights, predictions.detach(), *compared, wanted=False)
    return torch.autograd.grad(predictions, leaf, gradient)[0]


def _predictions(requests: Sequence[Descent], outputs: Tensor, inputs: Tensor) -> Tensor:
    """Return all requests' ``(G, b, C)`` predictions from a minibatch's outputs."""
    own = outputs.unbind()
    found = [one.predictions(*pair) for one, *pair in zip(requests, own, inputs.unbind(), strict=True)]
    return outputs if all(rows is out for rows, out in zip(found, own, strict=True)) else torch.stack(found)


class _Stepping:
    """An optimiser that steps the models of several requests at once, one model per row of a matrix."""

    def __init__(self, requests: Sequence[Descent]) -> None:
        kind, like = requests[0].optimiser, torch.stack([one.start for one in requests])
        self.clip, self.adam = kind.clip, None
        if kind.kind == "sgd":
            self.step: Step = sgd(like.new_tensor([one.optimiser.lr for one in requests])[:, None], kind.weight_decay)
            return
        self.step = self.adam = Adam(like, kind.lr, kind.weight_decay)
        if requests[0].adam is not None:
            mean, square, counts = zip(*(one.adam for one in requests), strict=True)
            self.adam.restore((torch.stack(mean), torch.stack(square), counts[0]))

    def __call__(self, x: Tensor, gradient: Tensor) -> None:
        """Update the ``(G, d)`` parameters in place; gradients are clipped first if that option is set."""
        self.step(x, gradient if self.clip is None else clipped_to(gradient, self.clip))

    def descended(self, x: Tensor) -> list[Descended]:
        """Return the results, given the final ``(G, d)`` parameters; each model is copied to a tensor of its own."""
        if self.adam is None:
            return [Descended(row.clone(), None) for row in x]
        mean, square, count = self.adam.state()
        return [Descended(row.clone(), (m, s, count)) for row, m, s in zip(x, mean, square, strict=True)]
