"""FedAvgM, FedAdam and FedProx: numbers worked out by hand, and identities."""

from __future__ import annotations

import pytest
import torch

from asyncfl_lite import Config
from asyncfl_lite.clients.cohorts import ClientData, LocalTraining
from asyncfl_lite.clients.trainer import Trainer
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.jobs import Job
from conftest import started, update, vector

exactly = {"rtol": 1e-7, "atol": 0}


def test_fedavgm_worked_path():
    """Rounds whose FedAvg results are (.5, .5) and (0, 1)."""
    method = started("fedavgm", buffer_size=1)
    for mean, velocity, x in (((0.5, 0.5), (-0.5, 0.5), (0.5, 0.5)), ((0, 1), (-0.95, 0.95), (-0.45, 1.45))):
        method.receive(update((vector(*mean) - method.x).tolist(), method.version))
        torch.testing.assert_close(method.velocity, vector(*velocity), **exactly)
        torch.testing.assert_close(method.x, vector(*x), **exactly)


def test_fedadam_worked_path():
    method = started("fedadam", buffer_size=1, server_lr=0.1)
    for delta, x in (((-0.5, 0.5), (0.9019607843, 0.0980392157)), ((-0.2, 0.1), (0.7829546354, 0.2043307922))):
        method.receive(update(delta, method.version))
        torch.testing.assert_close(method.x, vector(*x), rtol=1e-7, atol=1e-10)


def test_without_momentum_fedavgm_is_fedavg():
    methods = [
        started("fedavgm", fedavgm_beta=0.0, server_lr=1.4, buffer_size=2),
        started("fedavg", server_lr=1.4, buffer_size=2),
    ]
    for _ in range(3):
        for method in methods:
            method.receive(update((0.3, -0.1), method.version, num_samples=3))
            method.receive(update((-0.2, 0.4), method.version, num_samples=9))
    assert torch.equal(methods[0].x, methods[1].x)


def test_fedprox_worked_steps():
    """F = ½‖w - (3, 1)‖² from x = (1, 0), η_l = .5, μ = .1: (2, .5), then (2.45, .725)."""
    model = VectorModel(Quadratic())
    target = torch.tensor([[3.0, 1.0]], dtype=torch.float64)
    data = ClientData(
        torch.zeros(1, 1), target, [torch.zeros(1, dtype=torch.int64).numpy()], losses, lambda o, t: o.sum(-1) * 0
    )
    for steps, expected in ((1, (2, 0.5)), (2, (2.45, 0.725))):
        for cohort in (False, True):
            training = LocalTraining(lr=0.5, batch_size=1, steps=steps, proximal=0.1)
            trainer = Trainer(model, data, training, seed=0, cohort=cohort)
            job = Job(1.0, 0, 0, 0, 0, 0.0, vector(1, 0))
            (outcome,) = trainer([job])
            torch.testing.assert_close(job.start + outcome.delta, vector(*expected), **exactly)


class Quadratic(torch.nn.Module):
    """A model whose output is its two weights."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(vector(1, 0))

    def forward(self, inputs):
        return self.w.expand(len(inputs), 2)


def losses(outputs, targets):
    return 0.5 * (outputs - targets).square().sum(-1)


@pytest.mark.parametrize("equal", [{"mu": 0.0}, {"mu": 0.5}])
def test_fedprox_without_its_term_is_fedavg(equal):
    base = {"task": "digits", "clients": 6, "concurrency": 3, "rounds": 3, "eval_every": 3}
    prox = Run(Config(algorithm="fedprox", settings=equal, client_lr=0.1, **base)).finish()
    plain = Run(Config(algorithm="fedavg", client_lr=0.1, **base)).finish()
    same = prox.summary["weights_sha256"] == plain.summary["weights_sha256"]
    assert same == (equal["mu"] == 0)
