"""Servers' requests for computations with models; requests of the same kind are computed together.

A method asks for a computation, as in ``context.distil(x, batches, …)``, and continues with the result. Whether the
computation is done at once or waits for other runs' requests does not concern the method, and makes no difference to
the result's bits. There are two kinds: :class:`Answers`, outputs of models, and :class:`Descent`, gradient steps on a
loss, minibatch by minibatch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from asyncfl_lite.models.stacked import Alone, Forward, chain_of, keeps_bits, shared_chain, stacked_forward
from asyncfl_lite.models.steps import SGD, Adam, Step, clipped_to, descending, losses_and_gradient
from asyncfl_lite.models.vectors import VectorModel


class Request(Protocol):
    """A computation that a server asks for."""

    @property
    def shared(self) -> Hashable:
        """Key that requests must share to be computed together; None if they are computed one by one."""

    def alone(self) -> Any:
        """Return the result of this request, computed by itself."""

    @classmethod
    def together(cls, requests: Sequence[Self]) -> list[Any]:
        """Return the results, in order, of requests that are computed together (one or more)."""


def fulfilled(requests: Sequence[Request]) -> list[Any]:
    """Return the results of ``requests``, in order; requests of the same kind are computed together."""
    results: list[Any] = [None] * len(requests)
    groups: dict[tuple[type[Request], Hashable], list[int]] = {}
    for index, request in enumerate(requests):
        if (shared := request.shared) is None:
            results[index] = request.alone()
        else:
            groups.setdefault((type(request), shared), []).append(index)
    for (kind, _), indices in groups.items():
        for index, result in zip(indices, kind.together([requests[index] for index in indices]), strict=True):
            results[index] = result
    return results


def fulfilled_now(request: Request) -> Any:
    """Return the result of one request, without waiting for others."""
    return fulfilled([request])[0]


MODELS_AT_ONCE = 16
"""Largest number of models in one computation; the activations of more would not fit into a CPU's cache."""


@dataclass(frozen=True, eq=False)
class Answers:
    """A request for the outputs of K models in evaluation mode, without gradient: a list of K tensors ``(n, …)``.

    Attributes:
        model: the module that the K models share; only their vectors differ.
        xs: ``(d,)`` parameters, one vector per model.
        inputs: ``(n, …)`` inputs for all models (``one_for_all``), or ``(K, n, …)``, separate inputs for each model.
        buffers: ``(b,)`` running statistics, or None, one entry per model.
        batch_size: number of inputs that each model processes at a time.
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


class Minibatches:
    """A sequence of minibatches from a set of samples.

    Args:
        inputs: ``(n, …)`` the whole set.
        indices: ``(s,)`` int64 indices into ``inputs``, for all minibatches one after another.
        sizes: number of samples in each minibatch.
        rows: ``(r,)`` int64 indices into the set's predictions; None if every sample has one prediction.
        row_sizes: number of rows in each minibatch; None if every sample has one prediction.
    """

    def __init__(
        self,
        inputs: Tensor,
        indices: Tensor,
        sizes: Sequence[int],
        rows: Tensor | None = None,
        row_sizes: Sequence[int] | None = None,
    ) -> None:
        self.inputs, self.indices, self.sizes = inputs, indices, list(sizes)
        self.rows = indices if rows is None else rows
        self.row_sizes = self.sizes if row_sizes is None else list(row_sizes)

    def means(self, table: Tensor) -> Tensor:
        """Return, for each of r predictions, the mean of ``table (m,)`` over the predictions in its minibatch."""
        values, sizes = table[self.rows], self.row_sizes
        if len(set(sizes)) == 1:
            means = values.view(-1, sizes[0]).mean(-1)
        else:
            means = torch.stack([part.mean() for part in values.split(sizes)])
        return means.repeat_interleave(torch.tensor(sizes, device=values.device))


class SampleSet:
    """Samples on which a server distils; each has one or several predictions, numbered as rows of one table.

    ``counts (n,)`` are the numbers of predictions of each sample: one, or one for every token that counts.

    Attributes:
        one_each: whether every sample has one prediction, so that rows are samples.
        num_rows: number of predictions in the whole set.
    """

    def __init__(self, inputs: Tensor, counts: Tensor) -> None:
        self.inputs = inputs
        self.one_each = bool((counts == 1).all())
        self.num_rows = int(counts.sum())
        self._counts, self._ends = counts, counts.cumsum(0)

    def __len__(self) -> int:
        return len(self.inputs)

    def minibatches(
        self, rng: np.random.Generator, *, size: int, passes: int = 1, steps: int | None = None
    ) -> Minibatches:
        """Draw the minibatches of ``passes`` passes over the set, or ``steps`` of them; each pass has a random order.

        The last minibatch of a pass may have fewer samples than ``size``.
        """
        count = len(self)
        one_pass = [len(batch) for batch in torch.arange(count).split(size)]
        steps = passes * len(one_pass) if steps is None else steps
        passes = math.ceil(steps / len(one_pass))
        sizes = (one_pass * passes)[:steps]
        order = np.concatenate([rng.permutation(count) for _ in range(passes)])
        indices = torch.from_numpy(order[: sum(sizes)]).to(self.inputs.device)
        if self.one_each:
            return Minibatches(self.inputs, indices, sizes)
        row_sizes = [int(counts.sum()) for counts in self._counts[indices].split(sizes)]
        return Minibatches(self.inputs, indices, sizes, self.rows_of(indices), row_sizes)

    def rows_of(self, indices: Tensor) -> Tensor:
        """Return the indices of the rows that predict the ``(b,)`` samples at ``indices``, sample by sample."""
        if self.one_each:
            return indices
        counts = self._counts[indices]
        before = self._ends[indices] - counts.cumsum(0)  # a sample's first row, less the rows of those chosen before it
        return before.repeat_interleave(counts) + torch.arange(int(counts.sum()), device=indices.device)


class Optimiser(NamedTuple):
    """Settings of Adam (0.9, 0.999, 1e-8), or of plain gradient steps.

    ``weight_decay`` is the factor of the L2 term that is added to the gradient, ``clip`` the gradient's largest norm.
    """

    kind: Literal["adam", "sgd"]
    lr: float
    weight_decay: float = 0.0
    clip: float | None = None


@dataclass(frozen=True, eq=False)
class Descent:
    """A request for one model's ``(d,)`` parameters after gradient steps, each on its own minibatch.

    Attributes:
        start: ``(d,)`` initial parameters, which are not changed.
        batches: the minibatch of every step.
        loss: ``(predictions (…, b, C), *compared (…, b, …)) -> (…,)``, the mean loss over the rows of each minibatch: a
            function defined in a module, or a :class:`~functools.partial` of one with plain settings.
        tables: ``(m, …)`` tensors with which the loss compares predictions, with a row for every prediction on the
            whole set of inputs.
        given: ``(r, …)`` further tensors for the loss, with a row for every prediction in the minibatches.
        predictions: ``(outputs, inputs) -> (b, C)``, all predictions in a minibatch's outputs.
        buffers: ``(b,)`` running statistics, or None; training mode writes into them.
        train: whether BatchNorm and dropout act as in training.
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

    @property
    def shared(self) -> Hashable:
        """Key that requests must share to be computed together with bit-identical results; None if computed alone."""
        chain = shared_chain(self.model, self.buffers)
        if chain is None or (self.train and any(type(layer) is nn.Dropout for layer in chain.vectors)):
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
        )

    def alone(self) -> Tensor:
        """Run the steps of this request only."""
        return _descend([self], Alone(self.model, self.buffers, train=self.train))[0]

    @classmethod
    def together(cls, requests: Sequence[Descent]) -> list[Tensor]:
        """Run the steps of all requests side by side."""
        return _descend(requests, stacked_forward(requests[0].model))


def _descend(requests: Sequence[Descent], forward: Forward) -> list[Tensor]:
    """Run the steps of G requests, one model per row of a matrix."""
    first, starts = requests[0], torch.stack([one.start for one in requests])
    clip = first.optimiser.clip
    clipped = None if clip is None else lambda x, gradient: clipped_to(gradient, clip)
    models = descending(forward, starts, _optimiser(requests, starts), clipped)
    chosen = zip(*(one.batches.indices.split(first.batches.sizes) for one in requests), strict=True)
    for indices, compared in zip(chosen, _compared(requests), strict=True):
        inputs = torch.stack([one.batches.inputs[own] for one, own in zip(requests, indices, strict=True)])
        outputs = models.outputs(len(starts), inputs)
        models.step(_gradient(requests, outputs, inputs, compared))
    return [row.clone() for row in models.x]


def _compared(requests: Sequence[Descent]) -> Iterator[list[Tensor]]:
    """Yield, for each minibatch, the ``(G, r, …)`` tensors that predictions are compared with.

    For one request alone, whose tables may be large, rows are looked up minibatch by minibatch.
    """
    sizes = requests[0].batches.row_sizes
    if len(requests) == 1:
        (one,) = requests
        for rows, *given in zip(*(rows.split(sizes) for rows in (one.batches.rows, *one.given)), strict=True):
            yield [part.unsqueeze(0) for part in (*(table[rows] for table in one.tables), *given)]
        return
    each = [[*(table[one.batches.rows] for table in one.tables), *one.given] for one in requests]
    together = [torch.stack(same).split(sizes, 1) for same in zip(*each, strict=True)]
    for index in range(len(sizes)):
        yield [parts[index] for parts in together]


def _gradient(requests: Sequence[Descent], outputs: Tensor, inputs: Tensor, compared: Sequence[Tensor]) -> Tensor:
    """Return the gradient of all requests' losses with respect to a minibatch's outputs."""
    loss, weights = requests[0].loss, outputs.new_ones(len(requests))
    predictions = _predictions(requests, outputs, inputs)
    if predictions is outputs:
        return losses_and_gradient(loss, weights, outputs, *compared)[1]
    leaf = outputs.requires_grad_()
    predictions = _predictions(requests, leaf, inputs)
    _, gradient = losses_and_gradient(loss, weights, predictions.detach(), *compared)
    return torch.autograd.grad(predictions, leaf, gradient)[0]


def _predictions(requests: Sequence[Descent], outputs: Tensor, inputs: Tensor) -> Tensor:
    """Return all requests' ``(G, b, C)`` predictions from a minibatch's outputs."""
    own = outputs.unbind()
    found = [one.predictions(*pair) for one, *pair in zip(requests, own, inputs.unbind(), strict=True)]
    return outputs if all(rows is out for rows, out in zip(found, own, strict=True)) else torch.stack(found)


def _optimiser(requests: Sequence[Descent], like: Tensor) -> Step:
    """Return an optimiser that steps the models of several requests at once, one model per row of ``like``."""
    kind = requests[0].optimiser
    if kind.kind == "adam":
        return Adam(like, kind.lr, kind.weight_decay)
    return SGD(like.new_tensor([one.optimiser.lr for one in requests])[:, None], kind.weight_decay)
