"""What clients of other simulators have: momentum, rates that fall over a client's jobs, shards, and bandwidth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asyncfl_lite import Config, run, run_many, schedule
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.clients.cohorts import LocalTraining, make_optimiser
from asyncfl_lite.tasks.partitions import PARTITIONS, label_counts

SMALL = {"clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 4, "eval_every": 4, "client_lr": 0.05}


@pytest.mark.parametrize("nesterov", [False, True])
def test_steps_are_those_of_torch(nesterov):
    x, targets = torch.randn(3, 5), torch.randn(4, 3, 5)
    ours, theirs = x.clone(), x.clone().requires_grad_()
    training = LocalTraining(weight_decay=0.01, momentum=0.9, nesterov=nesterov)
    step = make_optimiser(training, ours, torch.full((3, 1), 0.1))
    optimiser = torch.optim.SGD([theirs], 0.1, momentum=0.9, weight_decay=0.01, nesterov=nesterov)
    for rows, target in zip((3, 3, 2, 2), targets, strict=True):  # the last job ends first
        step(ours[:rows], (ours - target)[:rows].clone())
        theirs.grad = (theirs - target).detach()
        optimiser.step()
        torch.testing.assert_close(ours[:2], theirs.detach()[:2])


@pytest.mark.parametrize("schedule", ["cosine", "step"])
def test_rates_are_those_of_torch_s_schedules(schedule):
    own, period = LocalTraining(lr=0.4, schedule=schedule, period=3), 3
    optimiser = torch.optim.SGD([torch.zeros(1)], 0.4)
    kinds = torch.optim.lr_scheduler
    theirs = kinds.CosineAnnealingLR(optimiser, period) if schedule == "cosine" else kinds.StepLR(optimiser, period)
    rates = []
    for _ in range(period + 1):
        rates.append(theirs.get_last_lr()[0])
        optimiser.step()
        theirs.step()
    assert [own.lr_at(7, number) for number in range(4)] == pytest.approx(rates)
    assert own.lr_at(0, 9) == pytest.approx(0.0 if schedule == "cosine" else 4e-4)
    assert LocalTraining(lr=0.4, lr_decay=0.5, schedule=schedule, period=3).lr_at(2) == pytest.approx(0.1)


def test_a_run_with_them_is_the_same_alone_in_lockstep_and_one_by_one():
    config = Config(**SMALL, client_momentum=0.9, client_nesterov=True, client_lr_schedule="cosine", client_lr_period=4)
    alone, plain = run(config), run(Config(**SMALL))
    assert torch.equal(run_many([config, config.with_seed(1)])[0].x, alone.x) and not torch.equal(plain.x, alone.x)
    torch.testing.assert_close(run(config.replace(vectorize="off")).x, alone.x, rtol=1e-4, atol=1e-5)
    assert "client_momentum" not in Config(**SMALL).model_dump(exclude_defaults=True)  # no hash has changed


def test_fedac_is_told_the_gradients_where_the_delta_no_longer_says_them():
    options = {**SMALL, "algorithm": "fedac", "server_lr": 0.01}
    ways = [{}, {"client_lr_schedule": "step", "client_lr_period": 1}, {"client_momentum": 0.5}]
    for way in ways:
        config = Config(**options, **way)
        assert config.make_training(config.make_algorithm()).means_gradients == bool(way)
    assert len({run(Config(**options, **way)).summary["weights_sha256"] for way in ways}) == 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"client_momentum": 0.9, "client_optimizer": "adam"},
            "client_momentum: needs client_optimizer 'sgd', got 'adam'",
        ),
        ({"client_nesterov": True}, "client_nesterov: needs a client_momentum above 0, got 0"),
        ({"client_momentum": 1.0}, "client_momentum: must be less than 1, got 1.0"),
        ({"client_lr_schedule": "linear"}, "client_lr_schedule: must be 'constant', 'cosine' or 'step', got 'linear'"),
        ({"delay": "bandwidth"}, "delay_settings.megabytes: must be given"),
        ({"delay": "bandwidth", "delay_settings": {"megabytes": 1, "upload": 0}}, "delay_settings.upload.0: must be"),
    ],
)
def test_a_mistake_is_one_line(settings, said):
    with pytest.raises(ConfigError) as caught:
        Config(**settings)
    assert str(caught.value).startswith(said)


def test_shards_hold_few_classes_and_clients_few_shards():
    labels = np.random.default_rng(0).permutation(np.arange(600) % 10)
    parts = PARTITIONS.get("shard")().split(labels, 20, np.random.default_rng(0))
    assert [len(part) for part in parts] == [30] * 20
    assert (label_counts(labels, parts, 10) > 0).sum(1).max() <= 2  # 40 shards of 15: none crosses classes of 60
    assert len(PARTITIONS.get("shard")(shards=10).split(labels, 20, np.random.default_rng(0))[0]) == 30


@pytest.mark.parametrize("classes", [1, 3, 10, 12])
def test_every_client_has_exactly_so_many_classes(classes):
    labels = np.random.default_rng(0).permutation(np.arange(600) % 10)
    parts = PARTITIONS.get("pathological")(classes=classes).split(labels, 20, np.random.default_rng(0))
    counts = label_counts(labels, parts, 10)
    assert ((counts > 0).sum(1) == min(classes, 10)).all() and counts.sum() == 600
    for shares in counts.T:
        assert np.ptp(shares[shares > 0]) <= 1
    few = PARTITIONS.get("pathological")(classes=1).split(labels, 3, np.random.default_rng(0))
    assert [len(part) for part in few] == [60] * 3


def test_a_job_takes_its_bytes_over_the_bandwidth_and_its_training():
    law = {"megabytes": 2.0, "download": (16.0, 8.0), "upload": (4.0,), "training": (1.0, 3.0, 0.0)}
    config = Config(**{**SMALL, "concurrency": 6, "buffer_size": 1}, delay="bandwidth", delay_settings=law)
    updates = schedule(config.replace(rounds=6)).updates
    first = updates[updates["dispatched_at"] == 0].groupby("client")["arrived_at"].first()
    expected = [1 + 4 + 1, 2 + 4 + 3, 1 + 4 + 0, 2 + 4 + 1, 1 + 4 + 3, 2 + 4 + 0]
    assert config.delay_settings.unit == "s" and all(first[client] == expected[client] for client in first.index)
