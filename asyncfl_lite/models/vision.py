"""Models for images: inputs ``(n, channels, height, width)``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

from pydantic import Field
from torch import nn

from asyncfl_lite.models.base import MODELS, ModelSpec

Norm = Literal["none", "group", "batch"]


def _norm(kind: Norm) -> Callable[[int], nn.Module]:
    """Return a layer factory; GroupNorm has 2 groups (specification §14)."""
    return {"none": lambda _: nn.Identity(), "group": partial(nn.GroupNorm, 2), "batch": nn.BatchNorm2d}[kind]


@MODELS.register("mlp")
class MLP(ModelSpec):
    """Multi-layer perceptron on the flattened image."""

    hidden: tuple[int, ...] = (64,)

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Return Linear and ReLU layers, 64-64-10 on ``digits``."""
        sizes = [math.prod(input_shape), *self.hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in zip(sizes, sizes[1:], strict=False):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], num_classes))


@MODELS.register("cnn")
class CNN(ModelSpec):
    """Convolutions 3×3, each halving the image, then one linear layer."""

    channels: tuple[int, ...] = Field((8, 16), min_length=1)
    norm: Norm = "none"

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Return the module for images of at least 2^len(channels) pixels a side."""
        sizes = [input_shape[0], *self.channels]
        layers: list[nn.Module] = []
        for before, after in zip(sizes, sizes[1:], strict=False):
            layers += [
                nn.Conv2d(before, after, 3, padding=1),
                _norm(self.norm)(after),
                nn.ReLU(),
                nn.MaxPool2d(2),
            ]
        side = math.prod(length // 2 ** len(self.channels) for length in input_shape[1:])
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(side * sizes[-1], num_classes))


@MODELS.register("resnet")
class ResNet(ModelSpec):
    """ResNet for small images: 3×3 stem, GroupNorm, `width` to 8 × `width` channels.

    ``width=64, blocks=(2, 2, 2, 2)`` is ResNet-18.
    """

    width: int = Field(8, ge=2)
    blocks: tuple[int, ...] = Field((1, 1, 1), min_length=1)
    norm: Literal["group", "batch"] = "group"

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Return torchvision's basic blocks behind a 3×3 stem."""
        norm = _norm(self.norm)
        layers = [
            nn.Conv2d(input_shape[0], self.width, 3, padding=1, bias=False),
            norm(self.width),
            nn.ReLU(),
        ]
        before = self.width
        for stage, count in enumerate(self.blocks):
            after, stride = self.width * 2**stage, 1 if stage == 0 else 2
            for number in range(count):
                layers.append(self._block(before, after, stride if number == 0 else 1, norm))
                before = after
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, num_classes))

    @staticmethod
    def _block(before: int, after: int, stride: int, norm: Callable[[int], nn.Module]) -> nn.Module:
        from torchvision.models.resnet import BasicBlock  # a second and more to import: only when needed

        shortcut = None
        if stride != 1 or before != after:
            shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), norm(after))
        return BasicBlock(before, after, stride, shortcut, norm_layer=norm)
