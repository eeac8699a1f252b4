"""Unlabelled image sets for the server: other images, warped ones, photographs, drawings, images from a folder.

They are, or stand in for, FedEcho's cross-dataset, natural and synthetic sets (§5.1). Images are
``(n, C, height, width)`` in [0, 1], C = 1 for grey and 3 for colour; labels are never used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from asyncfl_lite.base.data_folders import shipped
from asyncfl_lite.base.errors import DataError
from asyncfl_lite.tasks.task import UnlabelledSet

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp"}
"""File name endings that count as images in a folder."""


def unit(images: Tensor) -> Tensor:
    """Convert images to float32 in [0, 1]; bytes are divided by 255."""
    return images if images.is_floating_point() else images.float() / 255.0


def resize(images: Tensor, side: int) -> Tensor:
    """Resize square images to ``(n, C, side, side)``: by area means to a smaller size, bilinearly to a larger one."""
    if images.shape[-1] > side:
        return functional.interpolate(images, size=(side, side), mode="area")
    return functional.interpolate(images, size=(side, side), mode="bilinear", align_corners=False)


def fit(images: Tensor, side: int, channels: int) -> Tensor:
    """Convert images to ``(n, channels, side, side)`` in [0, 1]; grey is repeated, and colour is averaged to grey."""
    sized = resize(unit(images), side)
    if sized.shape[1] == channels:
        return sized
    return sized.expand(-1, channels, -1, -1) if channels > 1 else sized.mean(1, keepdim=True)


def sample(images: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """Draw ``count`` random rows of ``(n, …)`` images; none is used again before all the others have been."""
    return images[torch.from_numpy(turns(len(images), count, rng))]


def turns(size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw ``(count,)`` indices below ``size``; none is used again before all the others have been."""
    passes = [rng.permutation(size) for _ in range(math.ceil(count / size))]
    return np.concatenate(passes)[:count]


def moved(
    images: Tensor, angle: np.ndarray, scale: np.ndarray, shear: np.ndarray, shift: np.ndarray | float = 0.0
) -> Tensor:
    """Rotate, scale, shear and shift square images, each by its own amounts; gaps become black.

    Args:
        images: ``(n, C, side, side)`` images.
        angle: ``(n,)`` angles of rotation in radians.
        scale: ``(2, n)`` scales across and down; a scale above 1 makes the content smaller.
        shear: ``(n,)`` shears.
        shift: ``(2, n)`` shifts across and down, in halves of the side, or one number for all.
    """
    cosine, sine = np.cos(angle), np.sin(angle)
    across, down = np.broadcast_to(shift, scale.shape)
    rows = [
        [scale[0] * cosine, scale[0] * (shear * cosine - sine), across],
        [scale[1] * sine, scale[1] * (shear * sine + cosine), down],
    ]
    transform = torch.tensor(np.array(rows), dtype=images.dtype).permute(2, 0, 1)
    grid = functional.affine_grid(transform, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def warped(images: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """Draw random images; rotate, shear, scale and shift each one, and erase a random rectangle in it."""
    chosen = unit(sample(images, count, rng))
    angle = rng.uniform(-math.pi / 4, math.pi / 4, count)
    scale = rng.uniform(0.7, 1.3, (2, count))
    shear = rng.uniform(-0.4, 0.4, count)
    shift = rng.uniform(-0.4, 0.4, (2, count))
    return moved(chosen, angle, scale, shear, shift) * ~_rectangles(count, images.shape[-1], rng)


def _rectangles(count: int, side: int, rng: np.random.Generator) -> Tensor:
    size = rng.uniform(0.1, 0.4, (2, count)) * side
    start = rng.uniform(0, 1, (2, count)) * (side - size)
    place = np.arange(side) + 0.5
    inside = (place >= start[..., None]) & (place < (start + size)[..., None])
    return torch.from_numpy(inside[0][:, None, :, None] & inside[1][:, None, None, :])


def strokes(side: int, count: int, rng: np.random.Generator, finest: int = 28, points: int = 40) -> Tensor:
    """Draw grey images of one to three quadratic curves, as if drawn with a pen whose width is random in each image.

    The curves, of ``points`` points, are drawn on a raster of ``finest`` pixels per side, which is resized to ``side``.
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


def shapes(side: int, count: int, rng: np.random.Generator) -> Tensor:
    """Draw colour images: a background that fades between two colours, with two to five soft ellipses or rectangles."""
    axis = (np.arange(side) + 0.5) / side * 2 - 1
    down, across = np.meshgrid(axis, axis, indexing="ij")
    images = np.empty((count, 3, side, side), dtype=np.float32)
    for image in images:
        turn = rng.uniform(0, 2 * math.pi)
        fade = (across * math.cos(turn) + down * math.sin(turn)) / (2 * math.sqrt(2)) + 0.5
        first, last = rng.uniform(0, 1, (2, 3, 1, 1))
        image[:] = first * (1 - fade) + last * fade
        for _ in range(rng.integers(2, 6)):
            x, y = rng.uniform(-0.8, 0.8, 2)
            width, height = rng.uniform(0.15, 0.7, 2)
            turn, power = rng.uniform(0, math.pi), rng.choice([2, 8])  # |u|^p + |v|^p = 1: an ellipse, or nearly square
            u = ((across - x) * math.cos(turn) + (down - y) * math.sin(turn)) / width
            v = ((down - y) * math.cos(turn) - (across - x) * math.sin(turn)) / height
            inside = 1 / (1 + np.exp(12 * (np.abs(u) ** power + np.abs(v) ** power - 1).clip(max=10)))
            image[:] = image * (1 - inside) + rng.uniform(0, 1, (3, 1, 1)) * inside
    return torch.from_numpy(images)


@lru_cache(maxsize=1)
def _photographs() -> tuple[Tensor, ...]:
    """Return scikit-learn's two photographs, ``(3, 427, 640)`` in [0, 1] each."""
    from PIL import Image

    paths = (shipped("sklearn", f"datasets/images/{name}.jpg") for name in ("china", "flower"))
    return tuple(torch.tensor(np.asarray(Image.open(path))).permute(2, 0, 1) / 255.0 for path in paths)


def photographs(side: int, count: int, rng: np.random.Generator) -> Tensor:
    """Return random crops, 64 to 320 pixels per side, of scikit-learn's two photographs; they stand in for STL-10."""
    crops = []
    for _ in range(count):
        photo = _photographs()[rng.integers(2)]
        size = int(np.exp(rng.uniform(np.log(64), np.log(321))))
        top, left = (int(rng.integers(length - size + 1)) for length in photo.shape[1:])
        crop = photo[None, :, top : top + size, left : left + size]
        crops.append(resize(crop.flip(-1) if rng.random() < 0.5 else crop, side))
    return torch.cat(crops)


@lru_cache(maxsize=4)
def folder_images(root: Path, side: int, channels: int) -> Tensor:
    """Read the middle squares of all images in a folder, by name, as ``(n, channels, side, side)`` in [0, 1]."""
    from PIL import Image, UnidentifiedImageError

    files = sorted(path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES)
    if not files:
        raise DataError(f"generated: looked in {root} for images ({', '.join(sorted(SUFFIXES))}), found none")
    images = []
    for path in files:
        try:
            picture = Image.open(path).convert("RGB" if channels == 3 else "L")
        except (UnidentifiedImageError, OSError) as error:
            raise DataError(f"generated: {path} cannot be read as an image: {error}") from None
        size = min(picture.size)
        left, top = ((length - size) // 2 for length in picture.size)
        square = np.atleast_3d(np.array(picture.crop((left, top, left + size, top + size))))
        images.append(fit(torch.from_numpy(square).permute(2, 0, 1)[None], side, channels))
    return torch.cat(images)


def grey_sets(train: Tensor, other: Callable[[], Tensor]) -> dict[str, UnlabelledSet]:
    """Return FedEcho's three unlabelled sets for grey images: ``other`` ones, warped training images, drawn strokes."""
    side = train.shape[-1]
    return {
        "cross": lambda count, rng: resize(sample(other(), count, rng), side),
        "natural": lambda count, rng: warped(train, count, rng),
        "synthetic": lambda count, rng: strokes(side, count, rng),
    }
