"""Image tasks that need no file, fixed subsets, and the server's images."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.tasks import Digits, MNIST5k
from asyncfl_lite.tasks.images import unlabelled
from asyncfl_lite.tasks.images.overlaid import OverlaidMNIST, OverlaidPairs100
from asyncfl_lite.tasks.images.packaged import PairDigits100, Writers, digits_images, mnist_images, thickened
from asyncfl_lite.tasks.subsets import balanced

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


def test_what_ships_has_not_moved():
    """Recorded results hold these images, in this order."""
    for source, levels in ((Digits(), 16), (MNIST5k(side=28), 255)):
        task = source.load()
        grey = (task.inputs - task.inputs.min()) / (task.inputs.max() - task.inputs.min()) * levels
        told = hashlib.sha256(grey.round().byte().numpy().tobytes() + task.labels.numpy().tobytes())
        assert told.hexdigest()[:10] == {"digits": "97718f82d4", "mnist5k": "29a7e82800"}[task.name]


def test_pairs_of_digits():
    task = PairDigits100(samples=2000, test_samples=500).load()
    assert task.inputs.shape == (2000, 1, 8, 16) and task.num_classes == 100 and task.class_names[7] == "07"
    assert task.labels.bincount().tolist() == [20] * 100 and task.test_labels.bincount().tolist() == [5] * 100
    assert task.stands_in_for == "CIFAR-100"
    images, labels = digits_images()
    halves = {part: getattr(task, part).split(8, dim=-1) for part in ("inputs", "test_inputs")}
    raw = images.flatten(1)
    scale = raw.max() / (task.inputs.max() - task.inputs.min())

    def found(half: torch.Tensor) -> torch.Tensor:
        return torch.cdist((half.flatten(1) - task.inputs.min()) * scale, raw).argmin(1)

    left, right = (found(half) for half in halves["inputs"])
    assert torch.equal(labels[left] * 10 + labels[right], task.labels)  # the class is the two-digit number
    used, tested = set(left.tolist()) | set(right.tolist()), [found(half) for half in halves["test_inputs"]]
    assert used.isdisjoint(tested[0].tolist() + tested[1].tolist())  # no digit in both
    assert not torch.equal(left, right)


@pytest.mark.parametrize("source", [PairDigits100(samples=300, test_samples=100), Writers(writers=10)], ids=str)
@pytest.mark.parametrize("name", ["cross", "natural", "synthetic"])
def test_stand_ins_have_three_sets(source, name):
    task = source.load()
    drawn = task.unlabelled_set(name, 30, RNG(0))
    assert drawn.shape == (30, *task.input_shape) and torch.isfinite(drawn).all() and float(drawn.std()) > 0.2
    assert torch.equal(drawn, task.unlabelled_set(name, 30, RNG(0)))
    assert not torch.equal(drawn, task.unlabelled_set(name, 30, RNG(1)))
    assert torch.pdist(drawn.flatten(1)).min() > 0.1
    if task.name == "pairdigits100":
        assert (drawn[..., :8] - drawn[..., 8:]).flatten(1).norm(dim=1).min() > 0.1  # two drawings, not one twice


def test_writers_have_hands_of_their_own():
    task = Writers(writers=20, samples=100).load()
    assert np.bincount(task.owners).tolist() == [100] * 20 and task.stands_in_for == "FEMNIST"
    means = torch.stack([task.inputs[torch.from_numpy(task.owners == writer)].mean(0) for writer in range(20)])
    chance = torch.stack([task.inputs[torch.from_numpy(RNG(k).permutation(2000)[:100])].mean(0) for k in range(20)])
    assert means.std(0).mean() > 2 * chance.std(0).mean()


@pytest.mark.parametrize(
    ("what", "values"), [("stroke", [0, 1]), ("angle", [0, 0.5]), ("shear", [0, 0.5]), ("scale", [[1, 1.3], [1, 1.3]])]
)
def test_each_part_of_a_hand_shows(what, values):
    images, owners = mnist_images()[0][:40], np.repeat([0, 1], 20)
    hands = {"angle": np.zeros(2), "shear": np.zeros(2), "scale": np.ones((2, 2)), "stroke": np.zeros(2)}
    plain = Writers(side=28)._written(images, owners, hands)
    torch.testing.assert_close(plain, images, atol=1e-5, rtol=0)
    changed = Writers(side=28)._written(images, owners, {**hands, what: np.array(values)})
    torch.testing.assert_close(changed[:20], images[:20], atol=1e-5, rtol=0)  # the other writer's stay
    assert (changed[20:] - images[20:]).abs().mean() > 0.02


def test_strokes_get_thicker_and_thinner():
    images = mnist_images()[0][:50]
    ink = [float(thickened(images, np.full(50, by)).mean()) for by in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    assert ink == sorted(ink) and ink[0] < 0.5 * ink[2] < ink[2] < 0.6 * ink[4]
    assert torch.equal(thickened(images, np.zeros(50)), images)


@pytest.mark.parametrize(
    ("source", "shape", "sizes"),
    [
        (OverlaidMNIST(), (1, 10, 10), (8000, 2000)),
        (OverlaidMNIST(copies=3, side=14), (1, 14, 14), (12000, 3000)),
        (OverlaidPairs100(samples=1000, test_samples=300), (1, 8, 16), (1000, 300)),
        (Writers(writers=30, side=10, overlay=0.35, noise=0.3), (1, 10, 10), (1200, 1000)),
    ],
    ids=str,
)
def test_overlaid_images_are_standardised_and_always_the_same(source, shape, sizes):
    task, again = source.load(), source.load()
    assert task.input_shape == shape and (len(task.inputs), len(task.test_inputs)) == sizes
    assert (len(task.labels), len(task.test_labels)) == sizes and task.inputs.dtype == torch.float32
    assert abs(float(task.inputs.mean())) < 1e-5 and abs(float(task.inputs.std()) - 1) < 1e-5
    assert abs(float(task.test_inputs.mean())) < 0.05 and abs(float(task.test_inputs.std()) - 1) < 0.05
    for part in ("inputs", "labels", "test_inputs", "test_labels"):
        assert torch.equal(getattr(task, part), getattr(again, part))
    shares = task.labels.bincount(minlength=task.num_classes) / len(task.labels) * task.num_classes
    assert shares.min() > 0.7 and shares.max() < 1.3
