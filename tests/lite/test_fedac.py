"""FedAC: its weights and control variates."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asyncfl_lite import Config
from asyncfl_lite.algorithms import FedAC, ServerContext
from asyncfl_lite.runs.run import Run
from conftest import update, vector

exactly = {"rtol": 1e-7, "atol": 0}


def started(x0=(1.0, 0.0), lr=0.5, **settings):
    method = FedAC(**settings)
    context = ServerContext(None, 4, np.random.default_rng(0), lambda name, count: None, client_lr=lambda version: lr)
    method.start(vector(*x0), context)
    return method


def test_worked_control_variate():
    """From (1, 0) to (1.6, .4) in two steps of .5, no controls before: Ĉ = (-.6, -.4)."""
    method = started()
    method.receive(update((0.6, 0.4), client=3, num_steps=2, correction=vector(0, 0)))
    torch.testing.assert_close(method.controls[3], vector(-0.6, -0.4), **exactly)
    torch.testing.assert_close(method.control, vector(-0.6, -0.4), **exactly)
    torch.testing.assert_close(method.correction_for(3, method.control_sent()), vector(0, 0))
    torch.testing.assert_close(method.correction_for(0, method.control_sent()), vector(-0.6, -0.4))


def test_a_client_that_repeats_its_gradient_keeps_its_control():
    """What it bore as correction is taken out again: the same gradients give the same Ĉ."""
    method = started(lr=0.5)
    gradient, num_steps = vector(1.0, -2.0), 3
    for version in range(4):
        correction = method.correction_for(1, method.control_sent())
        delta = -0.5 * num_steps * (gradient + correction)
        method.receive(update(delta.tolist(), version, client=1, num_steps=num_steps, correction=correction))
        torch.testing.assert_close(method.controls[1], gradient)


def test_a_reported_mean_gradient_is_what_plain_sgd_says_by_its_delta():
    told, reckoned = started(lr=0.5), started(lr=0.5)
    correction, mean_gradient = vector(0.2, -0.1), vector(1.0, -2.0)
    sent = update((-0.5 * 3 * mean_gradient).tolist(), client=1, num_steps=3, correction=correction)
    reckoned.receive(sent)
    told.receive(dataclasses.replace(sent, delta=vector(9, 9), mean_gradient=mean_gradient))
    torch.testing.assert_close(told.controls[1], reckoned.controls[1], rtol=1e-12, atol=0)
    torch.testing.assert_close(told.controls[1], mean_gradient - correction, rtol=1e-12, atol=0)


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=5))
def test_weights_are_floored_and_make_a_convex_mean(deltas):
    method = started(buffer_size=len(deltas), correction="off", beta1=0.0)
    method.new_version(vector(1.5, 0.5))
    agreements = [method.agreement(update(delta, 0)) for delta in deltas]
    assert all(0.1 <= value <= 1 + 1e-9 for value in agreements)
    for delta in deltas:
        method.receive(update(delta, 0))
    lowest, highest = vector(*np.min(deltas, 0)), vector(*np.max(deltas, 0))
    assert (method.mean >= lowest - 1e-9).all() and (method.mean <= highest + 1e-9).all()


SMALL = {"task": "digits", "clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 5, "local_steps": 3, "eval_every": 5, "client_lr": 0.1, "server_lr": 0.01}  # fmt: skip


def test_the_servers_control_is_the_sum_of_the_clients():
    """C grows by Σ w_i dC_i; with one entry a version that is the sum of all C_i."""
    run = Run(Config(algorithm="fedac", **{**SMALL, "buffer_size": 1, "rounds": 12}))
    run.finish()
    method = run.algorithm
    assert len(method.controls) >= 4 and method.control.abs().max() > 0
    torch.testing.assert_close(method.control, sum(method.controls.values()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
@pytest.mark.parametrize("cohort", ["on", "off"])
def test_a_control_variate_is_as_long_as_a_gradient_whatever_the_optimiser(optimiser, cohort):
    """Adam's steps are normalised: taken for gradients, they would be some 20 times as long."""
    config = Config(algorithm="fedac", vectorize=cohort, **{**SMALL, "client_optimizer": optimiser, "client_lr": 0.002})
    run = Run(config)
    model, data = run.trainer.model, run.trainer.data
    run.finish()
    lengths = []
    for client, control in run.algorithm.controls.items():
        places = torch.from_numpy(data.parts[client])
        inputs, targets = data.inputs[places], data.targets[places]
        _, gradient = model.gradient(run.algorithm.x, inputs, lambda outputs, y=targets: data.losses(outputs, y).mean())
        lengths.append(float(control.norm() / gradient.norm()))
    assert 0.05 < np.median(lengths) < 2


@pytest.mark.parametrize("how", ["before_agg", "after_agg"])
def test_a_client_that_is_dispatched_on_its_own_report_goes_by_its_new_control(how, monkeypatch):
    run = Run(Config(algorithm="fedac", scheduling=how, selection="same_client", **SMALL))
    method, simulation, checked = run.algorithm, run.simulation, []
    jobs_to_train = simulation._next_jobs

    def look():
        jobs = jobs_to_train()
        for job in jobs:
            own = method.controls.get(job.client, torch.zeros_like(method.x))
            assert torch.equal(job.correction, job.control - own)
            checked.append(bool(own.any()))
        return jobs

    monkeypatch.setattr(simulation, "_next_jobs", look)
    run.finish()
    assert sum(checked) >= 5  # clients came back, each with what its last report had left it
