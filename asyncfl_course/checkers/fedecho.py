"""Checkers for lesson 07: the teachers in FedEcho, its mixing weight, and one version of its server."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_course.exercises import exercise
from asyncfl_course.expectations import call, expect, expect_close, shown
from asyncfl_lite.algorithms import ServerContext, make_algorithm
from asyncfl_lite.algorithms.losses import uncertainty_weight
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.simulator.jobs import Update


@exercise("07.1", "Who has how much say?")
def say(answer: Any) -> str:
    """Check that each client has the same weight, however often and in whatever order it reported."""
    for reports in ([3, 3, 5], [7], [0, 1, 0, 2, 0, 0, 0, 4], [4, 0, 0, 0, 0, 0, 0, 0, 0, 0]):
        given = call(answer, reports)
        expect(isinstance(given, dict), f"say({reports}) gives {shown(given)}, not a dictionary from client to weight.")
        heard = set(reports)
        expect(
            set(given) == heard, f"say({reports}) gives {shown(given)}. Each client that reported is in the store once."
        )
        for client in sorted(heard):
            because = "a new report replaces the client's old one"
            weight = f"The weight of client {client} after {reports}"
            expect_close(given[client], None, 1 / len(heard), because=because, called=weight, of=(reports, client))
    return "The store keeps one row per client, so it counts clients and not reports."


@exercise("07.2", "The mixing weight")
def weight(answer: Any) -> str:
    """Check the mixing weight for certain, uniform and tied teachers, for a batch of two, and for other bounds of α."""
    cases = [
        ([[0.6, 0.3, 0.1]], 0.2, 0.8, "use natural logarithms, and divide the entropy by log C"),
        ([[0.25, 0.25, 0.25, 0.25]], 0.2, 0.8, "equal probabilities have the largest entropy, so the weight is high"),
        ([[1.0, 0.0, 0.0]], 0.2, 0.8, "a teacher that is certain has entropy 0, and 0 log 0 counts as 0"),
        ([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]], 0.0, 1.0, "the batch has one weight, from the mean over rows"),
    ]
    for rows, low, high, because in cases:
        p = torch.tensor(rows, dtype=torch.float64)
        expect_close(answer, (p, low, high), uncertainty_weight(p, low, high), because=because)
    return "The less sure the teacher is, the more its soft targets count."


@exercise("07.3", "One version of FedEcho")
def version(answer: Any) -> str:
    """Compare the answer with the package's FedEcho server over three versions, with stale and repeated reports."""
    classes, width, samples, lr = 3, 2, 7, 0.5
    inputs = torch.randn(samples, width, dtype=torch.float64, generator=torch.manual_seed(0))
    deltas = torch.randn(6, classes, width, dtype=torch.float64, generator=torch.manual_seed(1))
    server = _server(inputs, classes, lr)
    past = [torch.zeros(classes, width, dtype=torch.float64)]
    turns = [  # (client, the version that it began with) twice, and a hint
        ([(0, 0), (1, 0)], "the student is the model after the mean delta, and the gradient is a mean over inputs"),
        ([(2, 0), (0, 1)], "client 2 began at an older version, and client 1 teaches although it is not in the buffer"),
        ([(1, 1), (1, 2)], "client 1 reports twice, both deltas count, and only its latest predictions are stored"),
    ]
    for number, (reports, because) in enumerate(turns):
        store = {client: logits.clone() for client, logits in server.logits.items()}
        own = deltas[2 * number : 2 * number + 2]
        buffer = [(client, past[start], delta) for (client, start), delta in zip(reports, own, strict=True)]
        for (client, start), delta in zip(reports, own, strict=True):
            server.receive(Update(client=client, delta=delta.flatten(), start_version=start))
        known = dict(store)
        given = call(answer, past[-1].clone(), buffer, store, inputs, lr)
        wanted = server.x.view(classes, width).clone()
        expect_close(given, None, wanted, called=f"Version {number + 1}, after reports {reports},", because=because,
                     of=(past[-1], buffer, known, inputs, lr))  # fmt: skip
        past.append(wanted)
    return "First store, then add, then distil: the student is the model after the mean update."


def _server(inputs: Tensor, classes: int, lr: float) -> Any:
    """Return a FedEcho server for a linear model; after every two reports it takes one SGD step on all inputs."""
    model = VectorModel(torch.nn.Linear(inputs.shape[1], classes, bias=False, dtype=inputs.dtype))
    settings = {"distill_opt": "sgd", "distill_lr": lr, "distill_unit": "steps", "distill_q": 1, "clip": None}
    server = make_algorithm("fedecho", buffer_size=2, distill_batch_size=len(inputs), **settings)
    zero = torch.zeros(classes * inputs.shape[1], dtype=inputs.dtype)
    server.start(zero, ServerContext(model, 3, np.random.default_rng(0), lambda name, count: inputs))
    return server
