"""FedEcho: numbers worked out by hand, identities and switches."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asyncfl_lite import Config
from asyncfl_lite.algorithms import make_algorithm
from asyncfl_lite.algorithms.base import ServerContext
from asyncfl_lite.algorithms.losses import (
    entropy,
    kl_divergence,
    mean_teacher,
    uncertainty_aware_loss,
    uncertainty_weight,
)
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.compute import fulfilled_now
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.runs.run import Run
from conftest import linear_model, update, vector

TEACHERS = torch.tensor([[[2.0, 0.0, -1.0]], [[0.0, 1.0, 0.0]]], dtype=torch.float64)
STUDENT = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
exactly = {"rtol": 1e-7, "atol": 0}


def test_worked_loss():
    teacher = mean_teacher(TEACHERS)
    torch.testing.assert_close(teacher, vector(0.5465493873, 0.3314989604, 0.1219516523)[None], **exactly)
    assert entropy(teacher).item() == pytest.approx(0.9528075640, rel=1e-7)
    weight = uncertainty_weight(teacher, 0.2, 0.8)
    assert weight.item() == pytest.approx(0.7203696921, rel=1e-7)
    assert kl_divergence(teacher, STUDENT).item() == pytest.approx(0.4766854976, rel=1e-7)
    student = STUDENT.clone().requires_grad_()
    loss = uncertainty_aware_loss(student, teacher, weight)
    assert loss.item() == pytest.approx(0.7772207482, rel=1e-7)
    loss.backward()
    torch.testing.assert_close(student.grad, vector(-0.4614063641, -0.0268602464, 0.4882666105)[None], **exactly)


def test_worked_mean_of_probabilities():
    teacher = mean_teacher(TEACHERS, "probs")
    torch.testing.assert_close(teacher, vector(0.527868146, 0.3451560421, 0.1269758119)[None], rtol=1e-7, atol=1e-9)


def echo(context, **settings):
    """A FedEcho server whose model is linear in one unlabelled input (1, 2), with both teachers stored."""
    model = linear_model(2, 3)
    method = make_algorithm("fedecho", distill_unit="steps", distill_q=1, **settings)
    unlabelled = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    method.start(torch.zeros(6, dtype=torch.float64), context(model, unlabelled))
    method.logits = {0: TEACHERS[0], 1: TEACHERS[1]}
    return method


@pytest.mark.parametrize(
    ("clip", "expected"),
    [
        (5.0, (0.0340014588, 0.0680029177, -0.0094531529, -0.0189063059, -0.0245483059, -0.0490966118)),
        (None, (0.0340014588, 0.0680029177, -0.0094531529, -0.0189063059, -0.0245483059, -0.0490966118)),
        (0.5, (0.0176856936, 0.0353713871, -0.0049170116, -0.0098340231, -0.012768682, -0.025537364)),
    ],
)
def test_worked_server_step(context, clip, expected):
    method = echo(context, distill_opt="sgd", distill_lr=0.1, clip=clip)
    x = method.after_step(method.x)
    torch.testing.assert_close(x, vector(*expected), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize(
    ("deltas", "start", "stored"),
    [((1.0, 2.0, 3.0), 0.0, {4: 9.0}), ((0.5,), 1.0, {4: 4.5}), ((math.nan,), 0.0, {})],
    ids=["often, counted once", "the client's model, not the server's", "refused"],
)
def test_what_is_stored(context, deltas, start, stored):
    method = echo(context, distill_lr=0.0)
    method.buffer_size, method.logits = 100, {}
    for delta in deltas:
        method.receive(update([delta] * 6, client=4, start=torch.full((6,), start, dtype=torch.float64)))
    method.infer()
    assert {client: logits.tolist() for client, logits in method.logits.items()} == {
        client: [[pytest.approx(value)] * 3] for client, value in stored.items()
    }


@pytest.mark.parametrize("how", ["logits", "probs"])
@pytest.mark.parametrize("size", [1e20, 1e308])
def test_the_teacher_heals_once_a_client_that_overflowed_reports_again(context, how, size):
    """Neither what is not finite nor what a huge number rounds away is left in the teacher."""
    method, untouched = (echo(context, distill_lr=0.0, teacher_avg=how) for _ in range(2))
    for server in (method, untouched):
        server.buffer_size = 100
        server.receive(update([0.3, 0.1, 0.2, 0.5, 0.4, 0.7], client=1))
    method.receive(update([size] * 6, client=4))
    method.infer()
    for server in (method, untouched):
        server.receive(update([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], client=4))
        server.infer()
    assert torch.equal(method._teacher(), untouched._teacher())


def test_predictions_that_are_not_finite_teach_nobody(context):
    method = echo(context, distill_lr=0.1, alpha_min=1, alpha_max=1)
    method.receive(update([1e308] * 6, client=1, start=torch.zeros(6, dtype=torch.float64)))
    assert list(method.logits) == [0]
    assert torch.equal(method._teacher(), TEACHERS[0].softmax(-1))
    alone = echo(context, distill_lr=0.1)
    alone.logits = {}
    assert alone.receive(update([1e308] * 6, client=1))
    assert not alone.logits and torch.equal(alone.x, torch.full((6,), 1e308, dtype=torch.float64))


@given(st.lists(st.integers(0, 3), min_size=2, max_size=9), st.integers(1, 4), st.randoms())
def test_of_sequences_only_the_predictions_are_stored_and_distilled(counts, batch_size, chance):
    """What FedEcho learns from them is what it would learn from the logits at all positions."""
    counts[chance.randrange(len(counts))] += 1
    tokens = torch.tensor([[1 + chance.randrange(4) if index < count else 0 for index in range(4)] for count in counts])
    model, rng = VectorModel(torch.nn.Embedding(5, 3, dtype=torch.float64)), torch.manual_seed(chance.randrange(1000))
    context = ServerContext(model, 4, np.random.default_rng(0), lambda name, count: tokens)
    context.predictions = lambda outputs, inputs: outputs[inputs != 0]
    context.prediction_counts = lambda inputs: (inputs != 0).sum(-1)
    method = make_algorithm("fedecho", distill_lr=0.0, distill_batch_size=batch_size)
    method.buffer_size = 100
    method.start(torch.zeros(15, dtype=torch.float64), context)
    deltas = torch.randn(2, 15, dtype=torch.float64, generator=rng)
    for client, delta in enumerate(deltas):
        method.receive(update(delta.tolist(), client=client))
    method.infer()
    everything = torch.stack([model.outputs(delta, tokens) for delta in deltas])
    assert all(torch.equal(method.logits[client], everything[client][tokens != 0]) for client in (0, 1))
    batch = torch.tensor(chance.sample(range(len(counts)), chance.randint(1, len(counts))))
    wanted = mean_teacher(everything)[batch][tokens[batch] != 0]
    torch.testing.assert_close(method._teacher()[method.unlabelled.rows_of(batch)], wanted, rtol=1e-12, atol=0)
    context.prediction_counts = lambda inputs: torch.ones(len(inputs), dtype=torch.int64) + 4
    method.start(method.x, context)
    method.receive(update([0.0] * 15, client=0))
    with pytest.raises(ConfigError, match="^prediction_counts: must count the rows of predictions"):
        method.flush()


def test_weight_of_a_uniform_and_of_a_certain_teacher():
    uniform = torch.full((1, 4), 0.25, dtype=torch.float64)
    certain = torch.eye(4, dtype=torch.float64)[:1]
    assert uncertainty_weight(uniform, 0.2, 0.8).item() == pytest.approx(0.8)
    assert uncertainty_weight(certain, 0.2, 0.8).item() == pytest.approx(0.2)
    flatter = [uncertainty_weight((vector(3, 1, 0) / t).softmax(-1)[None], 0.2, 0.8).item() for t in (0.5, 1, 2, 9)]
    assert flatter == sorted(flatter)


def test_distillation_leaves_running_statistics_alone():
    small = {"clients": 8, "concurrency": 4, "buffer_size": 2, "rounds": 2, "local_steps": 4}
    echo = {"algorithm": "fedecho", "settings": {"distill_lr": 1e-3, "distill_samples": 60}}
    run = Run(Config(**small, **echo, model="cnn", model_settings={"norm": "batch"}))
    run.finish()
    server, before = run.algorithm, run.algorithm.buffers.clone()
    assert not torch.equal(server.after_step(server.x), server.x)
    assert torch.equal(server.buffers, before)


def test_passes_and_steps_count_as_asked(context):
    model, inputs, taken = linear_model(2, 3), torch.randn(23, 2, dtype=torch.float64), []
    for unit, q, expected in (("epochs", 2, [10, 10, 3, 10, 10, 3]), ("steps", 4, [10, 10, 3, 10])):
        method = make_algorithm("fedecho", distill_unit=unit, distill_q=q, distill_batch_size=10)
        server = context(model, inputs)
        server.compute = lambda request: taken.append(request) or fulfilled_now(request)
        method.start(torch.zeros(6, dtype=torch.float64), server)
        method.logits = {0: torch.zeros(23, 3, dtype=torch.float64)}
        method.after_step(method.x)
        batches = taken[-1].batches
        assert batches.sizes == expected and len(batches.indices) == sum(expected)
        assert sorted(batches.indices[:23].tolist()) == list(range(23))
