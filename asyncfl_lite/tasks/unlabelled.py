"""Unlabelled image sets for the server: another data set, warped images, drawn strokes.

They stand in for FedEcho's cross-dataset, natural and synthetic sets (§5.1). Images are
``(n, 1, side, side)`` in [0, 1]; labels are never looked at.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional


def resize(images: Tensor, side: int) -> Tensor:
    """Return ``(n, 1, side, side)``: means of areas when smaller, bilinear when larger."""
    if images.shape[-1] > side:
        return functional.interpolate(images, size=(side, side), mode="area")
    return functional.interpolate(images, size=(side, side), mode="bilinear", align_corners=False)


def sample(images: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """Return ``count`` random images, each used again only after all the others were.

    Args:
        images: ``(n, 1, side, side)``.
        count: may be larger than n.
        rng: the server's stream.
    """
    passes = [rng.permutation(len(images)) for _ in range(math.ceil(count / len(images)))]
    return images[torch.from_numpy(np.concatenate(passes)[:count])]


def warped(images: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """Return images turned, sheared, scaled, shifted, and with a random rectangle erased.

    The turn is up to 45°, scale 0.7 to 1.3, shear up to 0.4, shift up to a fifth of the side; the
    rectangle takes 10% to 40% of each side.
    """
    chosen = sample(images, count, rng)
    angle = rng.uniform(-math.pi / 4, math.pi / 4, count)
    scale = rng.uniform(0.7, 1.3, (2, count))
    shear = rng.uniform(-0.4, 0.4, count)
    shift = rng.uniform(-0.4, 0.4, (2, count))
    cosine, sine = np.cos(angle), np.sin(angle)
    rows = [
        [scale[0] * cosine, scale[0] * (shear * cosine - sine), shift[0]],
        [scale[1] * sine, scale[1] * (shear * sine + cosine), shift[1]],
    ]
    transform = torch.tensor(np.array(rows), dtype=images.dtype).permute(2, 0, 1)
    grid = functional.affine_grid(transform, list(chosen.shape), align_corners=False)
    moved = functional.grid_sample(chosen, grid, align_corners=False)
    return moved * ~_rectangles(count, images.shape[-1], rng)


def _rectangles(count: int, side: int, rng: np.random.Generator) -> Tensor:
    """Return ``(count, 1, side, side)`` bool, True inside one random rectangle each."""
    size = rng.uniform(0.1, 0.4, (2, count)) * side
    start = rng.uniform(0, 1, (2, count)) * (side - size)
    place = np.arange(side) + 0.5
    inside = (place >= start[..., None]) & (place < (start + size)[..., None])
    return torch.from_numpy(inside[0][:, None, :, None] & inside[1][:, None, None, :])


def strokes(side: int, count: int, rng: np.random.Generator, finest: int = 28, points: int = 40) -> Tensor:
    """Return drawings of one to three quadratic curves each, as a pen of random width would draw them.

    Args:
        side: of the images that come out.
        count: how many.
        rng: the server's stream.
        finest: side of the raster that is drawn on before it is shrunk.
        points: samples along a curve.
    """
    axis = (np.arange(finest) + 0.5) / finest
    time = np.linspace(0, 1, points)[:, None]
    images = np.zeros((count, 1, finest, finest), dtype=np.float32)
    for image in images:
        width = rng.uniform(0.04, 0.08)
        for _ in range(rng.integers(1, 4)):
            first, bend, last = rng.uniform(0.15, 0.85, (3, 2))
            curve = (1 - time) ** 2 * first + 2 * time * (1 - time) * bend + time**2 * last
            across = (axis[None, :] - curve[:, :1]) ** 2
            down = (axis[None, :] - curve[:, 1:]) ** 2
            distance = (down[:, :, None] + across[:, None, :]).min(0)
            np.maximum(image[0], np.exp(-distance / (2 * (width / 2) ** 2)), out=image[0])
    drawn = torch.from_numpy(images)
    return drawn if side == finest else resize(drawn, side)
