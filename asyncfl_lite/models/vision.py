"""Image models that are a chain of layers, for inputs ``(n, channels, height, width)``; for others see ``resnet``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from torch import nn

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.base import MODELS, ModelSpec
from asyncfl_lite.models.tracker import Tracker

Norm = Literal["none", "group", "batch", "tracker"]


def norm_layers(kind: Norm) -> Callable[[int], nn.Module]:
    """Return a function that makes a normalisation layer for a given number of channels; GroupNorm has 2 groups."""
    makers: dict[Norm, Callable[[int], nn.Module]] = {
        "none": lambda channels: nn.Identity(),
        "group": partial(nn.GroupNorm, 2),
        "batch": nn.BatchNorm2d,
        "tracker": Tracker,
    }
    return makers[kind]


def _widened(sizes: tuple[int, ...], scale: float) -> tuple[int, ...]:
    """Return layer sizes ``scale`` times as large, rounded to even numbers so that GroupNorm can halve them."""
    return tuple(max(2, 2 * round(size * scale / 2)) for size in sizes)


@MODELS.register("mlp")
class MLP(ModelSpec):
    """Multi-layer perceptron on the flattened image.

    >>> from asyncfl_lite.models import MODELS
    >>> module = MODELS.get("mlp")(hidden=(32,)).build((1, 8, 8), 10)
    >>> sum(parameter.numel() for parameter in module.parameters())
    2410
    """

    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (64,)
    """Number of units in each hidden layer; empty for a linear model."""

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build Linear and ReLU layers, such as 64-64-10 for ``digits``."""
        sizes = [math.prod(input_shape), *self.hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in zip(sizes, sizes[1:], strict=False):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], num_classes))

    def larger(self, scale: float) -> MLP:
        """Return a larger version with hidden layers ``scale`` times as wide, to teach this one.

        Raises:
            ConfigError: for a model without hidden layers.
        """
        if not self.hidden:
            raise ConfigError("hidden: a model without hidden layers has no larger relatives; name the teachers")
        return MLP(hidden=_widened(self.hidden, scale))


@MODELS.register("cnn")
class CNN(ModelSpec):
    """3×3 convolutions, each followed by 2×2 max-pooling, then one linear layer.

    >>> from asyncfl_lite.models import MODELS
    >>> module = MODELS.get("cnn")().build((1, 8, 8), 10)
    >>> sum(parameter.numel() for parameter in module.parameters())
    1898
    """

    takes = "images"

    channels: tuple[Annotated[int, Field(ge=1)], ...] = Field((8, 16), min_length=1)
    """Number of output channels of each convolution."""
    norm: Norm = "none"
    """Normalisation after each convolution; ``group``: GroupNorm with 2 groups; ``tracker``: none, but statistics are
    recorded."""

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the module for images of at least 2^len(channels) pixels a side."""
        sizes = [input_shape[0], *self.channels]
        layers: list[nn.Module] = []
        for before, after in zip(sizes, sizes[1:], strict=False):
            layers += [
                nn.Conv2d(before, after, 3, padding=1),
                norm_layers(self.norm)(after),
                nn.ReLU(),
                nn.MaxPool2d(2),
            ]
        side = math.prod(length // 2 ** len(self.channels) for length in input_shape[1:])
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(side * sizes[-1], num_classes))

    def larger(self, scale: float) -> CNN:
        """Return a larger version with ``scale`` times as many channels, to teach this one."""
        return CNN(channels=_widened(self.channels, scale), norm=self.norm)


class _Convolution(NamedTuple):
    """One convolution with ReLU, and a 2×2 max-pooling if ``pool``."""

    channels: int
    kernel: int
    padding: int
    pool: bool


def _stacked(
    name: str,
    convolutions: Sequence[_Convolution],
    hidden: Sequence[int],
    input_shape: tuple[int, ...],
    num_classes: int,
    norm: Norm = "none",
) -> nn.Module:
    """Build a plain CNN, as used before ResNet: convolutions, then linear layers with ReLU between them.

    Raises:
        ConfigError: for images too small for the convolutions.
    """
    before, *sides = input_shape
    layers: list[nn.Module] = []
    for channels, kernel, padding, pool in convolutions:
        layers += [nn.Conv2d(before, channels, kernel, padding=padding), norm_layers(norm)(channels), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] * pool
        sides = [(side + 2 * padding - kernel + 1) // (1 + pool) for side in sides]
        before = channels
        if min(sides) < 1:
            height, width = input_shape[1:]
            raise ConfigError(f"model: {name} needs larger images than {height}×{width}")
    sizes = [before * math.prod(sides), *hidden]
    layers.append(nn.Flatten())
    for fewer, more in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(fewer, more), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], num_classes))


@MODELS.register("lenet")
class LeNet(ModelSpec):
    """LeNet-5 with ReLU and max-pooling; 61,706 parameters on MNIST.

    Two 5×5 convolutions with 6 and 16 channels come before linear layers of 120 and 84 units.

    >>> from asyncfl_lite.models import MODELS
    >>> module = MODELS.get("lenet")().build((1, 28, 28), 10)
    >>> sum(parameter.numel() for parameter in module.parameters())
    61706
    """

    takes = "images"

    scale: float = Field(1.0, gt=0)
    """Factor on the number of channels and units."""

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the module for images of at least 12 pixels a side."""
        (first, second), hidden = _widened((6, 16), self.scale), _widened((120, 84), self.scale)
        convolutions = [_Convolution(first, 5, 2, True), _Convolution(second, 5, 0, True)]
        return _stacked("lenet", convolutions, hidden, input_shape, num_classes)

    def larger(self, scale: float) -> LeNet:
        """Return a larger version with ``scale`` times as many channels and units, to teach this one."""
        return LeNet(scale=scale * self.scale)


@MODELS.register("flgo_cnn")
class FLGoCNN(ModelSpec):
    """FLGo's CNN (FedADT), in its layout for MNIST or for CIFAR.

    MNIST: two padded 5×5 convolutions with 32 and 64 channels, then 512 units. CIFAR: two unpadded ones with 64 and 64
    channels, then 384 and 192 units.

    >>> from asyncfl_lite.models import MODELS
    >>> module = MODELS.get("flgo_cnn")().build((1, 28, 28), 10)
    >>> sum(parameter.numel() for parameter in module.parameters())
    1663370
    """

    takes = "images"

    layout: Literal["auto", "mnist", "cifar"] = "auto"
    """Layout: FLGo has one for grey and one for colour images, with 1,663,370 and 797,962 parameters; ``auto`` chooses
    by the images."""
    scale: float = Field(1.0, gt=0)
    """Factor on the number of channels and units."""

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the module for images of at least 4 pixels a side, or 16 in CIFAR's layout."""
        colour = input_shape[0] == 3 if self.layout == "auto" else self.layout == "cifar"
        channels, hidden, padding = ((64, 64), (384, 192), 0) if colour else ((32, 64), (512,), 2)
        convolutions = [_Convolution(size, 5, padding, True) for size in _widened(channels, self.scale)]
        return _stacked("flgo_cnn", convolutions, _widened(hidden, self.scale), input_shape, num_classes)

    def larger(self, scale: float) -> FLGoCNN:
        """Return a larger version with ``scale`` times as many channels and units, to teach this one."""
        return FLGoCNN(layout=self.layout, scale=scale * self.scale)


@MODELS.register("femnist_cnn")
class FEMNISTCNN(ModelSpec):
    """FedRevive's CNN for FEMNIST, with 421,058 parameters.

    Three 3×3 convolutions with 64 channels each come before linear layers of 200 and 100 units.

    The paper prints only the number of parameters, 421k; the layers are those of the authors' code, which records means
    and variances after each convolution but does not normalise by them.

    >>> from asyncfl_lite.models import MODELS
    >>> module = MODELS.get("femnist_cnn")().build((1, 28, 28), 62)
    >>> sum(parameter.numel() for parameter in module.parameters())
    421058
    """

    takes = "images"

    scale: float = Field(1.0, gt=0)
    """Factor on the number of channels and units."""
    norm: Norm = "none"
    """Normalisation after each convolution. The paper speaks of BatchNorm statistics; its authors' code has
    ``tracker``."""

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the module for images of at least 12 pixels a side."""
        sizes = _widened((64, 64, 64), self.scale)
        convolutions = [_Convolution(size, 3, 0, pool) for size, pool in zip(sizes, (False, True, True), strict=True)]
        hidden = _widened((200, 100), self.scale)
        return _stacked("femnist_cnn", convolutions, hidden, input_shape, num_classes, self.norm)

    def larger(self, scale: float) -> FEMNISTCNN:
        """Return a larger version with ``scale`` times as many channels and units, to teach this one."""
        return FEMNISTCNN(scale=scale * self.scale, norm=self.norm)
