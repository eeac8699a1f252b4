"""Models for video: inputs ``(n, channels, frames, height, width)``."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

from torch import Tensor, nn

from asyncfl_lite.base.errors import needs
from asyncfl_lite.models.base import MODELS
from asyncfl_lite.models.images import Residual


@MODELS.register("resnet3d")
class ResNet3d(Residual):
    """3D ResNet of torchvision's blocks; `width` channels double at every later stage (KUIPER).

    ``width=64, blocks="resnet18", norm="batch"`` is torchvision's ``r3d_18``, whose weights it loads by name;
    ``resnet26`` and ``resnet34`` are KUIPER's assistant and teacher.
    """

    takes = "clips"

    norm: Literal["group", "batch"] = "group"
    """Normalisation: GroupNorm with 2 groups, or torchvision's BatchNorm."""
    trainable: Literal["all", "last"] = "all"
    """Trained part; ``last``: clients train and send the last layer only, and the rest stays as initialised."""

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the network with torchvision's initial weights; every stage but the first halves the frames."""
        parts: dict[str, nn.Module] = {"stem": self._stem(input_shape[0])}
        stages = self.stages()
        for number, stage in enumerate(stages, 1):
            parts[f"layer{number}"] = nn.Sequential(*(_block(*sizes) for sizes in stage))
        head = nn.Linear(stages[-1][-1][1], num_classes)
        parts |= {"avgpool": nn.AdaptiveAvgPool3d(1), "flatten": nn.Flatten(), "fc": head}
        network = nn.Sequential(OrderedDict(parts))
        for layer in network.modules():
            if isinstance(layer, nn.Conv3d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        nn.init.normal_(head.weight, 0, 0.01)
        nn.init.zeros_(head.bias)
        if self.norm == "group":
            _put_group_norm(network)
        if self.trainable == "last":
            network.requires_grad_(False).fc.requires_grad_(True)
        return network

    def _stem(self, channels: int) -> nn.Module:
        convolution = _First(channels, self.width, (3, 7, 7), stride=(1, 2, 2), padding=(1, 3, 3), bias=False)
        return nn.Sequential(convolution, nn.BatchNorm3d(self.width), nn.ReLU(inplace=True))

    @property
    def whole(self) -> ResNet3d:
        """The same network with every layer trainable, for a chain of teachers before federated training."""
        return self.model_copy(update={"trainable": "all"})

    def larger(self, scale: float) -> ResNet3d:
        """Return a larger version with ``scale`` times as many blocks, every layer trainable, to teach this one."""
        return super().larger(scale).whole


class _First(nn.Conv3d):
    """A convolution that accepts clips of any precision, since many are stored in half precision."""

    def forward(self, clips: Tensor) -> Tensor:
        """Return the convolution, computed in the weights' precision."""
        return super().forward(clips.to(self.weight.dtype))


def _block(before: int, after: int, stride: int) -> nn.Module:
    with needs("video", "resnet3d"):
        from torchvision.models.video.resnet import BasicBlock, Conv3DSimple  # slow, so only when needed

    shortcut = None
    if stride != 1 or before != after:
        shortcut = nn.Sequential(nn.Conv3d(before, after, 1, stride, bias=False), nn.BatchNorm3d(after))
    return BasicBlock(before, after, Conv3DSimple, stride, shortcut)


def _put_group_norm(module: nn.Module) -> None:
    for name, part in module.named_children():
        if isinstance(part, nn.BatchNorm3d):
            setattr(module, name, nn.GroupNorm(2, part.num_features))
        else:
            _put_group_norm(part)
