"""Image models, for inputs ``(n, channels, height, width)``: perceptrons, plain CNNs and ResNets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import BeforeValidator, Field
from torch import Tensor, nn

from asyncfl_lite.base.errors import ConfigError, needs, unknown_name
from asyncfl_lite.models.base import MODELS, ModelSpec
from asyncfl_lite.models.vectors import VectorModel

MOMENTUM = 0.1
"""Weight of the newest minibatch in the statistics, as in PyTorch's BatchNorm."""


class Tracker(nn.Module):
    """Layer that returns its input unchanged and, in training, records means and biased variances by channel.

    In a run, the statistics begin at 0 and 1 in every job and with every version of the global model, whatever the
    method and ``bn_mode``. So a client's report contains the statistics of its own data alone.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return ``(n, channels, …)`` inputs as they are."""
        if self.training:
            variance, mean = torch.var_mean(inputs.detach().movedim(1, -1).flatten(0, -2), dim=0, correction=0)
            self.running_mean.lerp_(mean, MOMENTUM)
            self.running_var.lerp_(variance, MOMENTUM)
        return inputs

    def extra_repr(self) -> str:
        """Return the number of channels, for ``repr``."""
        return str(self.channels)


def begin_anew(model: VectorModel) -> None:
    """Reset all trackers of a model: its module may have been trained before."""
    for layer in model.module.modules():
        if isinstance(layer, Tracker):
            layer.running_mean.zero_()
            layer.running_var.fill_(1.0)


def only_tracks(model: VectorModel) -> bool:
    """Return whether a model keeps running statistics, and all of them are trackers'."""
    layers = dict(model.module.named_modules())
    owners = [layers[slot.name.rpartition(".")[0]] for slot in model.buffer_slots]
    return bool(owners) and all(isinstance(owner, Tracker) for owner in owners)


Norm = Literal["none", "group", "batch", "tracker"]
NORMS: dict[Norm, Callable[[int], nn.Module]] = {
    "none": lambda channels: nn.Identity(),
    "group": partial(nn.GroupNorm, 2),
    "batch": nn.BatchNorm2d,
    "tracker": Tracker,
}
"""Normalisation -> function from a number of channels to the layer; GroupNorm has 2 groups."""


def _widened(sizes: tuple[int, ...], scale: float) -> tuple[int, ...]:
    return tuple(max(2, 2 * round(size * scale / 2)) for size in sizes)


def _network(
    name: str,
    convolutions: Sequence[tuple[int, int, int, bool]],
    hidden: Sequence[int],
    input_shape: tuple[int, ...],
    num_classes: int,
    norm: Norm = "none",
) -> nn.Module:
    """Build convolutions, each with normalisation, ReLU and perhaps 2×2 max-pooling, then linear layers with ReLU.

    A convolution is given by its output channels, the side of its kernel, its padding, and whether pooling follows.
    """
    before, *sides = input_shape
    layers: list[nn.Module] = []
    for channels, kernel, padding, pool in convolutions:
        layers += [nn.Conv2d(before, channels, kernel, padding=padding), NORMS[norm](channels), nn.ReLU()]
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
        return _network("mlp", (), self.hidden, input_shape, num_classes)

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
    """3×3 convolutions, each followed by 2×2 max-pooling, then one linear layer."""

    takes = "images"

    channels: tuple[Annotated[int, Field(ge=1)], ...] = Field((8, 16), min_length=1)
    """Number of output channels of each convolution."""
    norm: Norm = "none"
    """Normalisation after each convolution; ``group``: GroupNorm with 2 groups; ``tracker``: none, but statistics are
    recorded."""

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the module for images of at least 2^len(channels) pixels a side."""
        convolutions = [(size, 3, 1, True) for size in self.channels]
        return _network("cnn", convolutions, (), input_shape, num_classes, self.norm)

    def larger(self, scale: float) -> CNN:
        """Return a larger version with ``scale`` times as many channels, to teach this one."""
        return CNN(channels=_widened(self.channels, scale), norm=self.norm)


class ScaledCNN(ModelSpec):
    """Abstract base of the papers' CNNs."""

    takes = "images"

    scale: float = Field(1.0, gt=0)
    """Factor on the number of channels and units."""


@MODELS.register("flgo_cnn")
class FLGoCNN(ScaledCNN):
    """FLGo's CNN (FedADT), in its layout for MNIST or, for colour images, for CIFAR.

    MNIST: two padded 5×5 convolutions with 32 and 64 channels, then 512 units. CIFAR: two unpadded ones with 64 and 64
    channels, then 384 and 192 units. They have 1,663,370 and 797,962 parameters.
    """

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the module for images of at least 4 pixels a side, or 16 in colour."""
        colour = input_shape[0] == 3
        channels, hidden, padding = ((64, 64), (384, 192), 0) if colour else ((32, 64), (512,), 2)
        convolutions = [(size, 5, padding, True) for size in _widened(channels, self.scale)]
        return _network("flgo_cnn", convolutions, _widened(hidden, self.scale), input_shape, num_classes)


@MODELS.register("femnist_cnn")
class FEMNISTCNN(ScaledCNN):
    """FedRevive's CNN for FEMNIST, with 421,058 parameters.

    Three 3×3 convolutions with 64 channels each come before linear layers of 200 and 100 units. The paper prints only
    the number of parameters, 421k; the layers are those of the authors' code, which records means and variances after
    each convolution but does not normalise by them.
    """

    norm: Norm = "none"
    """Normalisation after each convolution. The paper speaks of BatchNorm statistics; its authors' code has
    ``tracker``."""

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the module for images of at least 12 pixels a side."""
        sizes = _widened((64, 64, 64), self.scale)
        convolutions = [(size, 3, 0, pool) for size, pool in zip(sizes, (False, True, True), strict=True)]
        hidden = _widened((200, 100), self.scale)
        return _network("femnist_cnn", convolutions, hidden, input_shape, num_classes, self.norm)


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
    if not isinstance(blocks, str):
        return blocks
    if blocks not in RESNETS:
        raise ConfigError(unknown_name("blocks", blocks, RESNETS))
    return RESNETS[blocks]


Blocks = Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_named), Field(min_length=1)]
"""Residual blocks per stage, or a ResNet's name."""


class Residual(ModelSpec):
    """Abstract base of ResNets, whose channels double, and whose sides halve, at every stage but the first."""

    width: int = Field(8, ge=2)
    """Number of channels in the first stage, which doubles at each later stage. The papers' networks have 64."""
    blocks: Blocks = (1, 1, 1)
    """Residual blocks per stage, two layers each, or ``resnet18``, ``resnet26``, ``resnet34``."""

    def stages(self) -> list[list[tuple[int, int, int]]]:
        """Return the channels before and after each block, and its stride, stage by stage."""
        found, before = [], self.width
        for stage, count in enumerate(self.blocks):
            after = self.width * 2**stage
            found.append([(before, after, 2 if stage else 1)] + [(after, after, 1)] * (count - 1))
            before = after
        return found

    def larger(self, scale: float) -> Self:
        """Return one with ``scale`` times as many blocks; twice as large, ResNet-18 is ResNet-34 (KUIPER §3.1)."""
        blocks = layout(round(scale * sum(self.blocks)), len(self.blocks))
        return self.model_copy(update={"blocks": blocks})


@MODELS.register("resnet")
class ResNet(Residual):
    """ResNet for small images: 3×3 stem, and `width` channels that double at every later stage.

    ``width=64, blocks=(2, 2, 2, 2)`` is the papers' ResNet-18, with 11,173,962 parameters for 10 classes;
    ``blocks="resnet18"`` is the same.
    """

    takes = "images"

    norm: Norm = "group"
    """Normalisation layers; ``tracker``, as in FedRevive's authors' code, normalises nothing but records statistics,
    anew with every version."""

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build a 3×3 convolution, the stages of torchvision's basic blocks, and a linear layer."""
        norm = NORMS[self.norm]
        stem = [nn.Conv2d(input_shape[0], self.width, 3, padding=1, bias=False), norm(self.width), nn.ReLU()]
        stages = self.stages()
        blocks = [self._block(*sizes, norm) for stage in stages for sizes in stage]
        head = nn.Linear(stages[-1][-1][1], num_classes)
        return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)

    @staticmethod
    def _block(before: int, after: int, stride: int, norm: Callable[[int], nn.Module]) -> nn.Module:
        with needs("images", "resnet"):
            from torchvision.models.resnet import BasicBlock  # takes a second or more, so only when needed

        shortcut = None
        if stride != 1 or before != after:
            shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), norm(after))
        return BasicBlock(before, after, stride, shortcut, norm_layer=norm)
