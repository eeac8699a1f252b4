"""Shapes of a generator: what knobs do, worlds by seed, and runs of several worlds in company."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from asyncfl_lite import Config, run, run_many
from asyncfl_lite.base.streams import stream
from asyncfl_lite.runs.assembly import deal_out, load_task, servers_own
from asyncfl_lite.runs.run import Run
from asyncfl_lite.runs.store import data_of
from asyncfl_reproduction.standins.glyphs import Glyphs
from asyncfl_reproduction.standins.text import Topics20Bags
from conftest import same

RNG = np.random.default_rng
FEW = {"samples": 400, "test_samples": 100, "worlds": 4}
SMALL = {
    "task": "glyphs", "task_settings": FEW, "clients": 10, "concurrency": 5, "rounds": 6, "local_steps": 4,
    "eval_every": 2, "client_lr": 0.1,
}  # fmt: skip


@pytest.mark.parametrize("source", [Glyphs(**FEW), Topics20Bags(samples=400, test_samples=100, worlds=4)], ids=str)
def test_a_world_is_the_same_again_and_another_one_is_not(source):
    task, again = source.load(), source.load()
    assert len(task.own_places) == 400 and len(task.test_labels) == 100
    first, second = task.of_run(1), again.of_run(1)
    for name in ("test_inputs", "test_labels"):
        assert torch.equal(getattr(first, name), getattr(second, name))
    assert all(map(torch.equal, first.samples, second.samples))
    worlds = torch.stack([task.of_run(seed).samples[0].mean(0) for seed in range(4)])
    assert torch.pdist(worlds.flatten(1)).min() > 0.5
    assert task.of_run(5) is task.of_run(1) and task.of_run(0) is task  # four worlds in all
    drawn = [world.unlabelled_set("natural", 40, RNG(0)) for world in (task, first)]
    assert not torch.equal(*drawn)


def test_shapes_are_balanced_and_standardised():
    task = Glyphs(**FEW).load()
    assert task.input_shape == (1, 12, 12) and task.num_classes == 10 and task.class_names[3] == "3"
    assert task.samples[1].bincount().tolist() == [40] * 10 and task.test_labels.bincount().tolist() == [10] * 10
    assert all(float(world.samples[0].mean()) == pytest.approx(0, abs=1e-4) for world in map(task.of_run, range(4)))


def test_worlds_share_tensors_and_a_run_gets_its_own_places():
    task = Glyphs(**FEW).load()
    configs = [Config(**SMALL, seed=seed) for seed in (0, 2, 6)]
    others = [task.of_run(config.seed) for config in configs]
    assert all(other.inputs is task.inputs and other.labels is task.labels for other in others)
    dealt = [np.concatenate(deal_out(config, other)) for config, other in zip(configs, others, strict=True)]
    for places, world in zip(dealt, (0, 2, 2), strict=True):
        assert np.array_equal(np.sort(places), np.arange(400 * world, 400 * (world + 1)))
    assert not np.array_equal(dealt[1], dealt[2])  # the same world, another partition
    assert not task.inputs[400:800].any()  # that of seed 1: nobody has asked for it


def test_the_servers_own_samples_are_of_its_world_and_no_clients():
    config = Config(**{**SMALL, "algorithm": "fedadt", "seed": 3})
    task = load_task(config.task_settings).of_run(3)
    own, dealt = servers_own(config, task), np.concatenate(deal_out(config, task))
    assert len(own) and np.array_equal(np.sort(np.concatenate([own, dealt])), np.arange(1200, 1600))


def test_a_run_is_tested_in_its_own_world():
    results = run_many([Config(**{**SMALL, "client_lr": 0.0, "seed": seed}) for seed in (0, 1)])
    at_home = Run(Config(**{**SMALL, "seed": 1}))
    assert at_home.task.test_inputs is load_task(at_home.config.task_settings).of_run(1).test_inputs
    assert at_home.evaluate()["loss"] == pytest.approx(results[1].curve["loss"].iloc[0], abs=1e-6)
    assert results[0].curve["loss"].iloc[0] != results[1].curve["loss"].iloc[0]


@pytest.mark.parametrize(
    "more", [{}, {"algorithm": "fedecho", "settings": {"distill_samples": 40, "distill_set": "noise"}}], ids=str
)
def test_runs_of_different_worlds_share_cohorts_and_have_the_bits_they_have_alone(cohorts, more):
    configs = [Config(**{**SMALL, **more, "seed": seed}) for seed in range(4)]
    alone = [run(config) for config in configs]
    cohorts.clear()
    for one, other in zip(alone, run_many(configs), strict=True):
        same(one, other)
    assert max(len(works) for *_, works in cohorts) == 20  # five jobs of each


def test_bits_do_not_depend_on_which_worlds_were_drawn_before():
    """Noise, for one, has the inputs' mean and spread: the world's own, and not those of whatever is there."""
    settings = Glyphs(**FEW)
    asked, fresh = settings.load(), settings.load()
    for seed in range(4):
        asked.of_run(seed)
    one, other = asked.of_run(2), fresh.of_run(2)
    assert one.input_spec == other.input_spec and data_of(Config(), one) == data_of(Config(), other)
    drawn = [task.unlabelled_set("noise", 20, RNG(0)) for task in (one, other)]
    assert torch.equal(*drawn) and data_of(Config(), one) != data_of(Config(), asked.of_run(1))


@pytest.mark.parametrize("name", ["cross", "natural", "synthetic"])
def test_unlabelled_sets_are_spoiled_as_the_world_is(name):
    """That they are the same again and differ is in test_stand_ins.py."""
    drawn = Glyphs(**FEW).load().of_run(1).unlabelled_set(name, 60, stream(1, "unlabelled"))
    clean = Glyphs(**FEW, clutter=0, noise=0).load().of_run(1)
    corners = [images[..., [0, 0, -1, -1], [0, -1, 0, -1]] for images in (clean.samples[0], drawn)]
    assert corners[0].std() < 0.2 < corners[1].std()  # shapes leave corners dark, clutter and noise do not


@pytest.mark.parametrize("harder", [{"clutter": 1.5}, {"noise": 0.8}, {"looks": 30}, {"classes": 40}], ids=str)
def test_each_knob_makes_classes_harder_to_tell_apart(harder):
    def score(**knobs: float) -> float:
        task = Glyphs(samples=2000, test_samples=500, worlds=1, **knobs).load()
        fitted = LinearDiscriminantAnalysis().fit(task.samples[0].flatten(1), task.samples[1])
        return fitted.score(task.test_inputs.flatten(1), task.test_labels)

    easy = {"clutter": 0.3, "looks": 2}
    assert score(**{**easy, **harder}) < score(**easy) - 0.05
