"""Servers that distil a network with BatchNorm: which model teaches, which learns, and by whose running statistics.

What is expected comes from plain modules, each loaded with its parameters and its statistics, and torch's optimisers.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from asyncfl_lite.algorithms import FedRevive, ServerContext, make_algorithm
from asyncfl_lite.algorithms.losses import labelled_distillation_loss, uncertainty_aware_loss, uncertainty_weight
from asyncfl_lite.algorithms.synthesis import Synthesis, _losses
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.compute import Answers, fulfilled_now
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.simulator.jobs import Update

exactly = {"rtol": 1e-9, "atol": 1e-12}
POINTS = torch.randn(12, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
LABELS = torch.arange(12) % 3


MODEL = VectorModel(nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 3)).double())
D, B = MODEL.num_parameters, MODEL.num_buffers


def numbers(seed: int, size: int) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def statistics(mean: float, variance: float) -> torch.Tensor:
    return torch.tensor([mean, mean, variance, variance], dtype=torch.float64)


SERVERS = statistics(0.0, 1.0)
CLIENTS = statistics(3.0, 0.2)
"""Running statistics: with the other's, a model predicts something else."""


def started(name: str, requests: list | None = None, model: VectorModel = MODEL, **settings):
    """A server of ``model`` in the middle of a run; ``requests`` is filled with what it asks for."""

    def compute(request):
        if requests is not None:
            requests.append(request)
        return fulfilled_now(request)

    more = {"inputs": InputSpec((2,), 3, -1.0, 1.0), "compute": compute}
    context = ServerContext(
        model, 4, np.random.default_rng(0), lambda set_name, count: POINTS, (POINTS, LABELS), **more
    )
    method = make_algorithm(name, **settings)
    buffers = SERVERS if model.num_buffers else None
    method.start(numbers(0, model.num_parameters), context, buffers=buffers, variance_mask=model.variance_mask)
    return method


def sent(seed: int, client: int = 0, **more) -> Update:
    return Update(client=client, delta=numbers(seed, D), start_version=0, start=numbers(9, D), buffers=CLIENTS, **more)


def module(x: torch.Tensor, buffers: torch.Tensor) -> nn.Module:
    """A plain module with these parameters and statistics, in evaluation mode."""
    return MODEL.loaded(x, buffers)


def test_fedecho_stores_what_a_client_s_model_predicts_by_the_client_s_statistics():
    method = started("fedecho", buffer_size=3, distill_lr=0.0)
    update = sent(1)
    method.receive(update)
    method.infer()
    x = update.start + update.delta
    torch.testing.assert_close(method.logits[0], module(x, CLIENTS)(POINTS).detach(), **exactly)
    assert not torch.allclose(method.logits[0], module(x, SERVERS)(POINTS), atol=0.5)


def test_adams_state_of_fedecho_is_made_anew():
    """Two distillations of three steps on the whole set, beside torch's own Adam on a plain module."""
    settings = {"distill_unit": "steps", "distill_q": 3, "distill_lr": 0.05, "distill_batch_size": 12}
    method = started("fedecho", server_lr=0.0, clip=None, **settings)
    student = module(method.x, SERVERS)
    for number in (1, 2):
        update = sent(number)
        method.receive(dataclasses.replace(update, start_version=method.version, buffers=SERVERS))
        teacher = module(update.start + update.delta, SERVERS)(POINTS).detach().softmax(-1)
        adam = torch.optim.Adam(student.parameters(), lr=0.05)
        for _ in range(3):
            adam.zero_grad()
            uncertainty_aware_loss(student(POINTS), teacher, uncertainty_weight(teacher, 0.2, 0.8)).backward()
            adam.step()
        torch.testing.assert_close(method.x, MODEL.flatten(student)[0], **exactly)


def test_fedadt_distils_a_client_s_model_by_its_own_statistics_from_the_server_s_by_the_server_s():
    method = started("fedadt", kd_lr=0.1, kd_batch_size=12)
    method.version = 4
    update, teacher = sent(1), module(method.x, SERVERS)(POINTS).detach()
    student = module(update.start + update.delta, CLIENTS)
    labelled_distillation_loss(student(POINTS), teacher, LABELS, method.kl_weight(4), temperature=3.0).backward()
    torch.optim.SGD(student.parameters(), lr=0.1).step()
    weight, before = 5**-0.5, method.x
    method.receive(update)
    torch.testing.assert_close(method.x, (1 - weight) * before + weight * MODEL.flatten(student)[0], **exactly)
    torch.testing.assert_close(method.buffers, (1 - weight) * SERVERS + weight * CLIENTS, **exactly)


MAKES = {"freeze_rounds": 0, "nz": 2, "ngf": 2, "k_synth": 1}


@pytest.fixture(autouse=True)
def every_update(monkeypatch):
    """A synthesis at every update; minibatches of 6 would be computed one server after another, for the same bits."""
    monkeypatch.setattr(FedRevive, "t_gen", 1)
    monkeypatch.setattr(FedRevive, "synth_batch_size", 8)


def synthesis(**settings) -> tuple[Synthesis, object]:
    """What FedRevive asks for at its third update, all from different clients, and the server then."""
    requests: list = []
    method = started("fedrevive", requests, server_lr=0.1, **MAKES, **settings)
    for number in (1, 2, 3):
        before = method.x, method.buffers
        method.receive(sent(number, client=number))
    return [one for one in requests if isinstance(one, Synthesis)][-1], before


def test_the_synthesis_asks_the_latest_client_models_and_the_global_one():
    """Each goes by its own statistics, and is compared with its own features."""
    request, (x, buffers) = synthesis()
    expected = [sent(number).start + sent(number).delta for number in (1, 2, 3)] + [x]
    assert all(map(torch.equal, request.xs, expected)) and len(request.xs) == 4
    assert [torch.equal(given, CLIENTS) for given in request.buffers] == [True, True, True, False]
    assert torch.equal(request.buffers[-1], buffers) and not torch.equal(buffers, SERVERS)
    assert all(torch.equal(stored, CLIENTS.view(2, 2)) for stored in request.stored)


def test_teachers_and_student_of_several_servers_answer_side_by_side_as_by_themselves():
    """A chain of layers without statistics, which is computed otherwise."""
    chain = VectorModel(nn.Sequential(nn.Flatten(), nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3)).double())
    requests: list = []
    settings = {**MAKES, "alpha_feat": 0.5}
    for server in (0, 1):
        method = started("fedrevive", requests, chain, server_lr=0.1, num_teachers=2, adversarial_from=1, **settings)
        for number in (1, 2):
            delta = numbers(10 * server + number, chain.num_parameters)
            known = {"start": method.x, "features": numbers(3, 8).view(2, 4)}
            method.receive(Update(client=number, delta=delta, start_version=0, **known))
    made = [one for one in requests if isinstance(one, Synthesis) and len(one.xs) == 3]
    inputs = numbers(5, 2 * 8 * 2).view(2, 8, 2)
    alone = torch.stack([one._loss(own) for one, own in zip(made, inputs, strict=True)])
    torch.testing.assert_close(_losses(made, inputs), alone, **exactly)
    assert len(made) == 2 and made[0].shared == made[1].shared is not None


@pytest.mark.parametrize("name", ["fedrevive", "dd_fedrevive"])
def test_teachers_of_a_distillation_go_by_their_own_statistics(name):
    requests: list = []
    settings = {**MAKES, "synthesis_only_rounds": 0} if name == "fedrevive" else {}
    method = started(name, requests, server_lr=0.1, k_kd=1, beta_family="constant", **settings)
    for number in (1, 2, 3):
        method.receive(sent(number, client=number, label_counts=torch.tensor([4, 4, 4])))
    asked = [one for one in requests if isinstance(one, Answers)][-1]
    assert all(map(torch.equal, asked.xs, [sent(number).start + sent(number).delta for number in (1, 2, 3)]))
    assert all(torch.equal(given, CLIENTS) for given in asked.buffers)
    expected = [module(x, CLIENTS)(inputs) for x, inputs in zip(asked.xs, asked.inputs, strict=True)]
    torch.testing.assert_close(torch.stack(fulfilled_now(asked)), torch.stack(expected).detach(), **exactly)
