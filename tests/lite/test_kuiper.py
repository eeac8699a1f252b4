"""KUIPER: numbers worked out by hand, identities and traps."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import conftest
from asyncfl_lite import Config
from asyncfl_lite.algorithms import make_algorithm
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs.run import Run
from conftest import update, vector

started = functools.partial(conftest.started, "kuiper")


def burst(method, entries):
    """Receive ``(model, size, accuracy, staleness)`` entries, as from version 10."""
    method.version = 10
    for client, (model, size, accuracy, stale) in enumerate(entries):
        known = {"start": torch.zeros_like(method.x), "received_accuracy": accuracy, "buffers": vector(*model)}
        method.receive(update(model, 10 - stale, client, size, **known))


EXAMPLE = [((2, 2), 100, 0.6, 0), ((4, -2), 300, 0.2, 2)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"kuiper_norm": "literal"}, (1.7919595949, -0.4949747468)),
        ({"kuiper_norm": "renorm"}, (2.3435028843, -0.7071067812)),
        ({"t0": 0}, (2.2374368671, -0.4949747468)),
        ({"kuiper_norm": "delta"}, (1.940452019, -0.4949747468)),
    ],
)
def test_worked_burst(settings, expected):
    method = started(buffer_size=2, **settings)
    method.start(method.x, buffers=method.x)
    burst(method, EXAMPLE)
    assert method.mixing_weight(1) == pytest.approx(0.4949747468, rel=1e-7)
    torch.testing.assert_close(method.x, vector(*expected), rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(method.buffers, method.x)  # running statistics are mixed as parameters are


entries = st.lists(
    st.tuples(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), st.integers(1, 50), st.floats(0, 0.95), st.integers(0, 9)),
    min_size=1,
    max_size=5,
)


@given(entries)
def test_size_weighted_mean_when_all_is_off(reports):
    method = started(buffer_size=len(reports), poly_a=0.0, mixing=1.0, t0=0)
    burst(method, reports)
    total = sum(size for _, size, _, _ in reports)
    expected = sum(size * vector(*model) for model, size, _, _ in reports) / total
    torch.testing.assert_close(method.x, expected, rtol=1e-12, atol=1e-12)


@given(entries, st.floats(0, 0.9))
def test_equal_accuracies_are_no_accuracies_when_renormalised(reports, accuracy):
    with_accuracy, without = started(buffer_size=len(reports)), started(buffer_size=len(reports), t0=0)
    same = [(model, size, accuracy, stale) for model, size, _, stale in reports]
    burst(with_accuracy, same)
    burst(without, same)
    torch.testing.assert_close(with_accuracy.x, without.x, rtol=1e-9, atol=1e-9)


def test_worked_shrinking():
    method = started(x0=(1, 2), buffer_size=2, kuiper_norm="literal")
    burst(method, [((1, 2), 100, 0.6, 0), ((1, 2), 300, 0.2, 2)])
    torch.testing.assert_close(method.x, 0.8515075758 * vector(1, 2), rtol=1e-7, atol=0)


def test_a_perfect_client_has_no_weight_and_a_perfect_burst_changes_nothing():
    alone, together = started(buffer_size=2), started(buffer_size=2)
    burst(alone, [((2, 2), 100, 0.5, 0), ((2, 2), 1, 0.5, 0)])
    burst(together, [((2, 2), 100, 0.5, 0), ((-9, 7), 500, 1.0, 0)])
    torch.testing.assert_close(alone.x, together.x)
    perfect = started(buffer_size=2)
    burst(perfect, [((2, 2), 100, 1.0, 0), ((-9, 7), 500, 1.0, 0)])
    assert torch.equal(perfect.x, vector(1, 0)) and perfect.version == 11


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=6))
def test_a_burst_of_one_without_accuracy_is_fedasync(deltas):
    ours = started(t0=0, mixing=0.7, poly_a=0.5)
    fedasync = make_algorithm("fedasync", mixing=0.7, poly_a=0.5)
    fedasync.start(vector(1, 0))
    for version, delta in enumerate(deltas):
        for method in (ours, fedasync):
            method.receive(update(delta, version // 2))
    torch.testing.assert_close(ours.x, fedasync.x, rtol=1e-12, atol=1e-12)


def test_t0_counts_aggregations():
    count = started(t0=3)
    sent = dataclasses.replace(update((0, 0)), received_accuracy=0.25)
    factors = []
    for count.version in range(4):  # making the aggregations t = 1, 2, 3, 4
        factors.append(count.accuracy_factor(sent))
    assert factors == [0.75, 0.75, 1.0, 1.0]


def test_which_accuracy():
    method = started(acc="post_eval")
    assert method.client_reports == {"trained_accuracy"}
    method.receive(update((1, 0), 0, start=vector(0, 0), received_accuracy=0.9, trained_accuracy=0.0))
    torch.testing.assert_close(method.x, vector(1, 0))
    with pytest.raises(ConfigError, match="^trained_accuracy: KUIPER weighs updates by it; client 0 sent none$"):
        method.receive(update((1, 0), 0))


@pytest.mark.parametrize(
    ("settings", "report", "factor"),
    [
        ({}, "received_accuracy", 0.75),
        ({"acc": "last_epoch"}, None, 0.5),
        ({"acc": "post_eval"}, "trained_accuracy", 0.0),
        ({"t0": 0}, None, 1.0),
    ],
)
def test_the_three_readings_of_training_accuracy(settings, report, factor):
    """By default that of the model that was received; only what counts is asked of clients."""
    method = started(**settings)
    sent = update((0, 0), received_accuracy=0.25, train_accuracy=0.5, trained_accuracy=1.0)
    assert method.accuracy_factor(sent) == factor
    assert method.client_reports == (frozenset({report}) if report else frozenset())


def test_the_reward_with_clients_of_one_group_of_classes_each():
    """Fig. 9(a): with clients of few classes the trained models are perfect at home, the received one is not."""
    factors = {"received": [], "post_eval": []}
    for acc, found in factors.items():
        config = Config(
            algorithm="kuiper",
            partition="noniid_bias",
            partition_settings={"bias": 1.0},
            settings={"acc": acc},
            **SMALL,
        )
        run = Run(config)
        original = run.algorithm.accuracy_factor
        run.algorithm.accuracy_factor = lambda sent, f=original, found=found: found.append(f(sent)) or found[-1]
        run.finish()
    assert len(factors["received"]) >= 24
    assert np.mean(factors["post_eval"]) < 0.2 < 0.5 < np.mean(factors["received"])


SMALL = {
    "task": "digits", "clients": 8, "buffer_size": 4, "rounds": 6, "local_steps": 4, "eval_every": 6, "client_lr": 0.1
}  # fmt: skip


@pytest.mark.parametrize("switch", [{"acc": "post_eval"}, {"acc": "last_epoch"}, {"kuiper_norm": "literal"}, {"kuiper_norm": "delta"}, {"t0": 2}])  # fmt: skip
def test_every_switch_switches(switch):
    base = Run(Config(algorithm="kuiper", **SMALL)).finish()
    other = Run(Config(algorithm="kuiper", settings=switch, **SMALL)).finish()
    assert base.summary["weights_sha256"] != other.summary["weights_sha256"]


def test_literal_shrinks_running_statistics_too():
    def mean_of_buffers(norm):
        run = Run(Config(algorithm="kuiper", model="cnn", model_settings={"norm": "batch"}, settings={"kuiper_norm": norm}, **SMALL))  # fmt: skip
        run.finish()
        return run.algorithm.buffers.abs().mean()

    assert mean_of_buffers("literal") < 0.7 * mean_of_buffers("renorm")
