"""FedADT: numbers worked out by hand, identities and traps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from asyncfl_lite import Config
from asyncfl_lite.algorithms import FedAsync, ServerContext, make_algorithm
from asyncfl_lite.algorithms.losses import labelled_distillation_loss
from asyncfl_lite.runs.assembly import deal_out, load_task, servers_own
from asyncfl_lite.runs.run import Run
from conftest import linear_model, started, update, vector

exactly = {"rtol": 1e-7, "atol": 0}
TEACHER, STUDENT, LABEL = vector(2, 0, -1)[None], vector(0, 1, 0)[None], torch.tensor([0])


def test_worked_loss_and_gradient():
    method = make_algorithm("fedadt")
    weight = method.kl_weight(250)
    assert weight == pytest.approx(0.3, rel=1e-7)
    student = STUDENT.clone().requires_grad_()
    loss = labelled_distillation_loss(student, TEACHER, LABEL, weight, temperature=3.0)
    assert loss.item() == pytest.approx(1.1226326725, rel=1e-7)
    loss.backward()
    torch.testing.assert_close(student.grad, vector(-0.5753459717, 0.4170916822, 0.1582542895)[None], **exactly)


@pytest.mark.parametrize(
    ("options", "kl"), [({"temperature": 3.0}, 0.1220712424), ({"temperature": 1.0}, 0.9129828978)]
)
def test_worked_divergences(options, kl):
    assert labelled_distillation_loss(STUDENT, TEACHER, LABEL, 1.0, **options).item() == pytest.approx(kl, rel=1e-7)
    hard = labelled_distillation_loss(STUDENT, TEACHER, LABEL, 0.0, **options)
    assert hard.item() == pytest.approx(1.5514447139, rel=1e-7)


def test_weight_grows_to_its_maximum_and_stays():
    method = make_algorithm("fedadt")
    assert [method.kl_weight(t) for t in (0, 500, 1000, 9000)] == pytest.approx([0.2, 0.4, 0.6, 0.6])


def distilling(**settings):
    """FedADT over a linear model with three labelled inputs."""
    inputs = torch.tensor([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]], dtype=torch.float64)
    context = ServerContext(linear_model(2, 3), 4, np.random.default_rng(0), lambda n, c: inputs, (inputs, torch.tensor([0, 2, 1])))  # fmt: skip
    method = started("fedadt", (0.1, 0.2, 0, -0.1, -0.2, 0.3), context, **settings)
    method.version = 4
    return method


def test_the_teacher_is_not_touched_and_fresh_models_are_not_distilled():
    method = distilling(kd_lr=0.5)
    teacher = method.x.clone()
    method.distilled(torch.ones(6, dtype=torch.float64), None)
    assert torch.equal(method.x, teacher)
    for stale, moved in ((0, False), (1, False), (2, True)):
        sent = update([0.5] * 6, 4 - stale, start=torch.zeros(6, dtype=torch.float64))
        model = method.client_model(dataclasses.replace(sent, staleness=stale))
        assert torch.equal(model, sent.delta) != moved


SMALL = {
    "task": "digits", "clients": 8, "concurrency": 4, "horizon": 8.0, "local_steps": 4, "eval_every": 50, "client_lr": 0.1
}  # fmt: skip


def final(algorithm="fedadt", **settings):
    run = Run(Config(algorithm=algorithm, settings=settings, **SMALL))
    return run.finish(), run


@pytest.mark.parametrize("off", [{"kd_lr": 0.0}, {"tau_kd": 1000}])
def test_without_distillation_it_is_fedasync_bit_for_bit(off, monkeypatch):
    """On the same clients' data: FedAsync's own run would deal out the samples that FedADT's server keeps."""
    ours, run = final(**off)
    monkeypatch.setattr(FedAsync, "held_out", run.algorithm.held_out)
    same = {"settings": {"mixing": 1.0, "poly_a": 0.5}, "client_lr_decay": 0.9999}
    theirs = Run(Config(algorithm="fedasync", **same, **SMALL)).finish()
    assert ours.summary["weights_sha256"] == theirs.summary["weights_sha256"]
    on, _ = final()
    assert on.summary["weights_sha256"] != ours.summary["weights_sha256"]


def test_no_client_has_a_sample_of_the_servers():
    config = Config(algorithm="fedadt", settings={"kd_fraction": 0.1}, **SMALL)
    task = load_task(config.task_settings)
    kept, parts = servers_own(config, task), deal_out(config, task)
    assert len(kept) == round(0.1 * len(task.labels))
    assert sorted(np.concatenate([kept, *parts])) == list(range(len(task.labels)))


def test_its_rate_follows_the_clients():
    config = Config(algorithm="fedadt", client_lr_decay=0.99, **SMALL)
    method = Run(config).algorithm
    method.version = 10
    assert method.distill_lr == pytest.approx(0.1 * 0.99**10)
