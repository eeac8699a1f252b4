"""Outputs of models, computed for one server or for several servers together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from asyncfl_lite.models.stacked import chain_of, keeps_bits, shared_chain, stacked_forward
from asyncfl_lite.models.vectors import VectorModel

MODELS_AT_ONCE = 16
"""Largest number of models in one computation; the activations of more would not fit into a CPU's cache."""


@dataclass(frozen=True, eq=False)
class Answers:
    """A request for the outputs of K models in evaluation mode, without gradient.

    Attributes:
        model: the module that the K models share; only their vectors differ.
        xs: ``(d,)`` parameters, one vector per model.
        inputs: ``(n, …)`` inputs for all models, or ``(K, n, …)``, separate inputs for each model.
        buffers: ``(b,)`` running statistics, or None, one entry per model.
        one_for_all: whether all models get the same inputs.
        batch_size: number of inputs that each model processes at a time.

    The request's result is a list of K tensors ``(n, …)``.
    """

    model: VectorModel
    xs: Sequence[Tensor]
    inputs: Tensor
    buffers: Sequence[Tensor | None]
    one_for_all: bool = True
    batch_size: int = 500

    @property
    def shared(self) -> Hashable:
        """Key that requests must share to be computed together with bit-identical results; None if computed alone."""
        if (chain := shared_chain(self.model, *self.buffers)) is None:
            return None
        inputs = self.inputs if self.one_for_all else self.inputs[0]
        sizes = [len(batch) for batch in inputs.split(self.batch_size)]
        run = None if keeps_bits(chain, *sizes) else id(self)
        return run, self.model.architecture, inputs.shape, inputs.dtype, inputs.device, self.batch_size

    @property
    def _own_inputs(self) -> Sequence[Tensor]:
        return [self.inputs] * len(self.xs) if self.one_for_all else self.inputs.unbind()

    def alone(self) -> list[Tensor]:
        """Return the models' outputs, computed for this request only.

        A chain of layers is computed in one step if each model has inputs of its own and none has running statistics.
        """
        if not self.one_for_all and chain_of(self.model) is not None and all(given is None for given in self.buffers):
            with torch.no_grad():
                return list(stacked_forward(self.model)(torch.stack(list(self.xs)), self.inputs))
        own = zip(self.xs, self._own_inputs, self.buffers, strict=True)
        return [self.model.outputs(x, inputs, buffers, self.batch_size) for x, inputs, buffers in own]

    @classmethod
    @torch.no_grad()
    def together(cls, requests: Sequence[Answers]) -> list[list[Tensor]]:
        """Return the outputs of each request, all computed together."""
        forward, size = stacked_forward(requests[0].model), requests[0].batch_size
        xs = [x for request in requests for x in request.xs]
        inputs = [own for request in requests for own in request._own_inputs]
        found: list[Tensor] = []
        for first in range(0, len(xs), MODELS_AT_ONCE):
            rows = slice(first, first + MODELS_AT_ONCE)
            x, own = torch.stack(xs[rows]), _side_by_side(inputs[rows])
            found += torch.cat([forward(x, batch) for batch in own.split(size, 1)], 1).unbind()
        bounds = accumulate((len(request.xs) for request in requests), initial=0)
        return [found[begin:end] for begin, end in pairwise(bounds)]


def _side_by_side(inputs: Sequence[Tensor]) -> Tensor:
    """Stack tensors to ``(K, n, …)``, without a copy if all are the same tensor."""
    if all(own is inputs[0] for own in inputs):
        return inputs[0].expand(len(inputs), *inputs[0].shape)
    return torch.stack(list(inputs))
