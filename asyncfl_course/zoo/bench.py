"""The test bench, which starts a server with six parameters and six clients and sends it made-up updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from asyncfl_lite.algorithms import Algorithm, ServerContext
from asyncfl_lite.base.errors import AsyncFLError
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.simulator.jobs import Update

CLIENTS = 6
"""Number of clients on the bench."""

Server = TypeVar("Server", bound=Algorithm)


def started(server: Server) -> Server:
    """Start a server on the bench and return it; a server that already ran starts over.

    Its model is linear, with two inputs and three classes, in float64. For methods that distil, there are eight inputs,
    with and without labels.
    """
    layer = torch.nn.utils.skip_init(torch.nn.Linear, 2, 3, bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.5, -1.0], [1.5, 0.25], [-0.75, 2.0]]))
    model = VectorModel(layer)
    rng = np.random.default_rng(7)
    inputs, labels = torch.from_numpy(rng.normal(size=(8, 2))), torch.arange(8) % 3
    context = ServerContext(
        model,
        CLIENTS,
        np.random.default_rng(0),
        unlabelled=lambda name, count: inputs[:count],
        labelled=(inputs, labels),
    )
    server.start(model.flatten()[0], context)
    return server


def send(
    server: Algorithm,
    delta: float | Sequence[float] | torch.Tensor,
    *,
    client: int = 0,
    staleness: int = 0,
    **more: Any,
) -> bool:
    """Send one update to a server on the bench, and return whether it made a version.

    Args:
        server: from :func:`started`.
        delta: the change of each of the six parameters in the client's training, or one number for all.
        client: the client that sends it, 0 to 5.
        staleness: how many versions ago the client was sent its model.
        more: other fields of the :class:`~asyncfl_lite.Update`, such as ``num_samples=3``. The accuracies of the
            received model and of the trained model are 0.5 unless they are given.

    Raises:
        AsyncFLError: for a client that does not exist, a wrong number of parameters, an update from before version 0,
            or an update that the server refuses.

    Example: a buffer of two makes a version of the second update.

    >>> from asyncfl_lite import make_algorithm
    >>> from asyncfl_course.zoo import send, started
    >>> server = started(make_algorithm("fedbuff", buffer_size=2))
    >>> send(server, 1.0), send(server, 3.0, client=1)
    (False, True)
    """
    if staleness > server.version:
        raise AsyncFLError(f"staleness: must be at most the server's version, {server.version}, got {staleness}")
    if client not in range(CLIENTS):
        raise AsyncFLError(f"client: the bench has 0 to {CLIENTS - 1}, got {client!r}")
    given = torch.as_tensor(delta, dtype=server.x.dtype)
    if given.numel() not in (1, server.x.numel()):
        raise AsyncFLError(f"delta: one number or {server.x.numel()} are asked for, got {given.numel()}")
    report = {"received_accuracy": 0.5, "trained_accuracy": 0.5, **more}
    answer = server.receive(Update(client, given.expand(server.x.shape).clone(), server.version - staleness, **report))
    if answer.refused:
        raise AsyncFLError(f"delta: the server refused the update: {answer.refused}")
    return bool(answer)


def fill(server: Algorithm, delta: float | Sequence[float] | torch.Tensor, **more: Any) -> None:
    """Send equal updates from clients 0, 1, … until an empty buffer, of at most six updates, makes one version.

    Args:
        server, delta, more: as for :func:`send`.
    """
    for client in range(server.buffer_size):
        send(server, delta, client=client, **more)
