"""Configuration: defaults, types, one-line errors, the hash."""

from __future__ import annotations

import json

import pytest
import yaml

from asyncfl_lite import Config, Run, make_algorithm
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.runs.config import GROUPS
from conftest import line


def test_the_papers_defaults_are_filled_in():
    config = Config(task="digits", algorithm="fedecho", delay="fedecho_large", alpha=0.1, rounds=100, seed=0)
    assert (config.clients, config.concurrency, config.buffer_size) == (50, 25, 5)
    assert (config.scheduling, config.local_epochs, config.server_lr) == ("before_agg", 2, 1.0)
    assert (config.settings.clip, config.settings.alpha_min, config.settings.alpha_max) == (5.0, 0.2, 0.8)
    assert config.settings.distill_unit == "epochs" and config.settings.distill_q == 5


def test_giving_steps_or_a_horizon_replaces_the_default():
    config = Config(local_steps=25, horizon=10)
    assert (config.local_epochs, config.rounds) == (None, None)
    both = Config(rounds=5, horizon=10)
    assert (both.rounds, both.horizon) == (5, 10.0)


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_json_there_and_back(algorithm):
    config = Config(algorithm=algorithm, seed=4)
    assert Config(**json.loads(json.dumps(config.as_dict()))) == config
    assert Config(**yaml.safe_load(yaml.safe_dump(config.as_dict()))).hash == config.hash


def test_hash_tells_what_is_computed_apart_and_nothing_else():
    """All of these were measured; a hash without them would call another run's result this run's."""

    def hashes(*changes, **named) -> set[str]:
        return {Config(algorithm="fedecho", **{**named, **change}).hash for change in changes}

    others = [
        {"seed": 1}, {"alpha": 0.2}, {"settings": {"clip": 1.0}}, {"delay_settings": {"gamma": 2.0}}, {"rounds": 7},
        {"model_settings": {"hidden": [32]}}, {"threads": 2}, {"threads": 3}, {"vectorize": "off"},
    ]  # fmt: skip
    assert len(hashes({}, *others)) == 1 + len(others)
    named = {name: Config.model_fields[name].default for name in ("threads", "vectorize", "eval_every", "seed")}
    same = [{"delay": "fedecho_large", "alpha": 0.1}, {"checkpoint_every": 7}, {"checkpoint_seconds": 5.0}]
    same += [{"device": device} for device in ("auto", "cuda", "meta")]
    assert hashes({}) == hashes(*same, **named) and Config(rounds=3).hash == "93b1ae4b8427"


def test_groups_are_typed():
    config = Config(algorithm="fedecho", settings={"distill_lr": "3e-6", "clip": None})
    assert config.settings.distill_lr == 3e-6 and config.settings.clip is None
    assert set(GROUPS) <= set(Config.model_fields)
    assert Config(partition="iid").alpha is None
    assert Config(alpha=0.7).partition_settings.alpha == 0.7


def test_alpha_has_one_home():
    """The partition has the alpha that the configuration shows, and only the configuration writes it."""
    other = Config(alpha=0.1).partition_settings
    ways = {
        5.0: [{"alpha": 5.0}, {"alpha": "5", "partition_settings": other}, {**Config(alpha=0.1).as_dict(), "alpha": 5.0}],
        0.1: [{}, {"partition_settings": other}, {"partition_settings": {"min_size": 10}}],
        2.0: [{"task": "mrpc", "partition_settings": Config(alpha=2.0).partition_settings}],
    }  # fmt: skip
    for alpha, given in ways.items():
        for one in given:
            config = Config(**one)
            assert (config.alpha, config.partition_settings.alpha) == (alpha, alpha), one
    assert len({Config(**one).hash for one in ways[5.0]}) == 1


def test_what_belongs_to_another_model_or_law_goes_with_it():
    """A set-up's group of settings is filled in, name by name, only where its model or law is kept."""
    assert Config(task="cifar10", model_settings={"norm": "group"}).model_settings.width == 64
    assert Config(task="cifar10", model="resnet").model_settings.width == 64
    alone = Config(task="cifar10", model="resnet", model_settings={"norm": "group"})
    assert alone.model_settings.width == Config(model="resnet").model_settings.width != 64
    assert Config(task="cifar10", model="cnn").model_settings == Config(model="cnn").model_settings
    femnist = Config(task="femnist", partition="dirichlet_wrap", alpha=1)
    assert femnist.partition_settings.samples_per_client == 350


def test_a_method_made_by_hand_takes_the_same_names():
    config = Config(algorithm="fedecho", settings={"clip": 1})
    assert make_algorithm("fedecho", clip=1).settings.clip == config.make_algorithm().settings.clip == 1


def test_texts_are_cut_with_the_checkpoints_tokeniser_unless_another_is_named():
    model = {"model": "bert", "model_settings": {"checkpoint": "minilm"}}
    assert Config(task="newsgroups20", **model).task_settings.tokenizer == "minilm"
    named = Config(task="newsgroups20", task_settings={"tokenizer": "other"}, **model)
    assert named.task_settings.tokenizer == "other"
    assert Config(task="newsgroups20").task_settings.tokenizer == "t5-small"  # the set-up's model's
    assert Config(task="newsgroups20", preset="ours").task_settings.tokenizer is None
    assert Config(task="digits", **model).task_settings.model_dump() == Config(task="digits").task_settings.model_dump()


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ({"clients": 10}, (10, 10, 5)),
        ({"clients": 3}, (3, 3, 3)),
        ({"clients": "10"}, (10, 10, 5)),
        ({"clients": 30}, (30, 25, 5)),
        ({"clients": 3, "buffer_size": 5}, (3, 3, 5)),
        ({"clients": 10, "scheduling": "rounds"}, (10, 10, 10)),
        ({"clients": 4, "algorithm": "fedasync"}, (4, 4, 1)),
        ({"algorithm": "fedavg", "concurrency": 20}, (50, 20, 20)),
        ({"clients": 4, "task": "mrpc"}, (4, 4, 3)),
        ({"clients": 2, "algorithm": "kuiper"}, (2, 2, 2)),
    ],
)
def test_concurrency_and_buffer_follow_the_number_of_clients(given, sizes):
    config = Config(**given)
    assert (config.clients, config.concurrency, config.buffer_size) == sizes


WHEN_RUN = [
    ({"partition_settings": {"min_size": 10}, "clients": 400}, "partition_settings.min_size: must be at most"),
    ({"partition": "iid", "clients": 5000}, "clients: must be at most the 1437 samples, got 5000"),
    ({"partition": "noniid_bias", "partition_settings": {"groups": 9}, "clients": 5}, "partition_settings.groups: must be"),
    ({"algorithm": "fedecho", "settings": {"distill_set": "crosss"}}, "settings.distill_set: 'crosss' is not known; did you"),
    ({"task": "mnist", "task_settings": {"folder": "nowhere"}}, "task_settings.folder: looked in nowhere for MNIST/"),
    ({"task": "modmath", "model": "causal_lm", "model_settings": {"checkpoint": "/nowhere"}}, "model_settings.checkpoint: "),
    ({"initial": "teacher_chain", "initial_settings": {"task": "mnist5k", "teachers": [{"hidden": [8]}]}},
     "initial_settings.task: 'mnist5k' has inputs of"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), WHEN_RUN, ids=[message.partition(":")[0] for _, message in WHEN_RUN])
def test_what_is_seen_when_it_runs_names_the_setting_as_it_is_written(given, message):
    assert line(lambda: Run(Config(**given))).startswith(message)
