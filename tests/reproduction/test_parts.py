"""Images that the seed splits: nobody else has a client's, validation chooses, and tests differ by seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asyncfl_lite import Config
from asyncfl_lite.runs.assembly import deal_out, task_of
from asyncfl_lite.tasks.images import base
from asyncfl_lite.tasks.images.base import Parts, digits_images, mnist_images
from asyncfl_lite.tasks.task import TASKS
from asyncfl_lite.tasks.video import motion
from asyncfl_reproduction.standins import images as standins


@pytest.mark.parametrize("pool", [digits_images, mnist_images])
def test_no_image_is_in_two_parts_and_none_that_is_tested_in_any_other_of_any_seed(pool):
    images, labels = pool()
    index = torch.arange(len(labels))
    parts = {seed: Parts.of((index, labels), 360, seed, np.random.default_rng(seed)) for seed in (0, 100)}
    own = {seed: [set(part[0].tolist()) for part in one] for seed, one in parts.items()}
    for clients, validation, unlabelled, test in own.values():
        assert not clients & validation and not clients & unlabelled and not validation & unlabelled
        assert len(clients | validation | unlabelled) == len(labels) - 360
        assert not test & (clients | validation | unlabelled)
    assert not own[0][3] & (own[100][0] | own[100][1] | own[100][2])
    assert own[0][1] != own[100][1] and own[0][3] != own[100][3]
    assert torch.equal(labels[parts[0].clients[0]], parts[0].clients[1])


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("overlaid_mnist", {"split": "seeded"}),
        ("overlaid_pairs100", {"split": "seeded", "samples": 500, "test_samples": 200}),
        ("glyphs", {"samples": 200, "test_samples": 100, "worlds": 64}),
        ("writers", {"writers": 20, "split": "seeded"}),
        ("topics20_bags", {"samples": 200, "test_samples": 100}),
        ("movingdigits", {"clips": 200, "test_clips": 80, "split": "seeded"}),
        ("movingdigits_frames", {"clips": 200, "test_clips": 80, "frames": 2, "split": "seeded"}),
    ],
)
def test_validation_changes_what_is_tested_and_nothing_else(name, settings):
    given = {"task": name, "task_settings": settings, "clients": 10, "concurrency": 5}
    config, choosing = Config(**given, seed=5), Config(**given, seed=5, eval_split="validation")
    task, chosen_on, other = task_of(config), task_of(choosing), task_of(config.with_seed(6))
    assert torch.equal(task.samples[0], chosen_on.samples[0])
    assert all(
        np.array_equal(*pair) for pair in zip(deal_out(config, task), deal_out(choosing, chosen_on), strict=True)
    )
    assert torch.equal(chosen_on.test_inputs, task.validation[0]) and not torch.equal(*(
        part[:50] for part in (task.test_inputs, chosen_on.test_inputs)))  # fmt: skip
    assert not torch.equal(task.test_inputs, other.test_inputs)
    # training samples of all seeds lie in one tensor, so that lockstep trains them together
    assert task.inputs.data_ptr() == chosen_on.inputs.data_ptr() == other.inputs.data_ptr()
    assert config.hash != choosing.hash


@pytest.fixture
def marked(monkeypatch):
    """Every digit that ships has one grey, its own, by which it is known wherever it comes to lie."""
    for name in ("digits_images", "mnist_images"):
        images, labels = getattr(base, name)()
        greys = (torch.arange(1, len(labels) + 1) / len(labels)).view(-1, 1, 1, 1).expand_as(images).clone()
        for module in (base, standins, motion):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, lambda own=(greys, labels): own)


def greys(images: torch.Tensor) -> torch.Tensor:
    """Return the greys of all digits in images, in pairs of images, or in clips."""
    halves = images.chunk(2, -1) if images.shape[-1] == 2 * images.shape[-2] else [images]
    return torch.cat([half.flatten(1).amax(1) for half in halves]).unique()


def nearest(some: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return how far each of some greys is from the nearest of the others."""
    return (some[:, None] - others).abs().amin(1)


SMALL_PAIRS, SMALL_CLIPS = {"samples": 300, "test_samples": 100}, {"clips": 200, "test_clips": 80}
NO_NOISE = {"overlay": 0.0, "noise": 0.0}
OF_DIGITS = [
    *(("digits", {}), ("mnist5k", {}), ("pairdigits100", SMALL_PAIRS)),
    *(("overlaid_mnist", {**NO_NOISE, "split": split}) for split in ("fixed", "seeded")),
    *(("overlaid_pairs100", {**NO_NOISE, **SMALL_PAIRS, "split": split}) for split in ("fixed", "seeded")),
    *(("writers", {"writers": 10, "split": split}) for split in ("fixed", "seeded")),
    *(("movingdigits", {**SMALL_CLIPS, "split": split}) for split in ("fixed", "seeded")),
]


@pytest.mark.parametrize(("name", "settings"), OF_DIGITS, ids=lambda value: value if isinstance(value, str) else "")
def test_no_digit_is_in_two_sets_that_must_not_share_any(marked, name, settings):
    """Test digits are nowhere else; validation's and the natural set's are no client's where the seed splits them."""
    task = TASKS.get(name)(**settings).load()
    mine, tests = greys(task.samples[0]), greys(task.test_inputs)
    natural = greys(task.unlabelled_set("natural", 60, np.random.default_rng(0)))
    assert min(map(len, (mine, tests, natural))) > 30
    apart = [(tests, mine), (tests, natural)]
    if task.validation is None:
        assert nearest(natural, mine).min() < 1e-4  # the natural set is made of training images
    else:
        chosen_on = greys(task.validation[0])
        apart += [(chosen_on, mine), (chosen_on, tests), (chosen_on, natural), (natural, mine)]
    assert all(nearest(*pair).min() > 1e-4 for pair in apart)


def test_writers_have_their_hands_and_digits_by_seed():
    settings = {"writers": 20, "side": 28, "split": "seeded"}
    given = {"task": "writers", "task_settings": settings, "partition": "natural", "clients": 20, "concurrency": 5}
    first, second = (Config(**given, seed=seed) for seed in (3, 4))
    tasks = [task_of(config) for config in (first, second)]
    for config, task in zip((first, second), tasks, strict=True):
        parts = deal_out(config, task)
        assert len(parts) == 20 and all(len(set(task.owners[part])) == 1 and len(part) == 40 for part in parts)
        assert set(np.concatenate(parts)) <= set(task.own_places)
    assert not torch.equal(tasks[0].samples[0], tasks[1].samples[0])
    assert not torch.equal(tasks[0].test_inputs, tasks[0].validation[0][: len(tasks[0].test_inputs)])
