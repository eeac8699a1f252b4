"""Images that the seed splits: nobody else has a client's, validation chooses, and tests differ by seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asyncfl_lite import Config
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs.assembly import deal_out, task_of
from asyncfl_lite.tasks.images.packaged import digits_images, mnist_images
from asyncfl_lite.tasks.images.parts import Parts
from asyncfl_lite.tasks.registry import TASKS

PLAIN = {"overlay": 0.0, "noise": 0.0, "split": "seeded"}


def rows(images: torch.Tensor) -> set[bytes]:
    """Return images as comparable values; to three decimals, as each part is normalised by the clients' images."""
    return {np.round(image, 3).tobytes() for image in images.flatten(1).numpy()}


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


def test_plain_images_of_the_parts_are_apart_in_the_task_too():
    task = task_of(Config(task="overlaid_mnist", task_settings=PLAIN, seed=3))
    clients, test, validation = (rows(part) for part in (task.samples[0], task.test_inputs, task.validation[0]))
    assert not clients & test and not clients & validation and not test & validation
    assert len(task.samples[0]) == 8000 and len(clients) > 3000
    assert len(task.test_inputs) == len(task.validation[0]) == 2000 and len(validation) <= 400


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
    config, choosing = Config(**given, seed=5), Config(**given, seed=5, judged_on="validation")
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


def test_the_natural_set_is_made_of_images_that_no_client_has():
    source = TASKS.get("overlaid_mnist")(**PLAIN)
    images = mnist_images()[0]
    clients = Parts.of((torch.arange(len(images)), mnist_images()[1]), 1000, 2, np.random.default_rng(0))
    assert len(clients.unlabelled[1]) == 400
    drawn = source.load().of_run(2).unlabelled_set("natural", 100, np.random.default_rng(0))
    assert drawn.shape == (100, 1, 10, 10)


@pytest.mark.parametrize("task", ["overlaid_mnist", "movingdigits", "movingdigits_frames"])
def test_what_was_recorded_keeps_its_name(task):
    config = Config(task=task)
    assert config.hash == Config(task=task, judged_on="test", task_settings={"split": "fixed"}).hash
    assert config.hash != Config(task=task, task_settings={"split": "seeded"}).hash


def test_a_task_without_validation_says_so():
    with pytest.raises(ConfigError, match=r"^judged_on: task 'overlaid_mnist' keeps no validation samples"):
        task_of(Config(task="overlaid_mnist", judged_on="validation"))
    with pytest.raises(ConfigError, match=r"^judged_on: must be 'test' or 'validation', got 'train'"):
        Config(judged_on="train")


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
