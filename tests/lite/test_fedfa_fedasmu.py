"""FedFa and FedASMU: numbers worked out by hand, and identities."""

from __future__ import annotations

import dataclasses
import functools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import conftest
from asyncfl_lite import Config, run
from asyncfl_lite.algorithms import FedASMU, make_algorithm
from conftest import update, vector

started = functools.partial(conftest.started, x0=(0.0, 0.0))


def models(method, *values):
    """Send client models that started from version 0; return the global models after each."""
    seen = []
    for value in values:
        method.receive(update((vector(*value) - method.start_of(update((0, 0)))).tolist()))
        seen.append(tuple(method.x.tolist()))
    return seen


def test_fedfa_worked_window():
    assert models(started("fedfa", queue_length=2), (2, 2), (0, 4), (4, 0)) == [(2, 2), (1, 3), (2, 2)]


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1, max_size=6))
def test_fedfa_with_a_queue_of_one_is_fedasync_of_full_weight(values):
    fedfa = started("fedfa", x0=(1, 0), queue_length=1)
    fedasync = started("fedasync", x0=(1, 0), mixing=1.0, staleness_function="constant")
    for value in values:
        for method in (fedfa, fedasync):
            method.receive(update(value, 0))
        assert torch.equal(fedfa.x, fedasync.x)


def arrivals(method, *pairs):
    """Send updates by the running statistics they started from and came to; return the server's after each."""
    seen = []
    for before, after in pairs:
        sent = update((0, 0), start=vector(0, 0), start_buffers=vector(*before), buffers=vector(*after))
        method.receive(sent)
        seen.append(tuple(method.buffers.tolist()))
    return seen


STATISTICS = [((0, 1), (2, 2)), ((0, 1), (0, 4)), ((2, 2), (4, 0))]


def with_statistics(**settings):
    method = make_algorithm("fedfa", queue_length=2, **settings)
    method.start(vector(0, 0), buffers=vector(0, 1), variance_mask=torch.tensor([False, True]))
    return method


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [(2, 2), (1, 3), (2, 2)]),  # as the parameters in the worked window
        ({"bn_mode": "delta"}, [(2, 2), (1, 3), (2, 2)]),
        ({"bn_mode": "freeze"}, [(0, 1)] * 3),
    ],
    ids=str,
)
def test_fedfas_running_statistics_are_the_queues_mean(settings, expected):
    assert arrivals(with_statistics(**settings), *STATISTICS) == expected


def test_fedfas_variances_stay_positive_and_an_update_may_bring_none():
    method = with_statistics()
    assert arrivals(method, ((0, 1), (0, -2)))[-1] == (0, 1e-12)
    method = with_statistics()
    arrivals(method, STATISTICS[0])
    method.receive(update((0, 0), start=vector(0, 0)))
    assert method.buffers.tolist() == [2, 2]
    assert len(method.buffer_entries) == len(method.entries) == 2
    assert arrivals(method, STATISTICS[1])[-1] == (0, 4)  # the first one has left


def test_fedasmu_worked_weights():
    """μ = λ = 1, ι = σ = .5: α = .6 for t = 1, s = 1 and .4604957132 for t = 4, s = 2."""
    method = started("fedasmu")
    assert method.weight_of(update((0, 0))) == pytest.approx(0.6, rel=1e-7)
    method.version = 3
    method.receive(update((1, 0), 2, start=vector(0, 0)))
    assert method.x[0].item() == pytest.approx(0.4604957132, rel=1e-7)


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.floats(0.01, 10))
def test_fedasmu_weight_lies_strictly_between_nothing_and_all(version, stale, mu):
    method = started("fedasmu", mu=mu)
    method.version = version
    sent = dataclasses.replace(update((0, 0)), staleness=min(stale, version))
    assert 0 < method.weight_of(sent) < 1


def test_fedasmu_merges_only_what_is_newer():
    method = started("fedasmu", x0=(5, 5))
    assert method.midway_model(0) is None
    method.new_version(vector(1, 1))
    merged = method.midway_model(0)
    phi = 1 - 1 / 2**0.5
    assert merged.weight == pytest.approx(phi / (1 + phi))
    assert torch.equal(merged.model, method.x)


def test_fedasmus_clients_merge_half_way_in_a_real_run(monkeypatch):
    ends = {}
    for merge_at in (None, 0.0, FedASMU.midway):
        monkeypatch.setattr(FedASMU, "midway", merge_at)
        ends[merge_at] = run(Config(algorithm="fedasmu", clients=6, concurrency=4, rounds=8, local_steps=4)).x.tolist()
    assert ends[None] == ends[0.0] != ends[0.5]  # merging at once merges what was just sent: nothing
