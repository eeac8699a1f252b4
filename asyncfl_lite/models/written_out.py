"""Layer chains of several models side by side, as one node of autograd with a hand-written backward pass.

Autograd would perform the same operations, so the bits are the same, but it would take as long again to find out which
operations they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

ELEMENTWISE: dict[type[nn.Module], Callable[[Tensor, Tensor], Tensor]] = {
    nn.Identity: lambda gradient, output: gradient,
    nn.ReLU: lambda gradient, output: torch.ops.aten.threshold_backward(gradient, output, 0),
    nn.Tanh: torch.ops.aten.tanh_backward,
    nn.Sigmoid: torch.ops.aten.sigmoid_backward,
}
"""Layer that works element by element -> ``(output's gradient, output) -> input's gradient``."""

LINE = 16
"""Count of 4-byte numbers in a line of a processor's cache; matrices that begin at a line are computed with the same
bits."""


class Slots(NamedTuple):
    """Sizes and shapes of a chain's parameters, in their order in the parameter vector.

    Attributes:
        sizes: number of entries of each parameter.
        shapes: shape of each parameter, with a first axis -1 for any number of models side by side.
    """

    sizes: list[int]
    shapes: list[tuple[int, ...]]

    def of(self, x: Tensor) -> list[Tensor]:
        """Return the ``(G, …)`` parameters, views of the ``(G, d)`` vectors."""
        split = zip(x.split(self.sizes, 1), self.shapes, strict=True)
        return [part.view(shape) for part, shape in split]


def can_be_written_out(images: Sequence[nn.Module], vectors: Sequence[nn.Module]) -> bool:
    """Return whether a chain of these layers on images, then on vectors, has a hand-written backward pass."""
    plain = (nn.MaxPool2d, *ELEMENTWISE)
    return all(
        type(layer) in plain or (type(layer) is nn.Conv2d and not isinstance(layer.padding, str)) for layer in images
    ) and all(type(layer) in {nn.Linear, *ELEMENTWISE} for layer in vectors)


def images_of_all(inputs: Tensor) -> Tensor:
    """Reorder ``(G, B, channels, height, width)`` images to ``(B, G · channels, height, width)``, channels last."""
    return inputs.transpose(0, 1).flatten(1, 2).to(memory_format=torch.channels_last)


def vectors_of_each(images: Tensor, count: int) -> Tensor:
    """Reorder ``(B, G · channels, height, width)`` images to ``(G, B, channels · height · width)``."""
    return images.unflatten(1, (count, -1)).transpose(0, 1).flatten(2)


def linear(h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Apply G linear layers to ``h (G, B, in)``, each with its own weights; return ``(G, B, out)``.

    ``weight`` is ``(G, out, in)``; ``bias`` is ``(G, out)`` or None.
    """
    turned = weight.transpose(1, 2)
    return torch.bmm(h, turned) if bias is None else torch.baddbmm(bias.unsqueeze(1), h, turned)


class Kept:
    """Store for the tensors that a chain's backward pass needs, in place of autograd's context."""

    saved_tensors: tuple[Tensor, ...]

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep the given tensors for the backward pass."""
        self.saved_tensors = tensors


class WrittenOut(torch.autograd.Function):
    """Autograd function that applies several models' layers side by side: image layers, if any, then vector layers."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, inputs: Tensor, images: list, vectors: list, slots: Slots) -> Tensor:
        """Return ``(G, B, C)`` outputs for ``x (G, d)`` and ``inputs (G, B, …)``."""
        parts, kept, h = iter(slots.of(x)), list[Tensor](), inputs
        if images:
            h = images_of_all(h)
            for layer in images:
                h = _image_layer(layer, h, parts, kept, len(x))
            ctx.image_shape = h.shape
            h = vectors_of_each(h, len(x))
        h = h.flatten(2)
        for layer in vectors:
            if type(layer) is nn.Linear:
                weight, bias = next(parts), None if layer.bias is None else next(parts)
                kept += [h, weight]
                h = linear(h, weight, bias)
            else:
                h = layer(h)
                kept.append(h)
        ctx.save_for_backward(*kept)
        ctx.images, ctx.vectors = images, vectors
        return h

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        """Return the ``(G, d)`` gradient with respect to ``x``, given the ``(G, B, C)`` gradient of the outputs."""
        kept, found, count = list(ctx.saved_tensors), list[Tensor](), len(gradient)
        for layer in reversed(ctx.vectors):
            if type(layer) is not nn.Linear:
                gradient = ELEMENTWISE[type(layer)](gradient, kept.pop())
                continue
            weight, h = kept.pop(), kept.pop()
            if layer.bias is not None:
                found.append(gradient.sum(1))
            found.append(torch.bmm(gradient.transpose(1, 2), h).flatten(1))
            if kept:
                gradient = torch.bmm(gradient, weight)
        if ctx.images:
            size, channels, *sides = ctx.image_shape
            gradient = images_of_all(gradient.view(count, size, channels // count, *sides))
            for layer in reversed(ctx.images):
                gradient, *own = _image_layer_backward(layer, gradient, kept, count)
                found += [part.reshape(count, -1) for part in own]
        return torch.cat(found[::-1], 1), None, None, None, None


class OneWrittenOut(torch.autograd.Function):
    """One chain with a hand-written backward pass that fills the flat gradient vector layer by layer."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, inputs: Tensor, images: list, vectors: list, slots: Slots) -> Tensor:
        """Return ``(n, C)`` outputs for ``x (d,)`` and ``inputs (n, …)``, in the inputs' memory format."""
        parts, kept, h = iter(slots.of(x[None])), list[Tensor](), inputs
        for layer in images:
            h = _image_layer(layer, h, parts, kept, 1)
        ctx.image_shape = h.shape
        h = h.flatten(1)
        for layer in vectors:
            if type(layer) is nn.Linear:
                weight, bias = next(parts)[0], None if layer.bias is None else next(parts)[0]
                kept += [h, weight]
                h = functional.linear(h, weight, bias)
            else:
                h = layer(h)
                kept.append(h)
        ctx.save_for_backward(*kept)
        ctx.images, ctx.vectors, ctx.slots = images, vectors, slots
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the ``(d,)`` gradient with respect to ``x``, given the ``(n, C)`` gradient of the outputs."""
        kept, found = list(ctx.saved_tensors), gradient.new_empty(1, sum(ctx.slots.sizes))
        parts = ctx.slots.of(found)
        for layer in reversed(ctx.vectors):
            if type(layer) is not nn.Linear:
                gradient = ELEMENTWISE[type(layer)](gradient, kept.pop())
                continue
            weight, h = kept.pop(), kept.pop()
            if layer.bias is not None:
                torch.sum(gradient, 0, out=parts.pop()[0])
            place = parts.pop()[0]
            if place.storage_offset() % LINE:
                place.copy_(gradient.t().mm(h))
            else:
                torch.mm(gradient.t(), h, out=place)
            if kept:
                gradient = gradient.mm(weight)
        if ctx.images and kept:
            gradient = gradient.view(ctx.image_shape)
            for layer in reversed(ctx.images):
                gradient, *own = _image_layer_backward(layer, gradient, kept, 1)
                for part in own:
                    parts.pop()[0].copy_(part)
        return found[0], None, None, None, None


def _image_layer(layer: nn.Module, h: Tensor, parts: Any, kept: list[Tensor], count: int) -> Tensor:
    """Apply ``count`` copies of a layer to their models' images, and keep the tensors for the backward pass."""
    if type(layer) is nn.Conv2d:
        weight = next(parts).flatten(0, 1)
        bias = None if layer.bias is None else next(parts).flatten()
        kept += [h, weight]
        groups = count * layer.groups
        return functional.conv2d(h, weight, bias, layer.stride, layer.padding, layer.dilation, groups)
    if type(layer) is nn.MaxPool2d:
        pooled, places = torch.ops.aten.max_pool2d_with_indices(h, *_pooling(layer))
        kept += [h, places]
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
        places, h = kept.pop(), kept.pop()
        return [torch.ops.aten.max_pool2d_with_indices_backward(gradient, h, *_pooling(layer), places)]
    return [ELEMENTWISE[type(layer)](gradient, kept.pop())]


def _pooling(layer: nn.MaxPool2d) -> tuple[Any, ...]:
    """Return a max-pooling layer's settings as the arguments of torch's operations."""
    pairs = [[value, value] if isinstance(value, int) else list(value)
             for value in (layer.kernel_size, layer.stride, layer.padding, layer.dilation)]  # fmt: skip
    return *pairs, layer.ceil_mode
