"""Augmentation: windows of the padded image, one generator a job."""

from __future__ import annotations

import torch
from torch.nn import functional

from asyncfl_lite.tasks.images.base import CropAndFlip


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_crops_are_windows_of_the_padded_image():
    images = torch.randn(200, 3, 8, 6, generator=generator())
    cut = CropAndFlip(2, (-1.0, -2.0, -3.0))(images, generator(1))
    black = torch.tensor([-1.0, -2.0, -3.0])[:, None, None]
    padded = functional.pad(images - black, [2] * 4) + black
    windows = torch.stack([padded[:, :, i : i + 8, j : j + 6] for i in range(5) for j in range(5)], dim=1)
    mirrored = torch.cat([windows, windows.flip(-1)], dim=1)
    same = torch.isclose(mirrored, cut[:, None], atol=1e-6).all((2, 3, 4))
    assert same.any(1).all()
    which = same.int().argmax(1)
    assert len(which.unique()) >= 45  # of 25 places, mirrored or not
    assert 60 < int((which >= 25).sum()) < 140


def test_augmentation_depends_on_its_generator_alone():
    images, torch_state = torch.randn(10, 1, 8, 8, generator=generator()), torch.get_rng_state()
    kept = images.clone()
    first, again, other = (CropAndFlip()(images, generator(seed)) for seed in (3, 3, 4))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert torch.equal(images, kept) and torch.equal(torch_state, torch.get_rng_state())
    assert torch.equal(CropAndFlip()(images[:4], generator(3)), first[:4])  # the first images of a larger batch


def test_a_generator_goes_on_from_batch_to_batch():
    images, one, two = torch.randn(6, 1, 8, 8), generator(), generator()
    first, second = CropAndFlip()(images, one), CropAndFlip()(images, one)
    assert not torch.equal(first, second)
    assert torch.equal(first, CropAndFlip()(images, two)) and torch.equal(second, CropAndFlip()(images, two))
