"""CA²FL: numbers worked out by hand, identities, and what it is for (T6 of the theory)."""

from __future__ import annotations

import numpy as np
import torch

from asyncfl_lite.algorithms import ServerContext, make_algorithm
from conftest import update, vector


def started(name="ca2fl", x0=(1.0, 0.0), clients=3, **settings):
    method = make_algorithm(name, **settings)
    method.start(vector(*x0), ServerContext(None, clients, np.random.default_rng(0), lambda name, count: None))
    return method


ROUNDS = [
    ([(0, (0.4, 0)), (1, (0, 0.8))], (0.2, 0.4), (1.2, 0.4), (0.1333333333, 0.2666666667)),
    ([(0, (0.2, 0.2)), (2, (0.6, -0.4))], (0.3333333333, 0.1666666667), (1.5333333333, 0.5666666667), (0.2666666667, 0.2)),
    ([(1, (0.2, 0.4)), (2, (0, 0))], (0.0666666667, 0.2), (1.6, 0.7666666667), (0.1333333333, 0.2)),
]  # fmt: skip


def test_worked_rounds():
    method = started(buffer_size=2)
    for entries, step, x, cached in ROUNDS:
        before = method.x
        for client, delta in entries:
            method.receive(update(delta, method.version, client))
        torch.testing.assert_close(method.x - before, vector(*step), rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(method.x, vector(*x), rtol=1e-7, atol=1e-10)
        torch.testing.assert_close(method.cached_mean(), vector(*cached), rtol=1e-7, atol=1e-10)


def test_the_first_aggregation_is_fedbuffs_to_the_last_bit():
    ours, fedbuff = (started(name, buffer_size=2, server_lr=0.7) for name in ("ca2fl", "fedbuff"))
    for client, delta in ROUNDS[0][0]:
        for method in (ours, fedbuff):
            method.receive(update(delta, method.version, client))
    assert torch.equal(ours.x, fedbuff.x)


def test_everyone_once_a_round_cancels_the_cache():
    ours, fedbuff = started(buffer_size=3), started("fedbuff", buffer_size=3)
    for number in range(4):
        for client in range(3):
            for method in (ours, fedbuff):
                method.receive(update((0.3 * client - number, 0.1 * client**2), method.version, client))
    torch.testing.assert_close(ours.x, fedbuff.x, rtol=1e-12, atol=1e-12)


def test_a_client_twice_in_a_buffer():
    """Both corrections use the round's old entry; the last write stays."""
    method = started(x0=(0,), clients=1, buffer_size=2)
    method.receive(update((3,)))
    method.receive(update((1,)))
    torch.testing.assert_close(method.x, vector(2))
    assert method.cache[0].item() == 1
