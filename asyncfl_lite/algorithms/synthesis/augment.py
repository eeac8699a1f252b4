"""Random crops and mirrored images for distillation on the server, as in the code of FedRevive's authors.

Whenever a model on the server sees synthetic images for CIFAR, that code crops them anew, with reflected borders, and
mirrors half of them; it also rotates those for CIFAR-100 by up to 15 degrees, which is left out here. The paper
mentions none of this. Clients' real images are augmented by the task's own setting ``augment``.
"""

from __future__ import annotations

import torch
from torch import Tensor


def cropped_and_mirrored(images: Tensor, generator: torch.Generator) -> Tensor:
    """Shift images at random, with reflected borders, and mirror each with probability ½.

    An image is shifted by at most an eighth of its side, such as 4 of 32 pixels, in each direction.

    Args:
        images: ``(n, channels, height, width)``, on any device.
        generator: a random generator on any device; the result depends only on its draws.

    Returns:
        Images of the same shape, differentiable in ``images``.
    """
    count, _, height, width = images.shape
    drawn = torch.rand(count, 3, generator=generator, device=generator.device).to(images.device)
    rows, columns = (_window(drawn[:, axis], side) for axis, side in enumerate((height, width)))
    columns = torch.where(drawn[:, 2:] < 0.5, columns.flip(-1), columns)
    which = torch.arange(count, device=images.device)[:, None, None]
    return images[which, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def _window(drawn: Tensor, side: int) -> Tensor:
    """Return the ``(n, side)`` indices of shifted pixels along one side, given ``(n,)`` random numbers in [0, 1)."""
    furthest, last = side // 8, side - 1
    moved = (drawn * (2 * furthest + 1)).long()[:, None] - furthest
    places = (moved + torch.arange(side, device=drawn.device)).abs()
    return last - (last - places).abs()
