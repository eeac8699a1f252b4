"""Models for images: inputs ``(n, channels, height, width)``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from pydantic import Field, field_validator
from torch import nn

from asyncfl_lite.errors import ConfigError, unknown_name
from asyncfl_lite.models.base import MODELS, ModelSpec

Norm = Literal["none", "group", "batch"]

RESNETS = {"resnet18": (2, 2, 2, 2), "resnet26": (3, 3, 3, 3), "resnet34": (3, 4, 6, 3)}
"""Blocks a stage by name; KUIPER prints no layout of its ResNet-26, this one has 26 layers."""


def _norm(kind: Norm) -> Callable[[int], nn.Module]:
    """Return a layer factory; GroupNorm has 2 groups (specification §14)."""
    return {"none": lambda _: nn.Identity(), "group": partial(nn.GroupNorm, 2), "batch": nn.BatchNorm2d}[kind]


def _widened(sizes: tuple[int, ...], scale: float) -> tuple[int, ...]:
    """Return layer sizes ``scale`` times as large, rounded to even ones so that GroupNorm can halve them."""
    return tuple(max(2, 2 * round(size * scale / 2)) for size in sizes)


def _blocks(total: int, stages: int) -> tuple[int, ...]:
    """Return a layout of ``total`` blocks: that of a ResNet with a name, or even, the middle stages first."""
    for layout in RESNETS.values():
        if (sum(layout), len(layout)) == (total, stages):
            return layout
    a_stage, left = divmod(total, stages)
    from_the_middle = sorted(range(stages), key=lambda stage: (abs(stage - (stages - 1) / 2), -stage))
    return tuple(a_stage + (stage in from_the_middle[:left]) for stage in range(stages))


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

    def larger(self, scale: float) -> MLP:
        """Return a relative whose hidden layers are ``scale`` times as wide, for teaching this one.

        Raises:
            ConfigError: for a model without hidden layers.
        """
        if not self.hidden:
            raise ConfigError("hidden: a model without hidden layers has no larger relatives; name the teachers")
        return MLP(hidden=_widened(self.hidden, scale))


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

    def larger(self, scale: float) -> CNN:
        """Return a relative with ``scale`` times as many channels, for teaching this one."""
        return CNN(channels=_widened(self.channels, scale), norm=self.norm)


@MODELS.register("resnet")
class ResNet(ModelSpec):
    """ResNet for small images: 3×3 stem, GroupNorm, `width` to 8 × `width` channels.

    ``width=64, blocks=(2, 2, 2, 2)`` is ResNet-18; ``blocks="resnet18"`` is the same.
    """

    width: int = Field(8, ge=2)
    blocks: tuple[int, ...] = Field((1, 1, 1), min_length=1)
    """Residual blocks a stage, two layers each, or ``resnet18``, ``resnet26``, ``resnet34``."""
    norm: Literal["group", "batch"] = "group"

    @field_validator("blocks", mode="before")
    @classmethod
    def _named(cls, blocks: Any) -> Any:
        """Turn a ResNet's name into its blocks."""
        if not isinstance(blocks, str):
            return blocks
        if blocks not in RESNETS:
            raise ConfigError(unknown_name("blocks", blocks, RESNETS))
        return RESNETS[blocks]

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

    def larger(self, scale: float) -> ResNet:
        """Return a relative with ``scale`` times as many blocks, for teaching this one.

        ResNet-18's twice as large relative is ResNet-34, and 1.5 times makes ResNet-26 (KUIPER §3.1).
        """
        blocks = _blocks(round(scale * sum(self.blocks)), len(self.blocks))
        return ResNet(width=self.width, blocks=blocks, norm=self.norm)

    @staticmethod
    def _block(before: int, after: int, stride: int, norm: Callable[[int], nn.Module]) -> nn.Module:
        from torchvision.models.resnet import BasicBlock  # a second and more to import: only when needed

        shortcut = None
        if stride != 1 or before != after:
            shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), norm(after))
        return BasicBlock(before, after, stride, shortcut, norm_layer=norm)
