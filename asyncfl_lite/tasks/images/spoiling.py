"""Images made hard to classify: another image is laid over each one, and noise is added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.tasks.task import UnlabelledSet


@dataclass(frozen=True)
class Spoiling:
    """Strength of a second image that is laid over each image, and of the noise that is added.

    Attributes:
        overlay: weight of the image that is laid over, relative to 1 for the image itself.
        noise: standard deviation of the normal noise of each pixel, in the images' own unit.
    """

    overlay: float
    noise: float

    @classmethod
    def of(cls, images: Tensor, overlay: float, noise: float) -> Spoiling:
        """Make a :class:`Spoiling`, with ``noise`` given in standard deviations of the pixels of ``images``.

        This is the same as standardising images, laying standardised ones over them and adding ``noise`` times standard
        normal numbers, except for the scale, which a task's normalisation sets anyway.
        """
        return cls(overlay, noise * float(images.std()))

    def spoiled(self, images: Tensor, others: Tensor, rng: np.random.Generator) -> Tensor:
        """Lay ``others`` over ``images``, both ``(n, C, height, width)``, and add noise."""
        drawn = rng.standard_normal(images.shape, dtype=np.float32)
        return images + self.overlay * others + self.noise * torch.from_numpy(drawn)

    def among(self, images: Tensor, rng: np.random.Generator, copies: int = 1) -> Tensor:
        """Return ``copies`` versions of every image, each with noise and with another of the images laid over it.

        Args:
            images: ``(n, C, height, width)``; each may lie over any of the others, never over itself.
            rng: generator that draws overlays and noise.
            copies: number of versions of each image, with different overlays and noise; all images come once, then all
                come again.

        Returns:
            ``(copies · n, C, height, width)`` images. Without overlay and noise, these are the images themselves, and
            nothing is drawn.

        Raises:
            ConfigError: when there is only one image, so that no other can be laid over it.
        """
        return self.chosen(images, np.tile(np.arange(len(images)), copies), rng)

    def chosen(self, images: Tensor, index: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Return the ``(k, C, …)`` images at ``index``, each with noise and with another of ``images`` laid over it.

        Args:
            images: ``(n, C, height, width)`` images.
            index: ``(k,)`` int64 indices of the images to return; they may repeat.
            rng: generator that draws overlays and noise; nothing is drawn if there are neither.

        Raises:
            ConfigError: when there is only one image, so that no other can be laid over it.
        """
        if not (self.overlay or self.noise):
            return images[torch.from_numpy(index)]
        if self.overlay and len(images) < 2:
            raise ConfigError(f"overlay: must be 0 where there is one image and no other, got {self.overlay}")
        steps = rng.integers(1, max(len(images), 2), len(index))
        return self.spoiled(
            images[torch.from_numpy(index)], images[torch.from_numpy((index + steps) % len(images))], rng
        )

    def sets(self, plain: Mapping[str, UnlabelledSet]) -> dict[str, UnlabelledSet]:
        """Return the unlabelled sets ``plain`` with another image of the set laid over each image, and with noise."""
        return {name: self._set(draw) for name, draw in plain.items()}

    def _set(self, draw: UnlabelledSet) -> UnlabelledSet:
        """Return the set ``draw`` with overlay and noise, or ``draw`` itself if both are 0."""
        if not (self.overlay or self.noise):
            return draw

        def drawn(count: int, rng: np.random.Generator) -> Tensor:
            images = draw(2 * count, rng)
            return self.spoiled(images[:count], images[count:], rng)

        return drawn
