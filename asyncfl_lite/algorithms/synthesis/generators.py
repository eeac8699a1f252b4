"""Generators G_θ of real-valued inputs (FedRevive §3.1; after Fang et al., AAAI 2022).

A latent plus a fifth of its class's embedding goes through a linear layer and, for images, two upsampling
convolution blocks. The last layer is a sigmoid, mapped to the range of the task's inputs.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from asyncfl_lite.base.devices import seeded
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.vectors import VectorModel


class ImageGenerator(nn.Module):
    """Generator of images of a given ``shape`` from latents.

    Linear, then BatchNorm, upsampling, 3×3 convolution, BatchNorm, leaky ReLU, upsampling, convolution, BatchNorm,
    leaky ReLU, convolution, sigmoid, with 2 × width, 2 × width and width channels. The first feature map has a quarter
    of the image's height and width, rounded up; the last upsampling has exactly the image's size.

    Args:
        shape: ``(channels, height, width)`` of an image.
        nz: length of a latent.
        width: ngf, the number of channels before the last convolution.
    """

    def __init__(self, shape: tuple[int, ...], nz: int, width: int) -> None:
        super().__init__()
        channels, *sides = shape
        self.quarter = (2 * width, *(math.ceil(side / 4) for side in sides))
        self.linear = nn.Linear(nz, math.prod(self.quarter))
        self.convolutions = nn.Sequential(
            _norm(nn.BatchNorm2d, 2 * width),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1, bias=False),
            _norm(nn.BatchNorm2d, 2 * width),
            nn.LeakyReLU(0.2),
            nn.Upsample(size=tuple(sides)),
            nn.Conv2d(2 * width, width, 3, padding=1, bias=False),
            _norm(nn.BatchNorm2d, width),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, channels, 3, padding=1),
            nn.Sigmoid(),
        )

    def forward(self, latents: Tensor) -> Tensor:
        """Return ``(B, *shape)`` images in [0, 1] for ``(B, nz)`` latents."""
        return self.convolutions(self.linear(latents).unflatten(1, self.quarter))


class VectorGenerator(nn.Module):
    """Generator of inputs that are not images: two linear layers, our choice and not the paper's.

    Args:
        shape: the shape of one input.
        nz: length of a latent.
        width: ngf; the hidden layer has twice as many units.
    """

    def __init__(self, shape: tuple[int, ...], nz: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(nz, 2 * width),
            _norm(nn.BatchNorm1d, 2 * width),
            nn.LeakyReLU(0.2),
            nn.Linear(2 * width, math.prod(shape)),
            nn.Sigmoid(),
            nn.Unflatten(1, shape),
        )

    def forward(self, latents: Tensor) -> Tensor:
        """Return ``(B, *shape)`` inputs in [0, 1] for ``(B, nz)`` latents."""
        return self.layers(latents)


def _norm(kind: type[nn.Module], channels: int) -> nn.Module:
    """Return a BatchNorm layer that always uses the batch's own statistics and stores none."""
    return kind(channels, track_running_stats=False)


class GeneratedInputs:
    """An :class:`~asyncfl_lite.algorithms.synthesis.InputMaker` that is a generator network.

    Its latents are ``(B, nz)`` noise and ``(C, nz)`` class embeddings, both drawn anew and trained in every
    synthesis, as in the authors' code.

    Args:
        spec: shape and range of the task's inputs.
        nz: length of a latent.
        width: ngf, the width of the generator.
        class_weight: weight of a class's embedding relative to the noise.
        seed: the seed of the initial weights.
        like: a tensor with the dtype and device to use.
    """

    def __init__(self, spec: InputSpec, nz: int, width: int, class_weight: float, seed: int, like: Tensor) -> None:
        build = ImageGenerator if len(spec.shape) == 3 else VectorGenerator
        with seeded(seed):
            self.generator = VectorModel(build(spec.shape, nz, width).to(like))
        self.spec, self.nz, self.class_weight, self.like = spec, nz, class_weight, like

    def initial(self) -> Tensor:
        """Return the generator's ``(g,)`` initial weights."""
        return self.generator.flatten()[0]

    def latents(self, labels: Tensor, x: Tensor, rng: np.random.Generator) -> list[Tensor]:
        """Return ``(B, nz)`` noise and ``(C, nz)`` class embeddings, standard normal."""
        sizes = [(len(labels), self.nz), (self.spec.num_classes, self.nz)]
        return [torch.from_numpy(rng.standard_normal(size)).to(self.like) for size in sizes]

    def __call__(self, theta: Tensor, latents: list[Tensor], labels: Tensor) -> Tensor:
        """Generate ``(B, *shape)`` inputs within the task's range."""
        noise, embeddings = latents
        conditioned = noise + self.class_weight * embeddings[labels]
        return self.spec.low + (self.spec.high - self.spec.low) * self.generator(theta, conditioned)
