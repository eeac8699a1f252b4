"""ResNets for small images, with inputs ``(n, channels, height, width)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from torch import nn

from asyncfl_lite.base.errors import ConfigError, needs, unknown_name
from asyncfl_lite.models.base import MODELS, ModelSpec
from asyncfl_lite.models.vision import Norm, norm_layers

RESNETS = {"resnet18": (2, 2, 2, 2), "resnet26": (3, 3, 3, 3), "resnet34": (3, 4, 6, 3)}
"""Blocks per stage, by name; KUIPER prints no layout of its ResNet-26, and this one has 26 layers."""


def layout(total: int, stages: int) -> tuple[int, ...]:
    """Divide ``total`` blocks among stages as a known ResNet does, or evenly, with extra ones in the middle stages."""
    for known in RESNETS.values():
        if (sum(known), len(known)) == (total, stages):
            return known
    a_stage, left = divmod(total, stages)
    from_the_middle = sorted(range(stages), key=lambda stage: (abs(stage - (stages - 1) / 2), -stage))
    return tuple(a_stage + (stage in from_the_middle[:left]) for stage in range(stages))


def _named(blocks: Any) -> Any:
    """Return the blocks per stage of a named ResNet; anything but a name is returned unchanged."""
    if not isinstance(blocks, str):
        return blocks
    if blocks not in RESNETS:
        raise ConfigError(unknown_name("blocks", blocks, RESNETS))
    return RESNETS[blocks]


Blocks = Annotated[tuple[int, ...], BeforeValidator(_named), Field(min_length=1)]
"""Residual blocks per stage, or a ResNet's name."""


@MODELS.register("resnet")
class ResNet(ModelSpec):
    """ResNet for small images: 3×3 stem, and `width` channels that double at every later stage.

    ``width=64, blocks=(2, 2, 2, 2)`` is the papers' ResNet-18, with 11,173,962 parameters for 10 classes;
    ``blocks="resnet18"`` is the same.

    >>> from asyncfl_lite.models import MODELS
    >>> module = MODELS.get("resnet")(width=8).build((3, 32, 32), 10)
    >>> sum(parameter.numel() for parameter in module.parameters())
    19954
    """

    takes = "images"

    width: int = Field(8, ge=2)
    """Number of channels in the first stage; each later stage has twice as many. The papers' ResNet-18 has 64."""
    blocks: Blocks = (1, 1, 1)
    """Residual blocks per stage, two layers each, or ``resnet18``, ``resnet26``, ``resnet34``."""
    norm: Norm = "group"
    """Normalisation layers; ``tracker``, as in FedRevive's authors' code, normalises nothing but records statistics,
    anew with every version."""

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build a 3×3 convolution, the stages of torchvision's basic blocks, and a linear layer."""
        norm = norm_layers(self.norm)
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
        """Return a larger version with ``scale`` times as many blocks, to teach this one.

        With twice as many blocks, ResNet-18 becomes ResNet-34, and with 1.5 times as many it becomes ResNet-26 (KUIPER
        §3.1).
        """
        blocks = layout(round(scale * sum(self.blocks)), len(self.blocks))
        return ResNet(width=self.width, blocks=blocks, norm=self.norm)

    @staticmethod
    def _block(before: int, after: int, stride: int, norm: Callable[[int], nn.Module]) -> nn.Module:
        with needs("images", "resnet"):
            from torchvision.models.resnet import BasicBlock  # takes a second or more, so only when needed

        shortcut = None
        if stride != 1 or before != after:
            shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), norm(after))
        return BasicBlock(before, after, stride, shortcut, norm_layer=norm)
