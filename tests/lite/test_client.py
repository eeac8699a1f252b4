"""Local training: against torch.optim, as a cohort and one by one, with any sizes of client, rates, shards, bandwidth."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import vmap

from asyncfl_lite import Config, run, schedule
from asyncfl_lite.clients.cohorts import ClientData, Cohort, LocalTraining, make_optimiser
from asyncfl_lite.clients.trainer import Trainer
from asyncfl_lite.models import CNN, MLP
from asyncfl_lite.models import handwritten_gradients as handwritten
from asyncfl_lite.models.stacked import Alone, chain_of, stacked_forward
from asyncfl_lite.models.steps import SGD, Rows, descending, with_backward
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.simulator.jobs import ON_REQUEST, Job, Midway
from asyncfl_lite.tasks import Task
from asyncfl_lite.tasks.partitions import PARTITIONS, label_counts
from conftest import vector

OPTIMISERS = {
    "sgd": lambda p, lr, wd, **more: torch.optim.SGD(p, lr=lr, weight_decay=wd, **more),
    "adam": lambda p, lr, wd: torch.optim.Adam(p, lr=lr, weight_decay=wd),
    "adamw": lambda p, lr, wd: torch.optim.AdamW(p, lr=lr, weight_decay=wd),
}


@pytest.mark.parametrize(
    ("name", "more"),
    [*((name, {}) for name in OPTIMISERS), ("sgd", {"momentum": 0.9}), ("sgd", {"momentum": 0.9, "nesterov": True})],
)
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_a_row_is_stepped_as_torch_steps_it(name, weight_decay, more):
    training = LocalTraining(client_optimizer=name, client_lr=0.05, local_epochs=1, weight_decay=weight_decay,
                             **{f"client_{option}": value for option, value in more.items()})  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 7, dtype=torch.float64, generator=generator)
    alone = [nn.Parameter(row.clone()) for row in x]
    theirs = [OPTIMISERS[name]([row], 0.05, weight_decay, **more) for row in alone]
    step = make_optimiser(training, x)
    for number in range(6):
        rows = 3 if number < 4 else 2  # the last client has fewer steps
        gradient = torch.randn(rows, 7, dtype=torch.float64, generator=generator)
        step(x[:rows], gradient.clone())
        for row, optimiser, g in zip(alone, theirs, gradient, strict=False):
            row.grad = g.clone()
            optimiser.step()
    torch.testing.assert_close(x, torch.stack([row.detach() for row in alone]), rtol=1e-12, atol=1e-14)


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 17), st.integers(1, 4), st.integers(0, 3))
def test_batches_cover_every_sample_once_an_epoch(samples, size, epochs, seed):
    training = LocalTraining(local_epochs=epochs, batch_size=size)
    places = training.batches(samples, np.random.default_rng(seed))
    a_pass = -(-samples // size)
    assert places.shape == (epochs * a_pass, size)
    for epoch in range(epochs):
        seen = places[epoch * a_pass : (epoch + 1) * a_pass]
        assert sorted(seen[seen >= 0].tolist()) == list(range(samples))


def quadratic(centres: list[float]) -> ClientData:
    """Clients whose loss is ½ (x - c)², with one sample each."""
    targets = torch.tensor(centres, dtype=torch.float64)[:, None]
    return ClientData(
        torch.ones(len(centres), 1, dtype=torch.float64), targets, [np.array([i]) for i in range(len(centres))],
        losses=lambda out, y: 0.5 * (out - y).square().sum(-1), hits=lambda out, y: torch.zeros(len(out)),
    )  # fmt: skip


def job(client: int, x: torch.Tensor, number: int = 0, buffers=None) -> Job:
    return Job(0.0, client, client, number, 0, 0.0, x, buffers)


def trainers(training: LocalTraining, spec, sizes: list[int]):
    generator = torch.Generator().manual_seed(0)
    total = sum(sizes)
    inputs = torch.randn(total, 1, 8, 8, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 10, (total,), generator=generator)
    task = Task.from_tensors(inputs, labels, inputs, labels)
    edges = np.cumsum([0, *sizes])
    parts = [np.arange(a, b) for a, b in zip(edges, edges[1:], strict=False)]
    data = ClientData(inputs, labels, parts, task.losses, task.hits)
    model = VectorModel(spec.build((1, 8, 8), 10).double())
    return model, [Trainer(model, data, training, seed=5, cohort=cohort) for cohort in (True, False)]


def assert_alike(cohort, single, jobs):
    """A job gives the same as one of a cohort and by itself."""
    for pair in zip(cohort(jobs), single(jobs), strict=True):
        left, right = ({field.name: getattr(one, field.name) for field in dataclasses.fields(one)} for one in pair)
        assert [name for name in left if left[name] is None] == [name for name in right if right[name] is None]
        left, right = ({name: value for name, value in one.items() if value is not None} for one in (left, right))
        torch.testing.assert_close(left, right, rtol=1e-6, atol=1e-9, equal_nan=True, check_dtype=False)


SIZES = [3, 40, 17, 8, 1, 25]
"""Unequal on purpose: padding, other numbers of steps."""


@pytest.mark.parametrize(
    "optimiser",
    [*({"client_optimizer": name} for name in OPTIMISERS), {"client_momentum": 0.9, "client_nesterov": True}],
    ids=str,
)
@pytest.mark.parametrize("length", [{"local_epochs": 2}, {"local_steps": 5}])
@pytest.mark.parametrize("spec", [MLP(), CNN(), CNN(norm="group")], ids=str)
def test_cohort_equals_one_by_one(optimiser, length, spec):
    training = LocalTraining(client_lr=0.02, batch_size=8, weight_decay=1e-3, proximal=0.1, **optimiser, **length)
    model, trained = trainers(training, spec, SIZES)
    x, _ = model.flatten()
    assert_alike(*trained, [job(client, x + 0.01 * client, number=client) for client in (4, 1, 5, 0, 2, 3)])


def test_no_two_jobs_share_a_stream():
    """Batches, augmentation and dropout differ by seed, client and job, and from each other; a job's own stay."""
    model, (cohort, _) = trainers(LocalTraining(batch_size=8, local_epochs=1), MLP(), [30] * 2)
    x, _ = model.flatten()
    data = dataclasses.replace(cohort.data, augment=lambda inputs, generator: inputs)

    def drawn(seed, client, number):
        work = Trainer(model, data, cohort.training, seed, cohort=True, draws=True).plan(job(client, x, number))
        order = tuple((work.indices - 30 * client).flatten())  # among its own samples
        return [order, work.generator.initial_seed(), work.draws]

    which = [(seed, client, number) for seed in (0, 1) for client in (0, 1) for number in (0, 1)]
    everything = [stream for one in which for stream in drawn(*one)]
    assert len(set(everything)) == 3 * len(which) and drawn(*which[-1]) == everything[-3:]


def test_against_a_plain_loop():
    """One by one is what a plain PyTorch loop does with the same batches."""
    asked = frozenset({"received_accuracy", "trained_accuracy"})
    training = LocalTraining(client_lr=0.05, batch_size=8, local_epochs=2, weight_decay=1e-2, reports=asked)
    model, (_, single) = trainers(training, CNN(norm="batch"), [21, 30])
    single.data = dataclasses.replace(single.data, hits=lambda outputs, labels: outputs.softmax(1)[:, 0] * labels)
    x, buffers = model.flatten()
    outcome = single([job(1, x, buffers=buffers)])[0]
    module = CNN(norm="batch").build((1, 8, 8), 10).double()
    model.load(module, x, buffers)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.05, weight_decay=1e-2)
    for row in single.plan(job(1, x)).indices:
        places = torch.from_numpy(row[row >= 0])
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(single.data.inputs[places]), single.data.targets[places]).backward()
        optimiser.step()
    after, after_buffers = model.flatten(module)
    torch.testing.assert_close(outcome.delta, after - x, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(outcome.buffers, after_buffers, rtol=1e-9, atol=1e-12)

    for told, sent, statistics in (
        (outcome.received_accuracy, x, buffers),
        (outcome.trained_accuracy, x + outcome.delta, outcome.buffers),
    ):
        outputs = model.outputs(sent, single.data.inputs[21:], statistics)
        assert told == pytest.approx(single.data.hits(outputs, single.data.targets[21:]).mean().item(), rel=1e-9)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("once", [True, False])
def test_cohort_equals_one_by_one_with_all_that_methods_ask_for(optimiser, once, monkeypatch):
    """Corrections, a newer model half-way, rates that differ between jobs, extra reports; also in several cohorts."""
    monkeypatch.setattr("asyncfl_lite.clients.trainer.LARGEST_COHORT", 4 if once else 100)
    training = LocalTraining(
        client_optimizer=optimiser, client_lr=0.02, batch_size=8, local_epochs=2, client_lr_decay=0.9, weight_decay=1e-3, correction_once=once,
        midway=0.5, reports=frozenset(ON_REQUEST),
    )  # fmt: skip
    model, trained = trainers(training, MLP(), SIZES)
    for trainer in trained:
        trainer.data = dataclasses.replace(trainer.data, num_classes=10)
    x, _ = model.flatten()
    generator = torch.Generator().manual_seed(1)
    jobs = []
    for version, client in enumerate((4, 1, 5, 0, 2, 3)):
        one = job(client, x)
        one.start_version = version
        one.correction = 0.05 * torch.randn(len(x), dtype=x.dtype, generator=generator)
        one.midway = None if client == 2 else Midway(x + 0.1 * version, 0.3)
        jobs.append(one)
    assert_alike(*trained, jobs)
    for outcome in trained[0](jobs):
        assert outcome.num_steps == 2 * -(-outcome.num_samples // 8)
        assert outcome.label_counts.sum() == outcome.num_samples
        assert (outcome.mean_gradient is None) == (optimiser == "sgd") and outcome.features is not None


PUSH, MERGED = {"correction": vector(3)}, {"midway": Midway(vector(10), 0.25)}
ENDS = [  # what clients train with, what their jobs bear, and where they end, by their rates
    ({"local_steps": 3}, {}, lambda lr: 0.5 + 1.5 * (1 - lr) ** 3),
    ({"local_steps": 1, "proximal": 0.1}, {}, lambda lr: 2 - 1.5 * lr),
    ({"local_steps": 2, "proximal": 0.1}, {}, lambda lr: 2 - 1.5 * lr - lr * (1.5 * (1 - lr) - 0.1 * 1.5 * lr)),
    ({"local_steps": 2}, PUSH, lambda lr: 2 - 4.5 * lr - lr * (4.5 - 4.5 * lr)),
    ({"local_steps": 2, "correction_once": True}, PUSH, lambda lr: 0.5 + 1.5 * (1 - lr) ** 2 - 3 * lr),
    ({"local_steps": 2}, MERGED, lambda lr: 0.5 + (1 - lr) * (0.75 * (0.5 + 1.5 * (1 - lr)) + 0.25 * 10 - 0.5)),
]


def on_a_quadratic(cohort, born=None, *, x=2.0, **settings):
    """What two clients report whose loss is ½ (x - .5)²; the first starts from version 1, the other from 0."""
    model = VectorModel(nn.Linear(1, 1, bias=False, dtype=torch.float64))
    trainer = Trainer(
        model, quadratic([0.5, 0.5]), LocalTraining(client_lr=0.1, batch_size=1, **settings), 0, cohort=cohort
    )
    start, jobs = vector(x), []
    for client in (0, 1):
        jobs.append(job(client, start))
        jobs[-1].start_version = 1 - client
        for name, value in (born or {}).items():
            setattr(jobs[-1], name, value)
    outcomes = trainer(jobs)
    assert start.item() == x
    return outcomes


@pytest.mark.parametrize("cohort", [True, False])
@pytest.mark.parametrize(("settings", "born", "end"), ENDS)
def test_clients_end_where_they_do_by_hand(cohort, settings, born, end):
    ends = [2 + outcome.delta.item() for outcome in on_a_quadratic(cohort, born, client_lr_decay=0.5, **settings)]
    assert ends == pytest.approx([end(0.05), end(0.1)], rel=1e-12)


@pytest.mark.parametrize("cohort", [True, False])
def test_reports_on_a_quadratic(cohort):
    """Adam's first step is its rate, .1, so gradients are 1.5 and 1.4; squared losses are of the last epoch."""
    for chosen, born, mean in (
        ({}, {}, 1.45), ({}, PUSH, 4.45), ({"correction_once": True}, PUSH, 2.95),
        ({"weight_decay": 0.5}, {}, 1.45),  # it is no part of the loss
    ):  # fmt: skip
        asked = {"client_optimizer": "adam", "local_steps": 2, "reports": frozenset({"mean_gradient"})}
        for outcome in on_a_quadratic(cohort, born, **asked, **chosen):
            assert outcome.mean_gradient.item() == pytest.approx(mean, rel=1e-7)
    for outcome in on_a_quadratic(cohort, local_epochs=2):
        assert outcome.train_loss == pytest.approx(0.5 * 1.35**2)
        assert outcome.mean_square_loss == pytest.approx((0.5 * 1.35**2) ** 2)


def test_a_jobs_augmentation_is_its_own():
    """The same as a cohort and one by one, whoever else trains; another job's is another."""

    def noisy(inputs, generator):
        return inputs + torch.randn(inputs.shape, generator=generator, dtype=inputs.dtype)

    model, trained = trainers(LocalTraining(client_lr=0.05, batch_size=8, local_epochs=2), MLP(), [3, 40, 17])
    x, _ = model.flatten()
    plain = trained[0]([job(1, x)])[0].delta
    for trainer in trained:
        trainer.data = dataclasses.replace(trainer.data, augment=noisy)
    together = trained[0]([job(client, x) for client in range(3)])
    for client, outcome in enumerate(together):
        (alone,) = trained[1]([job(client, x)])
        torch.testing.assert_close(outcome.delta, alone.delta, rtol=1e-7, atol=1e-10)
    assert not torch.allclose(together[1].delta, plain)
    assert not torch.allclose(trained[1]([job(1, x, number=1)])[0].delta, together[1].delta)


def chains() -> dict[str, nn.Module]:
    """Small models of every structure that is computed side by side."""
    return {
        "linear": nn.Sequential(nn.Flatten(), nn.Linear(64, 7), nn.Tanh(), nn.Linear(7, 10, bias=False)),
        "written out": nn.Sequential(
            nn.Flatten(), nn.Linear(64, 7), nn.ReLU(), nn.Linear(7, 6, bias=False), nn.Identity(), nn.Sigmoid(),
            nn.Linear(6, 10), nn.Tanh(),
        ),
        "images": nn.Sequential(
            nn.Conv2d(1, 4, 3, padding="same", bias=False), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3, stride=2, groups=2), nn.Identity(), nn.LeakyReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(6, 10),
        ),
        "images written out": nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, groups=2, bias=False),
            nn.ReLU(), nn.MaxPool2d((2, 1), padding=(1, 0)), nn.Tanh(), nn.Flatten(), nn.Linear(24, 10),
        ),
        "no parameters after": nn.Sequential(nn.Conv2d(1, 10, 8), nn.GroupNorm(1, 10, affine=False), nn.Flatten()),
    }  # fmt: skip


@pytest.mark.parametrize("name", chains())
def test_side_by_side_equals_vmap(name):
    model = VectorModel(chains()[name].double())
    assert chain_of(model) is not None
    generator = torch.Generator().manual_seed(0)
    x = model.flatten()[0] + 0.1 * torch.randn(3, model.num_parameters, generator=generator, dtype=torch.float64)
    inputs = torch.randn(3, 5, 1, 8, 8, generator=generator, dtype=torch.float64)
    weights = torch.randn(3, 5, 10, generator=generator, dtype=torch.float64)
    found = []
    for forward in (stacked_forward(model), vmap(model)):
        point = x.clone().requires_grad_()
        outputs = forward(point, inputs)
        found.append((outputs, *torch.autograd.grad((outputs * weights).sum(), point)))
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [12, 1])
@pytest.mark.parametrize("name", ["linear", "written out"])
def test_what_is_written_out_has_the_bits_of_autograd(name, size, monkeypatch):
    model = VectorModel(chains()[name])
    generator = torch.Generator().manual_seed(0)
    x = model.flatten()[0] + 0.1 * torch.randn(3, model.num_parameters, generator=generator)
    inputs, weights = (torch.randn(3, size, *shape, generator=generator) for shape in ((1, 8, 8), (10,)))
    found = []
    assert handwritten.shortcut(stacked_forward(model)) is not None
    for enabled in (True, False):
        monkeypatch.setattr(handwritten, "ENABLED", enabled)
        outputs, backward = with_backward(stacked_forward(model))(x, inputs)
        found.append((outputs, backward(weights)))
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True)) and not outputs.requires_grad


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.05])
@pytest.mark.parametrize("name", ["linear", "written out", "images written out"])
def test_fast_steps_are_the_plain_ones_up_to_rounding(name, weight_decay, alone, monkeypatch):
    """Rates that differ between models, a model that stops early, and one that merges another."""
    model, count = VectorModel(chains()[name].double()), 1 if alone else 3
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x = model.flatten()[0] + 0.1 * drawn(count, model.num_parameters)
    first, forward = x.clone(), Alone(model) if alone else stacked_forward(model)
    lr = 0.3 if alone else torch.tensor([[0.3], [0.01], [0.1]], dtype=torch.float64)
    fused = descending(forward, x, SGD(lr, weight_decay))
    monkeypatch.setattr(handwritten, "ENABLED", False)
    plain = descending(forward, x, SGD(lr, weight_decay))
    assert isinstance(fused, handwritten.Layers) and isinstance(plain, Rows)
    for rows in (count, count, max(1, count - 1)):
        inputs, gradient, other = drawn(rows, 5, 1, 8, 8), drawn(rows, 5, 10), drawn(model.num_parameters)
        outputs = []
        for models in (fused, plain):
            models.merge(0, other, 0.25)
            outputs.append(models.outputs(rows, inputs))
            models.step(gradient.clone())
        torch.testing.assert_close(*outputs, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(fused.x, plain.x, rtol=1e-11, atol=1e-12)
    assert torch.equal(x, first) and not torch.equal(plain.x, first)


@pytest.mark.parametrize(
    "extra",
    [
        {"client_optimizer": "adam"},
        {"proximal": 0.1},
        {"reports": frozenset({"mean_gradient"}), "client_optimizer": "adamw"},
    ],
)
def test_steps_along_anything_but_the_gradient_are_rows(extra):
    model, (cohort, _) = trainers(LocalTraining(batch_size=8, local_epochs=1, **extra), MLP(), [10] * 2)
    x, _ = model.flatten()
    works = [cohort.plan(job(client, x)) for client in range(2)]
    assert isinstance(Cohort(model, cohort.data, cohort.training, works).models, Rows)


RUN = {"clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 4, "eval_every": 4, "client_lr": 0.05}


@pytest.mark.parametrize("schedule", ["cosine", "step"])
def test_rates_are_those_of_torch_s_schedules(schedule):
    own, period = LocalTraining(client_lr=0.4, client_lr_schedule=schedule, client_lr_period=3), 3
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
    assert LocalTraining(client_lr=0.4, client_lr_decay=0.5, client_lr_schedule=schedule, client_lr_period=3).lr_at(
        2
    ) == pytest.approx(0.1)


def test_fedac_is_told_the_gradients_where_the_delta_no_longer_says_them():
    fedac, ends = {**RUN, "algorithm": "fedac", "server_lr": 0.01}, set()
    ways = [{}, {"client_lr_schedule": "step", "client_lr_period": 1}, {"client_momentum": 0.5}]
    for way in (*ways, {"client_optimizer": "adam", "client_lr": 0.002}):
        config = Config(**{**fedac, **way})
        assert config.make_training(config.make_algorithm()).means_gradients == bool(way)
        ends.add(run(config).summary["weights_sha256"])
    assert len(ends) == 4


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
    config = Config(**{**RUN, "concurrency": 6, "buffer_size": 1}, delay="bandwidth", delay_settings=law)
    updates = schedule(config.replace(rounds=6)).updates
    first = updates[updates["dispatched_at"] == 0].groupby("client")["arrived_at"].first()
    expected = [1 + 4 + 1, 2 + 4 + 3, 1 + 4 + 0, 2 + 4 + 1, 1 + 4 + 3, 2 + 4 + 0]
    assert config.delay_settings.unit == "s" and all(first[client] == expected[client] for client in first.index)
