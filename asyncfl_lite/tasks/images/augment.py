"""Random crops and flips of a whole batch, on the batch's device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class CropAndFlip:
    """Augmentation that pads, crops at a random position, and mirrors half of the images, as usual for CIFAR.

    The images take three numbers each from the generator, one image after the other, so the first images of a larger
    batch are cropped like those of a smaller one. Equal settings make equal, hashable objects.

    Attributes:
        padding: number of pixels added on each side.
        fill: value of the added pixels in each of C colours, for example that of black after normalisation; None for 0.
        flip: whether to mirror each image, left to right, with probability 1/2.
    """

    padding: int = 4
    fill: tuple[float, ...] | None = None
    flip: bool = True

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Return augmented copies of ``inputs``, ``(n, C, height, width)``.

        Args:
            inputs: images, on any device.
            generator: the only source of random numbers, on any device.
        """
        count, channels, height, width = inputs.shape
        drawn = torch.rand(count, 3, generator=generator, device=generator.device).to(inputs.device)
        top, left = (drawn[:, :2] * (2 * self.padding + 1)).long().unbind(1)
        rows = top[:, None] + torch.arange(height, device=inputs.device)
        columns = left[:, None] + torch.arange(width, device=inputs.device)
        if self.flip:
            columns = torch.where(drawn[:, 2:] < 0.5, columns.flip(-1), columns)
        fill = inputs.new_tensor(self.fill or [0.0] * channels)[:, None, None]
        padded = functional.pad(inputs - fill, [self.padding] * 4)
        which = torch.arange(count, device=inputs.device)[:, None, None]
        return padded[which, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2) + fill
