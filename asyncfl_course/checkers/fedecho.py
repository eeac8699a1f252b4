"""Checkers for lesson 07: the teachers in FedEcho, its mixing weight, and one version of its server."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import call, expect, expect_close, shown
from asyncfl_lite.algorithms import ServerContext, make_algorithm
from asyncfl_lite.algorithms.losses import uncertainty_weight
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.simulator.jobs import Update


@exercise(
    "07.1", "Who has how much say?",
    mistakes={  # one client's weight
        "You weigh by the number of reports, as a buffer does; the store keeps one set of predictions per client.":
            lambda reports, client: reports.count(client) / len(reports),
    },
)  # fmt: skip
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


def _certainty(p: Tensor) -> Tensor:
    return -torch.xlogy(p, p).sum(-1) / math.log(p.shape[-1])


def _rows(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


asks_for(
    "07.2", "The mixing weight", uncertainty_weight,
    cases=[
        ((_rows([0.6, 0.3, 0.1]), 0.2, 0.8), "use natural logarithms, and divide the entropy by log C"),
        ((_rows([0.25, 0.25, 0.25, 0.25]), 0.2, 0.8),
         "equal probabilities have the largest entropy, so the weight is high"),
        ((_rows([1.0, 0.0, 0.0]), 0.2, 0.8), "a teacher that is certain has entropy 0, and 0 log 0 counts as 0"),
        ((_rows([0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]), 0.0, 1.0),
         "the batch has one weight, from the mean over rows"),
    ],
    right="The less sure the teacher is, the more its soft targets count.",
    mistakes={
        "Divide the entropy by log C, so that it lies between 0 and 1.":
            lambda p, low, high: low + (high - low) * -torch.xlogy(p, p).sum(-1).mean(),
        "The ends are the wrong way round: an unsure teacher gets the high weight.":
            lambda p, low, high: high + (low - high) * _certainty(p).mean(),
        "The whole batch has one weight: take the mean over its rows.":
            lambda p, low, high: low + (high - low) * _certainty(p),
        "A probability of 0 gives 0 log 0, which is NaN here; torch.xlogy makes it 0.":
            lambda p, low, high: math.nan if (p == 0).any() else None,
    },
)  # fmt: skip


def _echo(
    W: Tensor, buffer: list, store: dict, inputs: Tensor, lr: float,
    *, base: str = "start", student: str = "moved", heard: str = "all", mean: str = "logits",
) -> Tensor:  # fmt: skip
    """Return the model after one version of FedEcho with one deliberate mistake."""
    moved = W + sum(delta for _, _, delta in buffer) / len(buffer)
    said = dict(store)
    for client, start, delta in buffer:
        said[client] = inputs @ ((start if base == "start" else W) + delta).T
    votes = torch.stack([said[client] for client in said if heard == "all" or client in {one for one, *_ in buffer}])
    p = votes.softmax(-1).mean(0) if mean == "probabilities" else votes.mean(0).softmax(-1)
    alpha = uncertainty_weight(p, 0.2, 0.8)
    target = alpha * p + (1 - alpha) * one_hot(p.argmax(-1), p.shape[-1])
    error = (inputs @ (moved if student == "moved" else W).T).softmax(-1) - target
    return moved - lr * error.T @ inputs / len(inputs)


@exercise(
    "07.3", "One version of FedEcho",
    mistakes={
        "Predictions are those of the client's own model: start + delta, not W + delta.":
            lambda *known: _echo(*known, base="W"),
        "The step starts from the model after the mean delta, not from W, so take the gradient there.":
            lambda *known: _echo(*known, student="W"),
        "The teacher is the mean over everybody in the store, not only over the clients in the buffer.":
            lambda *known: _echo(*known, heard="buffer"),
        "Average the logits first, then take softmax.":
            lambda *known: _echo(*known, mean="probabilities"),
    },
)  # fmt: skip
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
