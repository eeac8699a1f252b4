"""Gradients written out by hand, which save a third of a small model's training time; this file can be deleted.

The plain way is autograd's (:mod:`.steps`). It performs the same operations, so the bits are the same, but takes as
long again to find out which operations they are. Written out here are the backward pass of a chain of layers
(:func:`shortcut`) and the gradients of common losses (:func:`gradient_of`). The functions in :mod:`.steps` ask for
them, and set :data:`ENABLED` to False to do without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from asyncfl_lite.models.stacked import (
    Alone,
    Chain,
    Forward,
    SideBySide,
    chain_of,
    images_of_all,
    linear,
    vectors_of_each,
)

ENABLED = True
"""Whether anything in this file is used; tests compare runs with and without."""

LARGE = 2**17
"""Number of a chain's parameters above which one model's backward pass is written out, because autograd would copy
gradients twice."""
LINE = 16
"""Count of 4-byte numbers in a line of a processor's cache; matrices that begin at a line are computed with the same
bits."""

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
"""``(x (G, d), inputs (G, B, …), draws) -> (outputs (G, B, …), backward)``"""
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


def shortcut(forward: Forward) -> WithBackward | None:
    """Return the outputs and the backward pass of a forward pass in one function; None if it is not written out.

    It is written out for chains of convolutions, max-pooling, linear layers and functions of single numbers.
    """
    if isinstance(forward, SideBySide) and _written_out(forward.chain):
        return partial(_several, forward)
    if isinstance(forward, Alone) and forward.model.num_parameters > LARGE:
        chain = chain_of(forward.model)
        if chain is not None and _written_out(chain):
            return partial(_one, SideBySide(forward.model, chain))
    return None


def _written_out(chain: Chain) -> bool:
    of_images = (nn.MaxPool2d, *ELEMENTWISE)
    return all(
        type(layer) in of_images or (type(layer) is nn.Conv2d and not isinstance(layer.padding, str))
        for layer in chain.images
    ) and all(type(layer) in {nn.Linear, *ELEMENTWISE} for layer in chain.vectors)


def _several(forward: SideBySide, x: Tensor, inputs: Tensor, draws: object = None) -> tuple[Tensor, Backward]:
    """Return ``(G, B, C)`` outputs of several chains side by side, and their backward pass."""
    parts, kept, h, count = iter(forward.parts(x)), list[Tensor](), inputs, len(x)
    images, vectors = forward.chain
    if images:
        h = images_of_all(h)
        for layer in images:
            h = _image_layer(layer, h, parts, kept, count)
        shape = h.shape
        h = vectors_of_each(h, count)
    outputs = _vector_layers(vectors, h.flatten(2), parts, kept, linear)

    def backward(gradient: Tensor) -> Tensor:
        found = list[Tensor]()
        for layer in reversed(vectors):
            if type(layer) is not nn.Linear:
                gradient = ELEMENTWISE[type(layer)](gradient, kept.pop())
                continue
            weight, h = kept.pop(), kept.pop()
            if layer.bias is not None:
                found.append(gradient.sum(1))
            found.append(torch.bmm(gradient.transpose(1, 2), h).flatten(1))
            if kept:
                gradient = torch.bmm(gradient, weight)
        if images:
            size, channels, *sides = shape
            gradient = images_of_all(gradient.view(count, size, channels // count, *sides))
            for layer in reversed(images):
                gradient, *own = _image_layer_backward(layer, gradient, kept, count)
                found += [part.reshape(count, -1) for part in own]
        return torch.cat(found[::-1], 1)

    return outputs, backward


def _one(forward: SideBySide, x: Tensor, inputs: Tensor, draws: object = None) -> tuple[Tensor, Backward]:
    """Return ``(1, B, C)`` outputs of one chain, and its backward pass, which fills the vector layer by layer."""
    kept, h = list[Tensor](), forward.model.laid_out(inputs.squeeze(0))
    images, vectors = forward.chain
    parts = iter(forward.parts(x))
    for layer in images:
        h = _image_layer(layer, h, parts, kept, 1)
    shape = h.shape
    outputs = _vector_layers(vectors, h.flatten(1), (part.squeeze(0) for part in parts), kept, functional.linear)

    def backward(gradient: Tensor) -> Tensor:
        gradient, found = gradient.squeeze(0), gradient.new_empty(x.shape)
        parts = forward.parts(found)
        for layer in reversed(vectors):
            if type(layer) is not nn.Linear:
                gradient = ELEMENTWISE[type(layer)](gradient, kept.pop())
                continue
            weight, h = kept.pop(), kept.pop()
            if layer.bias is not None:
                torch.sum(gradient, 0, out=parts.pop()[0])
            own = parts.pop()[0]
            if own.storage_offset() % LINE:
                own.copy_(gradient.t().mm(h))
            else:
                torch.mm(gradient.t(), h, out=own)
            if kept:
                gradient = gradient.mm(weight)
        if images and kept:
            gradient = gradient.view(shape)
            for layer in reversed(images):
                gradient, *of_layer = _image_layer_backward(layer, gradient, kept, 1)
                for part in of_layer:
                    parts.pop()[0].copy_(part)
        return found

    return outputs.unsqueeze(0), backward


def _vector_layers(
    layers: Sequence[nn.Module], h: Tensor, parts: Iterator[Tensor], kept: list[Tensor], apply: Callable[..., Tensor]
) -> Tensor:
    """Apply layers to vectors, linear ones by ``apply``, and keep the tensors for the backward pass."""
    for layer in layers:
        if type(layer) is nn.Linear:
            weight, bias = next(parts), None if layer.bias is None else next(parts)
            kept += [h, weight]
            h = apply(h, weight, bias)
        else:
            h = layer(h)
            kept.append(h)
    return h


def _image_layer(layer: nn.Module, h: Tensor, parts: Iterator[Tensor], kept: list[Tensor], count: int) -> Tensor:
    """Apply ``count`` copies of a layer to their models' images, and keep the tensors for the backward pass."""
    if type(layer) is nn.Conv2d:
        weight = next(parts).flatten(0, 1)
        bias = None if layer.bias is None else next(parts).flatten()
        kept += [h, weight]
        groups = count * layer.groups
        return functional.conv2d(h, weight, bias, layer.stride, layer.padding, layer.dilation, groups)
    if type(layer) is nn.MaxPool2d:
        pooled, indices = torch.ops.aten.max_pool2d_with_indices(h, *_pooling(layer))
        kept += [h, indices]
        return pooled
    h = layer(h)
    kept.append(h)
    return h


def _image_layer_backward(layer: nn.Module, gradient: Tensor, kept: list[Tensor], count: int) -> list[Tensor]:
    """Return the gradients of a layer's images, bias and weight, given the gradient of its output."""
    if type(layer) is nn.Conv2d:
        weight, h = kept.pop(), kept.pop()
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
