"""FedBuff and FedAvg: numbers worked out by hand, identities, properties."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import strategies as st

from asyncfl_lite.algorithms import ServerContext, make_algorithm
from conftest import started, update, vector

numbers = st.floats(-10, 10, allow_nan=False)


@pytest.mark.parametrize(
    ("weight", "first", "second"),
    [
        ("none", (1.1, 0.2), (1.1, 0.3)),
        ("poly", (1.1, 0.1), (1.0813113276, 0.1520220057)),
        ("poly_norm", (1 + 0.5 * 0.2666666667, 0.5 * 0.2666666667), None),
    ],
)
def test_worked_buffers(weight, first, second):
    method = started("fedbuff", buffer_size=2, server_lr=0.5, staleness_weight=weight)
    method.version = 8  # so that updates of staleness 0, 3, 1 and 8 exist
    assert not method.receive(update((0.4, 0), 8))
    assert method.receive(update((0, 0.8), 5))
    torch.testing.assert_close(method.x, vector(*first), rtol=1e-7, atol=0)
    assert not method.receive(update((-0.2, 0.2), 8))  # the version is 9 now
    assert method.receive(update((0.2, 0.2), 1))
    if second is None:
        second = (first[0] - 0.5 * 0.0718491036, first[1] + 0.5 * 0.2)
    torch.testing.assert_close(method.x, vector(*second), rtol=1e-7, atol=0)
    assert method.version == 10


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"server_lr_decay": 0.9}, [(1.1, 0.2), (1.055, 0.29), (1.0955, 0.3305)]),
        ({"delay_adaptive": True, "tau_c": 3}, [(1.1, 0.2), (1.05, 0.3), (1.0875, 0.3375)]),
        ({"delay_adaptive": True, "tau_c": 4}, [(1.1, 0.2), (1.05, 0.3), (1.1, 0.35)]),
        ({"delay_adaptive": True, "tau_c": 3, "da_rule": "divide"}, [(1.1, 0.2), (1.05, 0.3), (1.0625, 0.3125)]),
        ({"delay_adaptive": True, "tau_c": 3, "da_rule": "min_inv"}, [(1.1, 0.2), (1.05, 0.3), (1.075, 0.325)]),
        (
            {"server_lr_decay": 0.9, "delay_adaptive": True, "tau_c": 3},
            [(1.1, 0.2), (1.055, 0.29), (1.085375, 0.320375)],
        ),
    ],
)
def test_worked_rates(options, path):
    """Buffers of mean (.2, .4), (-.1, .2) and (.1, .1), whose stalest updates are 0, 1 and 4 versions old."""
    method = started("fedbuff", buffer_size=2, server_lr=0.5, **options)
    for stalest, (first, second), x in zip(
        (0, 1, 4), (((0.4, 0), (0, 0.8)), ((-0.2, 0.2), (0, 0.2)), ((0.1, 0.2), (0.1, 0))), path, strict=True
    ):
        method.on_receive(replace(update(first), staleness=stalest))
        assert method.on_receive(update(second))
        torch.testing.assert_close(method.x, vector(*x), rtol=1e-7, atol=0)


@pytest.mark.parametrize("name", ["fedbuff", "fedavg", "fedprox", "fedavgm", "fedadam", "ca2fl", "fadas", "fedac"])
@pytest.mark.parametrize("options", [{"server_lr_decay": 0.5}, {"delay_adaptive": True, "da_rule": "divide"}])
def test_a_changing_rate_reaches_every_method_with_a_buffer(name, options):
    """The second step is half as long: by the decay, or because its update is two versions old."""
    context = ServerContext(None, 2, None, None)
    plain, changing = (started(name, context=context, **more) for more in ({}, options))
    moved = []
    for method in (plain, changing):
        method.receive(update((0.3, -0.2)))
        before = method.x
        method.on_receive(replace(update((0.1, 0.4), start_version=1, start=before), staleness=2))
        moved.append(method.x - before)
    torch.testing.assert_close(moved[1], 0.5 * moved[0], rtol=1e-12, atol=0)


def test_fedavg_worked_models():
    """Models (1, 2) and (3, -2) of sizes 10 and 30 give (2.5, -1)."""
    method = started("fedavg", x0=(0, 0), buffer_size=2)
    method.receive(update((1, 2), num_samples=10))
    method.receive(update((3, -2), num_samples=30))
    torch.testing.assert_close(method.x, vector(2.5, -1.0), rtol=1e-7, atol=0)


def test_fedavg_with_equal_sizes_is_fedbuff_of_a_whole_round():
    left = started("fedavg", buffer_size=3)
    right = started("fedbuff", buffer_size=3)
    for delta in ((0.1, 0.2), (-1, 0.3), (2, 2)):
        left.receive(update(delta, num_samples=350))
        right.receive(update(delta, num_samples=350))
    torch.testing.assert_close(left.x, right.x, rtol=1e-12, atol=1e-12)


def test_samples_weighting():
    method = started("fedbuff", x0=(0, 0), buffer_size=2, buffer_weight="samples")
    method.receive(update((1, 2), num_samples=10))
    method.receive(update((3, -2), num_samples=30))
    torch.testing.assert_close(method.x, vector(2.5, -1.0), rtol=1e-7, atol=0)


def test_a_client_that_reports_twice_counts_twice():
    method = started("fedbuff", x0=(0, 0), buffer_size=3)
    for client, delta in ((0, (3, 0)), (0, (3, 0)), (1, (0, 3))):
        method.receive(update(delta, client=client))
    assert torch.equal(method.x, vector(2, 1))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_updates_that_are_not_finite_are_refused_and_counted(bad):
    method = started("fedbuff", buffer_size=2)
    assert not method.receive(update((bad, 0), client=3))
    assert not method.receive(update((1, 1)))
    assert method.receive(update((1, 1)))
    assert torch.equal(method.x, vector(2, 1))
    assert [(r.client, "not finite" in r.reason) for r in method.rejections] == [(3, True)]


def test_updates_of_a_wrong_shape_or_version_are_refused():
    method = started("fedbuff")
    assert not method.receive(update((1, 2, 3)))
    assert not method.receive(update((1, 2), start_version=1))
    assert [r.reason for r in method.rejections] == [
        "wrong shape (3,), expected (2,)",
        "start version 1 is not one of 0 to 0",
    ]
    assert method.version == 0


def test_running_statistics_take_the_mean_or_the_mean_change():
    def after(mode):
        method = make_algorithm("fedbuff", buffer_size=2, bn_mode=mode)
        method.start(vector(0, 0), buffers=vector(1, 2), variance_mask=torch.tensor([False, True]))
        for after in ((3, 4), (5, -9)):
            method.receive(update((0, 0), buffers=vector(*after), start_buffers=vector(2, 2)))
        full = method.buffers
        method.receive(update((0, 0), buffers=vector(7, 8), start_buffers=vector(2, 2)))
        method.flush()  # the buffer has room for one more
        return torch.stack([full, method.buffers])

    torch.testing.assert_close(after("avg"), torch.stack([vector(4, 1e-12), vector(7, 8)]))
    torch.testing.assert_close(after("delta"), torch.stack([vector(3, 1e-12), vector(8, 6)]))  # 2 + mean(2, -11) < 0
