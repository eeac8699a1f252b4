"""Stand-ins made of real digits: overlaid ones, pairs, and writers' hands."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asyncfl_lite.tasks.images import unlabelled
from asyncfl_lite.tasks.images.base import digits_images, mnist_images, split
from asyncfl_reproduction.standins.glyphs import Glyphs
from asyncfl_reproduction.standins.images import OverlaidMNIST, OverlaidPairs100, PairDigits100, Spoiling, Writers
from asyncfl_reproduction.standins.text import Topics20Bags

RNG = np.random.default_rng


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


SMALL_PAIRS = {"samples": 300, "test_samples": 100}
STAND_INS = [PairDigits100(**SMALL_PAIRS), Writers(writers=10), Writers(writers=10, side=10, overlay=0.35, noise=0.3)]
STAND_INS += [OverlaidMNIST(), OverlaidPairs100(**SMALL_PAIRS), Topics20Bags(samples=600, test_samples=200, worlds=3)]
STAND_INS += [Glyphs(samples=400, test_samples=100, worlds=4)]


@pytest.mark.parametrize("source", STAND_INS, ids=str)
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


def test_each_image_lies_under_another_one():
    shown = torch.eye(40).reshape(40, 1, 8, 5)
    spoiled = Spoiling(0.25, 0.0).among(shown, RNG(0), copies=3).flatten(1)
    base, over = (spoiled == 1).float(), (spoiled == 0.25).float()
    assert torch.equal(base, torch.eye(40).repeat(3, 1))  # all once, then all again; none over itself
    assert torch.equal(over.sum(1), torch.ones(120)) and torch.equal(spoiled, base + 0.25 * over)
    others = over.argmax(1).reshape(3, 40)
    assert not torch.equal(others[0], others[1]) and len(others.unique()) > 30
    two = Spoiling(0.5, 0.0).among(shown[:2], RNG(0))
    assert torch.equal(two, shown[:2] + 0.5 * shown[[1, 0]])


def test_sets_are_spoiled_by_others_of_their_own():
    plain = {"dots": lambda count, rng: torch.eye(60)[:count].reshape(count, 1, 10, 6)}
    drawn = Spoiling(0.25, 0.0).sets(plain)["dots"](30, RNG(0)).flatten(1)
    assert torch.equal(drawn, torch.eye(60)[:30] + 0.25 * torch.eye(60)[30:])
    assert Spoiling(0.0, 0.0).sets(plain)["dots"] is plain["dots"]
    noisy = Spoiling(0.0, 0.5).sets(plain)["dots"](30, RNG(0)).flatten(1) - torch.eye(60)[:30]
    assert float(noisy.std()) == pytest.approx(0.5, rel=0.1)


def test_a_digit_keeps_its_label_under_another_digit_of_its_part(monkeypatch):
    among, given = Spoiling.among, []

    def noted(self, images, *more):
        given.append(images)
        return among(self, images, *more)

    monkeypatch.setattr(Spoiling, "among", noted)
    task = OverlaidMNIST().load()
    images, labels = mnist_images()
    train, test = split(unlabelled.resize(images, 10), labels, 1000)
    assert [torch.equal(*pair) for pair in zip(given, (train[0], test[0]), strict=True)] == [True, True]
    assert torch.equal(task.labels, train[1].repeat(2)) and torch.equal(task.test_labels, test[1].repeat(2))
