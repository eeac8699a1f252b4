"""Image tasks that need no file, fixed subsets, and the server's images."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.tasks import Digits, MNIST5k
from asyncfl_lite.tasks.images import unlabelled
from asyncfl_lite.tasks.partitions import balanced

RNG = np.random.default_rng


def test_subsets_are_balanced_fixed_and_nested():
    labels = RNG(0).integers(0, 5, 400)
    few, more = balanced(labels, 52), balanced(labels, 150)
    assert sorted(np.bincount(labels[few])) == [10, 10, 10, 11, 11]
    assert set(few) <= set(more) and (np.diff(few) > 0).all()
    assert 120 < few.mean() < 280  # from all over, not the first ones
    assert np.array_equal(few, balanced(labels, 52)) and len(balanced(labels, None)) == 400
    rare = np.array([0] * 50 + [1] * 3)
    assert np.bincount(rare[balanced(rare, 20)]).tolist() == [17, 3]
    with pytest.raises(DataError, match="^test_samples: must be at most 53, got 60"):
        balanced(rare, 60, "test_samples")


@pytest.mark.parametrize("make", [unlabelled.shapes, unlabelled.photographs])
def test_colour_sets_are_varied_and_repeatable(make):
    images = make(16, 40, RNG(0))
    assert images.shape == (40, 3, 16, 16) and images.dtype == torch.float32
    assert images.min() >= 0 and images.max() <= 1 and float(images.std()) > 0.1
    assert torch.equal(images, make(16, 40, RNG(0))) and not torch.equal(images, make(16, 40, RNG(1)))
    assert torch.pdist(images.flatten(1)).min() > 0.05  # no two alike
    assert (images[:, 0] - images[:, 1]).abs().mean() > 0.02  # in colour


def test_fit_turns_grey_into_colour_and_back():
    grey = torch.randint(0, 256, (3, 1, 8, 8), dtype=torch.uint8)
    colour = unlabelled.fit(grey, 8, 3)
    assert colour.shape == (3, 3, 8, 8) and torch.equal(colour[:, 0], colour[:, 2])
    torch.testing.assert_close(unlabelled.fit(colour, 8, 1), grey / 255)


def test_what_ships_has_not_moved(monkeypatch):
    """Recorded results hold these images, in this order."""
    monkeypatch.setattr(MNIST5k, "side", 28)
    for source, levels in ((Digits(), 16), (MNIST5k(), 255)):
        task = source.load()
        grey = (task.inputs - task.inputs.min()) / (task.inputs.max() - task.inputs.min()) * levels
        told = hashlib.sha256(grey.round().byte().numpy().tobytes() + task.labels.numpy().tobytes())
        assert told.hexdigest()[:10] == {"digits": "97718f82d4", "mnist5k": "29a7e82800"}[task.name]
