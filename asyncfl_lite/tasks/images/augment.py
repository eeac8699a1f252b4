"""Random crops and flips of a whole batch, on the batch's device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class CropAndFlip:
    """Augmentation that pads, crops at a random position, and mirrors half of the images, as usual for CIFAR.

    Each image takes three numbers from the generator, in its turn: the first images of a larger batch are cut
    as those of a smaller one. Equal settings make equal, hashable objects.

    Attributes:
        padding: pixels added on each side.
        fill: value of what is added for each of C colours, such as black's after normalisation; None for 0.
        flip: mirror left and right half of the time.
    """

    padding: int = 4
    fill: tuple[float, ...] | None = None
    flip: bool = True

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Return augmented copies of ``inputs``, ``(n, C, height, width)``.

        Args:
            inputs: on any device.
            generator: on any device; what it draws decides alone what is cut and mirrored.
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
