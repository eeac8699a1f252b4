"""Steps written out by hand, which save half of a small model's training time; this file can be deleted.

The plain way is autograd's (:mod:`.steps`), which takes as long again to find out which operations a gradient needs.
Written out here are the gradients of common losses (:func:`gradient_of`) and of chains of layers on vectors
(:func:`shortcut`), with the same operations and so the same bits; and whole steps of plain gradient descent
(:class:`Layers`), which are rounded differently. The functions in :mod:`.steps` ask for them, and set :data:`ENABLED`
to False to do without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from asyncfl_lite.models.stacked import (
    Alone,
    Chain,
    Forward,
    SideBySide,
    chain_of,
    images_of_all,
    side_by_side,
    vectors_of_each,
)

ENABLED = True
"""Whether anything in this file is used; tests compare runs with and without."""

ELEMENTWISE: dict[type[nn.Module], Callable[[Tensor, Tensor], Tensor]] = {
    nn.Identity: lambda gradient, output: gradient,
    nn.ReLU: lambda gradient, output: torch.ops.aten.threshold_backward(gradient, output, 0),
    nn.Tanh: torch.ops.aten.tanh_backward,
    nn.Sigmoid: torch.ops.aten.sigmoid_backward,
}
"""Layer that works element by element -> ``(output's gradient, output) -> input's gradient``."""

Backward = Callable[[Tensor], Tensor]
"""``(G, B, …)`` gradient of the outputs -> ``(G, d)`` gradient of the parameters"""
WithBackward = Callable[..., tuple[Tensor, Backward]]
"""``(x (G, d), inputs (G, B, …)) -> (outputs (G, B, …), backward)``"""
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


def gradient_of(loss: Loss, weights: Tensor, predictions: Tensor, *compared: Tensor) -> Tensor | None:
    """Return the gradient of a weighted sum of losses, see :func:`.losses_and_gradient`; None if it is not known."""
    plain, settings = (loss.func, loss.keywords) if isinstance(loss, partial) and not loss.args else (loss, {})
    written = _written.get(getattr(plain, "__func__", plain)) if ENABLED else None
    return None if written is None else written(weights, predictions, *compared, **settings)


def cross_entropy_gradient(weights: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
    """Return the gradient of ``(…, n)`` weighted cross entropies with respect to ``logits (…, n, C)``."""
    log = logits.flatten(0, -2).log_softmax(-1)
    aten: Any = torch.ops.aten
    of_log = aten.nll_loss_backward(weights.flatten(), log, labels.flatten(), None, 0, -100, log.new_zeros(()))
    return aten._log_softmax_backward_data(of_log, log, 1, log.dtype).view(logits.shape)


def kl_gradient(weights: Tensor, target: Tensor, logits: Tensor) -> Tensor:
    """Return the gradient of weighted ``KL(target ‖ softmax(logits))`` with respect to ``logits (…, n, C)``."""
    of_log = -weights.unsqueeze(-1) * target
    return torch.ops.aten._log_softmax_backward_data(of_log, logits.log_softmax(-1), logits.dim() - 1, logits.dtype)


def shortcut(forward: Forward) -> WithBackward | None:
    """Return the outputs and the backward pass of a forward pass in one function; None if it is not written out.

    It is written out for chains of linear layers and functions of single numbers.
    """
    if isinstance(forward, SideBySide) and not forward.chain.images and _written_out(forward.chain):
        return partial(_several, forward)
    return None


def _several(forward: SideBySide, x: Tensor, inputs: Tensor) -> tuple[Tensor, Backward]:
    """Return ``(G, B, C)`` outputs of several chains side by side, and their backward pass."""
    layers, kept = forward.chain.vectors, list[Tensor]()
    outputs, parts = inputs.flatten(2), iter(forward.parts(x))
    for layer in layers:
        outputs = _applied(layer, outputs, parts, kept)

    def backward(gradient: Tensor) -> Tensor:
        found = list[Tensor]()

        def take(layer: nn.Linear, gradient: Tensor, h: Tensor) -> None:
            if layer.bias is not None:
                found.append(gradient.sum(1))
            found.append(torch.bmm(h.transpose(1, 2), gradient).transpose(1, 2).flatten(1))

        _vector_layers_backward(layers, gradient, kept, take)
        return torch.cat(found[::-1], 1)

    return outputs, backward


def descending(forward: Forward, x: Tensor, lr: float | Tensor, weight_decay: float) -> Layers | None:
    """Return models that take plain gradient steps layer by layer; None if they are not written out."""
    if not ENABLED or not isinstance(forward, Alone | SideBySide):
        return None
    chain = chain_of(forward.model)
    if chain is None or not _written_out(chain):
        return None
    return Layers(SideBySide(forward.model, chain), x, lr, weight_decay)


def _written_out(chain: Chain) -> bool:
    of_images = (nn.MaxPool2d, *ELEMENTWISE)
    return all(
        type(layer) in of_images or (type(layer) is nn.Conv2d and not isinstance(layer.padding, str))
        for layer in chain.images
    ) and all(type(layer) in {nn.Linear, *ELEMENTWISE} for layer in chain.vectors)


class Layers:
    """Chains side by side that take plain gradient steps layer by layer, as :class:`.steps.Rows` does more slowly.

    All models' parameters of a layer are one tensor. From a linear layer's weights, one matrix product subtracts the
    whole step, so that their gradient itself is never computed.
    """

    def __init__(self, forward: SideBySide, x: Tensor, lr: float | Tensor, weight_decay: float) -> None:
        self._forward = forward
        self._parts = [part.clone(memory_format=torch.contiguous_format) for part in forward.parts(x)]
        self._rate = lr if isinstance(lr, Tensor) else x.new_full((len(x), 1), lr)
        self._decay = self._rate * weight_decay if weight_decay else None
        self._kept: list[Tensor] = []
        self._shape = torch.Size()

    @property
    def x(self) -> Tensor:
        """The ``(G, d)`` parameters, a copy."""
        return torch.cat([part.flatten(1) for part in self._parts], 1)

    def merge(self, row: int, x: Tensor, weight: float) -> None:
        """Move the model in ``row`` by a share ``weight`` of the way towards ``x (d,)``."""
        for part, other in zip(self._parts, self._forward.parts(x[None]), strict=True):
            part[row].lerp_(other[0], weight)

    def outputs(self, rows: int, inputs: Tensor) -> Tensor:
        """Return the outputs ``(rows, B, C)`` of the first ``rows`` models."""
        parts, kept = iter([part[:rows] for part in self._parts]), list[Tensor]()
        images, vectors = self._forward.chain
        h, self._kept = inputs, kept
        if images:
            h = images_of_all(inputs)
            for layer in images:
                h = _applied(layer, h, parts, kept)
            self._shape = h.shape
            h = vectors_of_each(h, rows)
        h = h.flatten(2)
        for layer in vectors:
            h = _applied(layer, h, parts, kept)
        return h

    def step(self, gradient: Tensor) -> None:
        """Take a step with these models, given the gradient of their outputs."""
        rows, kept, parts = len(gradient), self._kept, self._parts.copy()
        images, vectors = self._forward.chain

        def shrunk() -> Tensor:
            """The parameters that come next, after their weight decay."""
            part = parts.pop()[:rows]
            if self._decay is not None:
                part.addcmul_(part, self._decay[:rows].view(-1, *[1] * (part.dim() - 1)), value=-1)
            return part

        def take(layer: nn.Linear, gradient: Tensor, h: Tensor) -> None:
            if layer.bias is not None:
                shrunk().sub_(gradient.sum(1))
            shrunk().baddbmm_(gradient.transpose(1, 2), h, alpha=-1)

        gradient = _vector_layers_backward(vectors, gradient * self._rate[:rows, None], kept, take)
        if images and kept:
            size, channels, *sides = self._shape
            gradient = images_of_all(gradient.view(rows, size, channels // rows, *sides))
            for layer in reversed(images):
                gradient, *own = _image_layer_backward(layer, gradient, kept, rows)
                for part in own:
                    shrunk().sub_(part.unflatten(0, (rows, -1)))


def _vector_layers_backward(
    layers: Sequence[nn.Module], gradient: Tensor, kept: list[Tensor], take: Callable[[nn.Linear, Tensor, Tensor], None]
) -> Tensor:
    """Return the gradient of the inputs; call ``take`` with each linear layer, its outputs' gradient and its inputs."""
    for layer in reversed(layers):
        if type(layer) is not nn.Linear:
            gradient = ELEMENTWISE[type(layer)](gradient, kept.pop())
            continue
        weight, h = kept.pop(), kept.pop()
        before = torch.bmm(gradient, weight) if kept else gradient
        take(layer, gradient, h)
        gradient = before
    return gradient


def _applied(layer: nn.Module, h: Tensor, parts: Iterator[Tensor], kept: list[Tensor]) -> Tensor:
    """Apply a layer to vectors, or to all models' images, and keep the tensors for the backward pass."""
    if type(layer) in ELEMENTWISE:
        h = layer(h)
        kept.append(h)
        return h
    if type(layer) is nn.MaxPool2d:
        pooled, indices = torch.ops.aten.max_pool2d_with_indices(h, *_pooling(layer))
        kept += [h, indices]
        return pooled
    weight, bias = next(parts), None if layer.bias is None else next(parts)
    kept += [h, weight]
    return side_by_side(layer, h, weight, bias, len(weight))


def _image_layer_backward(layer: nn.Module, gradient: Tensor, kept: list[Tensor], count: int) -> list[Tensor]:
    """Return the gradients of a layer's images, bias and weight, given the gradient of its output."""
    if type(layer) is nn.Conv2d:
        weight, h = kept.pop().flatten(0, 1), kept.pop()
        has_bias, wanted = layer.bias is not None, bool(kept)
        of_h, of_weight, of_bias = torch.ops.aten.convolution_backward(
            gradient,
            h,
            weight,
            [len(weight)] if has_bias else None,
            layer.stride,
            layer.padding,
            layer.dilation,
            False,
            [0, 0],
            count * layer.groups,
            [wanted, True, has_bias],
        )
        return [of_h, of_bias, of_weight] if has_bias else [of_h, of_weight]
    if type(layer) is nn.MaxPool2d:
        indices, h = kept.pop(), kept.pop()
        return [torch.ops.aten.max_pool2d_with_indices_backward(gradient, h, *_pooling(layer), indices)]
    return [ELEMENTWISE[type(layer)](gradient, kept.pop())]


def _pooling(layer: nn.MaxPool2d) -> tuple[Any, ...]:
    """Return a max-pooling layer's settings as the arguments of torch's operations."""
    pairs = [[value, value] if isinstance(value, int) else list(value)
             for value in (layer.kernel_size, layer.stride, layer.padding, layer.dilation)]  # fmt: skip
    return *pairs, layer.ceil_mode
