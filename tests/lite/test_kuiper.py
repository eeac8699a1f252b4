"""KUIPER: which accuracy weighs an update."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

import conftest
from asyncfl_lite import Config
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs.run import Run
from conftest import update, vector

started = functools.partial(conftest.started, "kuiper")
SMALL = {"clients": 8, "buffer_size": 4, "rounds": 6, "local_steps": 4, "eval_every": 6, "client_lr": 0.1}


def test_which_accuracy():
    method = started(acc="post_eval")
    assert method.client_reports == {"trained_accuracy"}
    method.receive(update((1, 0), 0, start=vector(0, 0), received_accuracy=0.9, trained_accuracy=0.0))
    torch.testing.assert_close(method.x, vector(1, 0))
    with pytest.raises(ConfigError, match="^trained_accuracy: KUIPER weighs updates by it; client 0 sent none$"):
        method.receive(update((1, 0), 0))


@pytest.mark.parametrize(
    ("settings", "version", "report", "factor"),
    [({}, 0, "received_accuracy", 0.75), ({"acc": "last_epoch"}, 0, None, 0.5), ({"t0": 0}, 0, None, 1.0),
     ({"acc": "post_eval"}, 0, "trained_accuracy", 0.0),
     *[({"t0": 3}, version, "received_accuracy", factor) for version, factor in enumerate((0.75, 0.75, 1.0, 1.0))]],
)  # fmt: skip
def test_the_readings_of_training_accuracy_and_of_t0(settings, version, report, factor):
    """By default that of the model that was received; only what counts is asked of clients."""
    method = started(**settings)
    method.version = version  # making aggregation t = version + 1
    sent = update((0, 0), received_accuracy=0.25, train_accuracy=0.5, trained_accuracy=1.0)
    assert method.accuracy_factor(sent) == factor
    assert method.client_reports == (frozenset({report}) if report else frozenset())


def test_the_reward_with_clients_of_one_group_of_classes_each():
    """Fig. 9(a): with clients of few classes the trained models are perfect at home, the received one is not."""
    factors = {"received": [], "post_eval": []}
    for acc, found in factors.items():
        own = {"partition": "noniid_bias", "partition_settings": {"bias": 1.0}, "settings": {"acc": acc}}
        run = Run(Config(algorithm="kuiper", **own, **SMALL))
        original = run.algorithm.accuracy_factor
        run.algorithm.accuracy_factor = lambda sent, f=original, found=found: found.append(f(sent)) or found[-1]
        run.finish()
    assert len(factors["received"]) >= 24
    assert np.mean(factors["post_eval"]) < 0.2 < 0.5 < np.mean(factors["received"])
