"""Several models of one architecture in one computation, layer by layer.

``torch.func.vmap`` does this for most modules, at some cost per operation. The usual chain of image layers, a
flattening, linear layers and dropout is written out: G convolutions become one grouped convolution in channels-last
format, in which pooling and ReLU process the channels of all models at once; G linear layers become one batched matrix
product. The results are those of ``vmap``, up to rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional

from asyncfl_lite.models.vectors import VectorModel

Forward = Callable[[Tensor, Tensor], Tensor]
"""A forward pass of several models in training mode: ``(x (G, d), inputs (G, B, …)) -> outputs (G, B, …)``.

The outputs are differentiable in ``x``. Dropout has no effect in a chain; no other model that draws has such a pass.
"""

ELEMENTWISE = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Identity)
POOLING = (nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)

ALIGNED = 4
"""Alignment, in 4-byte numbers, at which libraries compute matrix products with the same bits."""
FILLED = 32
"""Count of 4-byte numbers in the registers on which processors with AVX-512 compute a function at once."""
REGISTERS = (nn.Sigmoid, nn.SiLU, nn.ELU)
"""Layers whose function rounds differently on numbers that do not fill these registers."""


class Chain(NamedTuple):
    """A model that is a chain: layers on images, a flattening, layers on vectors; either list may be empty."""

    images: list[nn.Module]
    vectors: list[nn.Module]


def stacked_forward(model: VectorModel) -> Forward:
    """Return the forward pass of several models like ``model``: hand-written for a chain, else by vmap."""
    chain = chain_of(model)
    return vmap(partial(model, train=True)) if chain is None else SideBySide(model, chain)


def chain_of(model: VectorModel) -> Chain | None:
    """Return a model as a chain of layers; None if it has another structure, shared parameters, or hooks."""
    module = model.module
    if type(module) is not nn.Sequential or not all(map(_is_plain, module.modules())):
        return None
    layers = [_not_in_place(layer) for layer in module]
    flattenings = [place for place, layer in enumerate(layers) if type(layer) is nn.Flatten]
    names = [f"{place}.{name}" for place, layer in enumerate(layers) for name, _ in layer.named_parameters()]
    if len(flattenings) != 1 or names != [slot.name for slot in model.parameter_slots]:
        return None
    flatten = layers[flattenings[0]]
    chain = Chain(_pooled_first(layers[: flattenings[0]]), layers[flattenings[0] + 1 :])
    fits = (flatten.start_dim, flatten.end_dim) == (1, -1)
    fits &= all(_is_of_images(layer) for layer in chain.images)
    fits &= all(type(layer) in (nn.Linear, nn.Dropout, *ELEMENTWISE) for layer in chain.vectors)
    return chain if fits else None


def _is_plain(module: nn.Module) -> bool:
    """Return whether a module computes what its class says: it has no hooks, and no ``forward`` of its own."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return not any(hooks) and "forward" not in vars(module)


def _not_in_place(layer: nn.Module) -> nn.Module:
    """Return a layer that does not write into its inputs, which other models read, too."""
    if getattr(layer, "inplace", False):
        layer = copy.copy(layer)
        setattr(layer, "inplace", False)  # noqa: B010 - not every module has it
    return layer


def _pooled_first(layers: list[nn.Module]) -> list[nn.Module]:
    """Move every ReLU behind the max-pooling that follows it, where it has fewer numbers to process.

    The largest of several numbers stays the largest after ReLU, so outputs and gradients have the same bits.
    """
    ordered: list[nn.Module] = []
    for layer in layers:
        swap = type(layer) is nn.MaxPool2d and ordered and type(ordered[-1]) is nn.ReLU
        ordered.insert(len(ordered) - bool(swap), layer)
    return ordered


def shared_chain(model: VectorModel, *buffers: Tensor | None) -> Chain | None:
    """Return a model's chain if it has only layers on vectors and no running statistics, else None.

    Several such models, computed side by side, have the same outputs, bit by bit, as each one alone, for minibatches
    whose sizes satisfy :func:`keeps_bits`. The outputs of other models may depend on the models that are computed with
    them.
    """
    chain = chain_of(model)
    return None if chain is None or chain.images or any(given is not None for given in buffers) else chain


def keeps_bits(chain: Chain, *sizes: int) -> bool:
    """Return whether chains on vectors have the same bits side by side as alone, for minibatches of these ``sizes``.

    A library may round a matrix product differently if a matrix does not begin at a multiple of 16 bytes in memory, and
    a function that it computes for several numbers at once if these do not fill the registers. Side by side, a model's
    matrices begin where those of the model before it end. So no minibatch may consist of one sample; a layer's weights,
    and its inputs and outputs for each minibatch, must each consist of a multiple of :data:`ALIGNED` numbers; and the
    inputs of such a function must consist of a multiple of :data:`FILLED` numbers.
    """
    weights, inputs, filled, width = [], [], [], 0
    for layer in chain.vectors:
        if type(layer) is nn.Linear:
            width = layer.out_features
            weights.append(layer.weight.numel())
            inputs += [layer.in_features, width]
        elif type(layer) in REGISTERS:
            filled.append(width)
    return (
        min(sizes) > 1
        and not any(count % ALIGNED for count in weights)
        and not any(size * width % ALIGNED for size in sizes for width in inputs)
        and not any(size * width % FILLED for size in sizes for width in filled)
    )


def _is_of_images(layer: nn.Module) -> bool:
    """Return whether a layer on images can process the channels of several models at once without mixing them."""
    if type(layer) is nn.Conv2d:
        return layer.padding_mode == "zeros"
    if type(layer) is nn.MaxPool2d:
        return not layer.return_indices
    return type(layer) in (nn.GroupNorm, *POOLING, *ELEMENTWISE)


class Alone:
    """The forward pass of one model, as a stack of one whose bits are those of its module; see :data:`Forward`.

    Training mode writes into ``buffers (b,)``.
    """

    def __init__(self, model: VectorModel, buffers: Tensor | None = None, *, train: bool = True) -> None:
        self.model, self.buffers, self.train = model, buffers, train

    def __call__(self, x: Tensor, inputs: Tensor) -> Tensor:
        """Return ``(1, B, …)`` outputs."""
        inputs = self.model.laid_out(inputs.squeeze(0))
        return self.model(x.squeeze(0), inputs, self.buffers, train=self.train).unsqueeze(0)


class SideBySide:
    """The forward pass of several chains side by side; see :data:`Forward`."""

    def __init__(self, model: VectorModel, chain: Chain) -> None:
        self.model, self.chain = model, chain
        slots = model.parameter_slots
        self._sizes, self._shapes = [slot.stop - slot.start for slot in slots], [(-1, *slot.shape) for slot in slots]

    def __call__(self, x: Tensor, inputs: Tensor) -> Tensor:
        """Return ``(G, B, C)`` outputs."""
        parts = iter(self.parts(x))
        if self.chain.images:
            h = images_of_all(inputs)
            for layer in self.chain.images:
                h = side_by_side(layer, h, *_own(layer, parts), len(x))
            inputs = vectors_of_each(h, len(x))
        return self.of_vectors(inputs.flatten(2), parts)[-1]

    def parts(self, x: Tensor) -> list[Tensor]:
        """Return the ``(G, …)`` parameters in the order of the layers, views of the ``(G, d)`` vectors."""
        split = zip(x.split(self._sizes, 1), self._shapes, strict=True)
        return [part.view(shape) for part, shape in split]

    def of_vectors(self, h: Tensor, parts: Iterator[Tensor]) -> list[Tensor]:
        """Apply the chain's layers on vectors to ``h``; return each linear layer's outputs, then the models' outputs.

        ``h`` is ``(G, B, features)``.
        """
        hidden = []
        for layer in self.chain.vectors:
            if type(layer) is not nn.Dropout:
                h = side_by_side(layer, h, *_own(layer, parts), len(h))
            if type(layer) is nn.Linear:
                hidden.append(h)
        return [*hidden, h]


def _own(layer: nn.Module, parts: Iterator[Tensor]) -> tuple[Tensor | None, Tensor | None]:
    """Take a layer's stacked weight and bias, if it has them, from the remaining parameters."""
    weight = None if getattr(layer, "weight", None) is None else next(parts)
    return weight, None if getattr(layer, "bias", None) is None else next(parts)


def side_by_side(layer: nn.Module, h: Tensor, weight: Tensor | None, bias: Tensor | None, count: int) -> Tensor:
    """Apply ``count`` copies of ``layer``, each with its own parameters, to the activations of as many models.

    For a linear layer, ``h`` is ``(count, B, features)``; else it is ``(B, count · channels, height, width)``.
    """
    if type(layer) is nn.Linear and weight is not None:
        turned = weight.transpose(1, 2)
        return torch.bmm(h, turned) if bias is None else torch.baddbmm(bias.unsqueeze(1), h, turned)
    if type(layer) is nn.Conv2d and weight is not None:
        bias, groups = None if bias is None else bias.flatten(), count * layer.groups
        return functional.conv2d(h, weight.flatten(0, 1), bias, layer.stride, layer.padding, layer.dilation, groups)
    if type(layer) is nn.GroupNorm:
        weight, bias = (None if part is None else part.flatten() for part in (weight, bias))
        return functional.group_norm(h, count * layer.num_groups, weight, bias, layer.eps)
    return layer(h)


def images_of_all(inputs: Tensor) -> Tensor:
    """Reorder ``(G, B, channels, height, width)`` images to ``(B, G · channels, height, width)``, channels last."""
    return inputs.transpose(0, 1).flatten(1, 2).to(memory_format=torch.channels_last)


def vectors_of_each(images: Tensor, count: int) -> Tensor:
    """Reorder ``(B, G · channels, height, width)`` images to ``(G, B, channels · height · width)``."""
    return images.unflatten(1, (count, -1)).transpose(0, 1).flatten(2)
