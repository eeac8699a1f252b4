"""FedAsync: numbers worked out by hand, identities and a counter-example."""

from __future__ import annotations

import functools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import conftest
from asyncfl_lite.algorithms import make_algorithm
from asyncfl_lite.algorithms.mixing import hinge, poly
from conftest import update, vector

started = functools.partial(conftest.started, "fedasync")


def model_update(method, model, start_version):
    """An update whose client ends at ``model``."""
    start = method._versions[start_version]
    return update((vector(*model) - start).tolist(), start_version)


def test_worked_staleness_functions():
    assert [hinge(t) for t in (0, 4, 5, 6, 10)] == pytest.approx([1, 1, 1 / 11, 1 / 21, 1 / 61], rel=1e-7)
    assert [poly(t) for t in (0, 1, 3, 8)] == pytest.approx([1, 0.7071067812, 0.5, 0.3333333333], rel=1e-7)
    assert poly(17, a=0) == 1


def test_worked_path():
    method = started(mixing=0.6)
    method.receive(model_update(method, (2, 2), 0))
    torch.testing.assert_close(method.x, vector(1.6, 1.2), rtol=1e-7, atol=0)
    for _ in range(2):  # two versions that change nothing, so that the next update is three old
        method.new_version(method.x)
    method.receive(model_update(method, (0, 4), 0))
    torch.testing.assert_close(method.x, vector(1.12, 2.04), rtol=1e-7, atol=0)


def test_equals_fedbuff_of_one_when_fresh_and_only_then():
    delta = (0.2, -0.2)
    for start, fresh in (((1.5, 0.5), True), ((1.0, 0.0), False)):
        fedasync = started(x0=(1.5, 0.5), mixing=1.0, staleness_function="constant")
        fedbuff = make_algorithm("fedbuff")
        fedbuff.start(vector(1.5, 0.5))
        sent = update(delta, start=vector(*start))
        fedasync.receive(sent)
        fedbuff.receive(sent)
        torch.testing.assert_close(fedbuff.x, vector(1.7, 0.3), rtol=1e-7, atol=0)
        assert torch.allclose(fedasync.x, fedbuff.x) == fresh
    torch.testing.assert_close(fedasync.x, vector(1.2, -0.2), rtol=1e-7, atol=0)


@given(st.floats(-5, 5), st.floats(-5, 5), st.integers(0, 9))
def test_delta_identity(start, delta, tau):
    """x + α_t Δ + α_t (x_{t_i} - x) is what mixing gives."""
    method = started(x0=(2.0, 2.0))
    method.version = tau
    method.receive(update((delta, delta), 0, start=vector(start, start)))
    weight = method.mixing_weight(tau)
    expected = 2 + weight * delta + weight * (start - 2)
    torch.testing.assert_close(method.x, vector(expected, expected), rtol=1e-9, atol=1e-9)


def test_buffers_are_mixed_as_parameters():
    method = make_algorithm("fedasync", mixing=0.5, staleness_function="constant")
    method.start(vector(0), buffers=vector(1))
    method.receive(update((0,), buffers=vector(3)))
    assert method.buffers.item() == 2
