"""Test beds: objectives with known constants, on which the package's own code trains and aggregates.

Quadratics F_i(x) = L/2 ‖x - c_i‖² have exactly the smoothness L, a heterogeneity σ_g² = L² Var(c) that is the same
everywhere, and an optimum at the mean of the c_i. Bumps have disjoint supports, so their heterogeneity depends on the
point. A vector's coordinates serve as independent repetitions, because the methods used in this way act on each
coordinate alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from asyncfl_lite.algorithms import Algorithm, ServerContext, Update, make_algorithm
from asyncfl_lite.base.streams import stream
from asyncfl_lite.clients.cohorts import LocalTraining, make_optimiser
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.jobs import Job, Outcome
from asyncfl_lite.simulator.scheduling import SCHEDULING, SameClient
from asyncfl_lite.simulator.simulation import Simulation


def vector(*values: float) -> Tensor:
    """Return the values as a float64 vector."""
    return torch.tensor(values, dtype=torch.float64)


def spread(count: int) -> Tensor:
    """Return ``(count,)`` optima that are evenly spaced from -1 to 1."""
    return torch.linspace(-1, 1, count, dtype=torch.float64)


def train(start: Tensor, gradient: Callable[[Tensor, int], Tensor], lr: float | Tensor, steps: int) -> Tensor:
    """Return the delta of K = ``steps`` client SGD steps at η_l = ``lr``, which the package's optimiser takes.

    The start has any shape, one model or many; ``gradient`` maps a point and a step to a gradient of the same shape. A
    tensor ``lr`` has one rate for every entry of the start.
    """
    step = make_optimiser(LocalTraining(local_steps=steps), start, lr)
    x = start.clone()
    for number in range(steps):
        step(x, gradient(x, number))
    return x - start


def context(
    clients: int = 1, lr: float = 0.1, model: VectorModel | None = None, inputs: Tensor | None = None
) -> ServerContext:
    """Return a server's context with N clients, learning rate ``lr``, a model, and unlabelled inputs if given."""
    return ServerContext(
        model=model or VectorModel(nn.Linear(1, 1)),
        num_clients=clients,
        rng=stream(0, "server"),
        unlabelled=lambda name, count: inputs,
        client_lr=lambda version: lr,
    )


def started(name: str, x0: Tensor, surroundings: ServerContext | None = None, **settings: Any) -> Algorithm:
    """Return a method that is started at version 0 with the model ``x0``."""
    method = make_algorithm(name, **settings)
    method.start(x0, surroundings or context())
    return method


def feed(method: Algorithm, deltas: Iterable[Tensor], start_version: int | None = None, **more: Any) -> Tensor:
    """Send a method one ``(d,)`` update for each delta, from clients 0, 1, …, and return the global model.

    By default a client started from the method's version when its update arrives. ``more`` are further fields of
    :class:`Update`; a sequence has one value per client.
    """
    for client, delta in enumerate(deltas):
        version = method.version if start_version is None else start_version
        fields = {name: value[client] if isinstance(value, Sequence) else value for name, value in more.items()}
        method.receive(Update(client=client, delta=delta, start_version=version, **fields))
    return method.x


def race(
    name: str,
    *,
    durations: tuple[float, ...] = (1.0, 10.0),
    centres: tuple[float, ...] = (1.0, -1.0),
    x0: float = 0.0,
    lr: float = 0.1,
    versions: int = 4000,
    scheduling: str | None = None,
    **settings: Any,
) -> np.ndarray:
    """Run clients of fixed speed on ½(x - c_i)² with one gradient step per job, and keep every client busy.

    ``durations`` and ``centres`` have one number per client; ``lr`` is η_l. By default the scheduling is the method's
    own, and ``settings`` are the method's.

    Returns:
        The model after every arrival, ``(arrivals,)``.
    """
    method = started(name, vector(x0), context(len(centres), lr), **settings)
    path: list[float] = []
    simulation = Simulation(
        method,
        SCHEDULING.get(scheduling or method.scheduling)(len(centres), method.buffer_size),
        DELAYS.get("per_client")(durations=durations).prepare(np.ones(len(centres)), stream(0, "delays setup")),
        range(len(centres)),
        rounds=versions,
        selection=SameClient(),
        observers=[lambda clock, arrival: path.append(method.x.item())],
        keep_arrivals=False,
    )

    def work(jobs: Sequence[Job]) -> list[Outcome]:
        return [Outcome(train(job.start, lambda x, _, c=centres[job.client]: x - c, lr, 1)) for job in jobs]

    simulation.run(work)
    return np.array(path)


class Bumps:
    """N clients in one dimension, whose gradients are bumps of height A and half-width w that do not overlap.

    ∇F_i(x) = ± A cos²(π (x - p_i) / 2w) within w of p_i, and 0 elsewhere. At every x at most one client has a
    gradient, so the mean square distance from ∇f is at most σ_g² = A² (N - 1) / N² everywhere. But if each client is at
    its own peak p_i, it is N - 1 times as large. Versions at all these peaks can occur: with the right server rate,
    each client's update moves FedBuff's model from its own peak to the next.

    Args:
        clients: number of clients N.
        alternate: whether every other client has a negative bump, so that the N bumps cancel (N even).
    """

    height = width = 1.0

    def __init__(self, clients: int, alternate: bool = False) -> None:
        self.peaks = 2 * self.width * torch.arange(clients, dtype=torch.float64)
        self.signs = torch.ones(clients, dtype=torch.float64)
        if alternate:
            self.signs[1::2] = -1
        self.smoothness = self.height * np.pi / (2 * self.width)
        self.variance = self.height**2 * (clients - 1) / clients**2
        self.largest_variance = self.height**2 * (1 - 1 / clients) ** 2  # for one client, at its peak

    def gradients(self, x: Tensor, peaks: Tensor | None = None, signs: Tensor | None = None) -> Tensor:
        """Return ∇F_i at ``x`` for all N clients, or for the clients with the given peaks and signs."""
        away = x - (self.peaks if peaks is None else peaks)
        bump = self.height * torch.cos(np.pi * away / (2 * self.width)) ** 2
        return torch.where(away.abs() < self.width, bump, 0.0) * (self.signs if signs is None else signs)

    def mean_gradients(self, x: Tensor) -> Tensor:
        """Return ∇f at each of the ``(n,)`` points ``x``."""
        return self.gradients(x[:, None]).mean(1)
