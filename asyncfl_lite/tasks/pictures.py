"""Pillow images as tensors from 0 to 1, scaled by what their mode says of their levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image

BITS_16 = ("I;16", "I;16L", "I;16B", "I;16N")
"""Modes of whole levels from 0 to 65,535."""
WITH_ALPHA = ("LA", "La", "PA", "RGBA", "RGBa")
"""Modes of levels from 0 to 255 with transparency."""
EIGHT_BITS = {"L", "RGB", "RGBA"}
"""Modes that hold all of images of 8 bits."""
BYTE, TWO_BYTES = 255, 65535
"""Largest levels of 8 and of 16 bits."""


def is_picture(value: Any) -> bool:
    """Return True for Pillow images."""
    return hasattr(value, "getbands")


def stacked_pictures(name: str, images: Sequence[Image]) -> Tensor:
    """Return Pillow images of one size as ``(n, C, height, width)`` float32 from 0 to 1.

    Grey images have one channel, colours three, and images with transparency four. Palettes and other colour spaces
    become colours. The mode says the largest level: 255, 65,535 with 16 bits, or 1 for real numbers.

    Args:
        name: name of the inputs in messages.
        images: the images.

    Raises:
        DataError: for images whose largest level is not known, and for mixtures of 8 bits, 16 bits and real numbers.
        ValueError: for images of several sizes.
    """
    kinds = {depth_of(image) for image in images}
    if len({image.size for image in images}) > 1:
        raise ValueError("images of several sizes")
    if kinds <= EIGHT_BITS:
        return _filled(images, _common(images, kinds), BYTE)
    if len(kinds) > 1:
        raise DataError(
            f"{name}: images must be of one depth, got the modes {', '.join(sorted(kinds))}; convert them to one"
        )
    kind = kinds.pop()
    if kind == "I;16":
        return _filled(images, None, TWO_BYTES)
    low, high = _span(images)
    if kind == "F" and not 0 <= low <= high <= 1:
        raise DataError(
            f"{name}: images of mode F must go from 0 to 1, got {low:.6g} to {high:.6g}; scale all of them alike, with "
            "the same numbers for training and test"
        )
    if kind == "I" and not (low >= 0 and BYTE < high <= TWO_BYTES):
        raise DataError(
            f"{name}: images of mode I must hold 16 bits, 0 to {TWO_BYTES}, got {low:.0f} to {high:.0f}; convert them "
            "to mode I;16 if they have 16 bits, or to mode L if they have 8"
        )
    return _filled(images, None, TWO_BYTES if kind == "I" else 1)


def depth_of(image: Image) -> str:
    """Return the mode that holds all of an image: L, RGB, RGBA, or one of more than 8 bits (I;16, I, F)."""
    if image.mode in ("1", "L"):
        return "L"
    if image.mode in BITS_16:
        return "I;16"
    if image.mode in ("I", "F"):
        return image.mode
    return "RGBA" if image.mode in WITH_ALPHA or (image.mode == "P" and "transparency" in image.info) else "RGB"


def _common(images: Sequence[Image], kinds: set[str]) -> str:
    """Return the mode that holds all of several images; transparency counts where some pixel is transparent."""
    if len(kinds) == 1:
        return next(iter(kinds))
    clear = (np.asarray(image.convert("RGBA"))[..., 3].min() < BYTE for image in images if depth_of(image) == "RGBA")
    return "RGBA" if any(clear) else "RGB"


def _span(images: Sequence[Image]) -> tuple[float, float]:
    """Return the lowest and highest level of several images; NaN if there is one."""
    spans = [(array.min(), array.max()) for array in map(np.asarray, images)]
    return float(np.min(spans)), float(np.max(spans))


def _filled(images: Sequence[Image], mode: str | None, largest: int) -> Tensor:
    """Return the images' levels, divided by the largest one."""
    tensor = torch.empty(0)
    for index, image in enumerate(images):
        array = np.array(image if mode is None else image.convert(mode))
        if not index:
            tensor = torch.empty(len(images), *np.atleast_3d(array).shape[2:], *array.shape[:2])
        wide = torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
        tensor[index] = (wide[None] if wide.dim() == 2 else wide.movedim(-1, 0)) / largest
    return tensor
