"""FADAS: numbers worked out by hand, identities and counter-examples."""

from __future__ import annotations

import functools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import conftest
from asyncfl_lite.algorithms import FADAS, make_algorithm
from conftest import update, vector

started = functools.partial(conftest.started, "fadas")


def test_worked_path():
    """Mean updates (.2, .4), (-.1, .2), (.1, .1), of staleness 0, 1, 4."""
    path = [(1.09999995, 0.099999975), (1.1359209943, 0.2257236582), (1.206669917, 0.3586665631)]
    method = started(server_lr=0.1, delay_adaptive=True)
    method.version = 10  # so that stale versions exist
    reports = [((0.2, 0.4), 0), ((-0.1, 0.2), 1), ((0.1, 0.1), 4)]
    for (delta, staleness), x in zip(reports, path, strict=True):
        method.receive(update(delta, method.version - staleness))
        torch.testing.assert_close(method.x, vector(*x), rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(method.largest_square, vector(0.00059104, 0.00206416), rtol=1e-7, atol=0)


def test_min_inv_is_inert_at_small_rates_and_divide_is_not():
    """Under FedEcho's rate of 1e-4 the paper's rule needs a staleness above 10,000; the code's fires at 2."""

    def rates(*staleness, **options):
        method = started(server_lr=1e-4, **options)
        return [setattr(method, "_stalest", stalest) or method.step_size() for stalest in staleness]

    assert rates(0, 1, 2, 150, 10_000, delay_adaptive=True) == [1e-4] * 5
    assert rates(20_000, delay_adaptive=True) == pytest.approx([5e-5])
    assert rates(0, 1, 2, 100, delay_adaptive=True, da_rule="divide") == pytest.approx([1e-4, 1e-4, 5e-5, 1e-6])
    assert rates(500) == [1e-4]


class Pinned(FADAS):
    """FADAS whose v̂ stays at 4."""

    def average(self, direction):
        super().average(direction)
        self.largest_square = self.square = torch.full_like(self.x, 4.0)


def test_with_a_pinned_denominator_it_is_fedbuff():
    ours = Pinned(buffer_size=2, server_lr=0.5, beta1=0.0, eps=0.0)
    fedbuff = make_algorithm("fedbuff", buffer_size=2, server_lr=0.25)
    for method in (ours, fedbuff):
        method.start(vector(1, 0))
        for delta in ((0.1, 0.2), (0.4, -0.3), (1, 1), (-2, 0.5)):
            method.receive(update(delta))
    torch.testing.assert_close(ours.x, fedbuff.x, rtol=1e-12, atol=1e-12)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6))
def test_the_denominator_never_falls(deltas):
    method = started(x0=(0,))
    largest = 0.0
    for delta in deltas:
        method.receive(update((delta,)))
        assert method.largest_square.item() >= largest
        largest = method.largest_square.item()


def test_the_stalest_entry_counts_and_is_forgotten():
    method = started(server_lr=0.1, delay_adaptive=True, da_rule="divide", buffer_size=2)
    method.version = 8
    method.receive(update((0.1, 0.1), 0))
    assert method._stalest == 8
    method.receive(update((0.1, 0.1), 8))
    assert method._stalest == 0
