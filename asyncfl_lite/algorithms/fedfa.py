"""FedFa: the global model is the mean of a sliding window of client models.

Xu et al., "FedFa: A Fully Asynchronous Training Paradigm for Federated Learning", IJCAI 2024. Neither the paper nor the
official code was available. This is a re-implementation from the abstract and third-party queue code. Another method,
"Fairness and Accuracy", has the same name.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.about import About
from asyncfl_lite.algorithms.base import ALGORITHMS, Algorithm, ServerContext
from asyncfl_lite.simulator.jobs import Update


@ALGORITHMS.register("fedfa")
class FedFa(Algorithm):
    """Mean of the latest client models, updated at each arrival (Xu et al. 2024; reimplemented).

    ``x ← (1/|Q|) Σ x_q`` over a first-in-first-out queue Q of the latest client models. With a queue of one entry, it
    is FedAsync with mixing weight 1.

    Running statistics become the mean of those in the queue, as the parameters do. If deltas are queued, ``bn_mode``
    decides whether they become this mean or, with ``delta``, the mean of the queue's changes is added to them.

    Attributes:
        entries: the queue of ``(d,)`` models or deltas, oldest first.
        buffer_entries: each entry's ``(b,)`` running statistics or their change, or None.

    >>> import torch
    >>> from asyncfl_lite import Update, make_algorithm
    >>> server = make_algorithm("fedfa", queue_length=2)
    >>> server.start(torch.zeros(2))
    >>> for client, delta in enumerate([[4.0, 0.0], [0.0, 2.0]]):
    ...     receipt = server.receive(Update(client, torch.tensor(delta), start_version=0, num_samples=10))
    >>> server.version, server.x
    (2, tensor([2., 1.]))
    """

    about = About(
        title="FedFa",
        paper="Xu et al. 2024 (re-implemented from the abstract and third-party code)",
        family="asynchronous",
        models_stored="1 + queue_length",
        colour="#8c564b",
    )
    redispatch = "after_agg"
    buffered = False
    uses_server_lr = False
    state_names = (*Algorithm.state_names, "entries", "buffer_entries")

    class Settings(Algorithm.Settings):
        """Options of FedFa."""

        queue_length: int = Field(10, ge=1)
        """Number of entries in the queue; no source states FedFa's, so the default is FedADT's buffer size, 10."""
        queue: Literal["model", "delta"] = "model"
        """Kind of entries in the queue: models, or deltas, whose mean is added to the global model."""
        warmup: Literal["partial", "wait"] = "partial"
        """Until the queue is full: use the mean of the entries so far, or make no new version."""

    settings: Settings

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Begin at version 0 with an empty queue."""
        super().start(x0, context, **options)
        self.entries: list[Tensor] = []
        self.buffer_entries: list[Tensor | None] = []

    def on_receive(self, update: Update) -> bool:
        """Add an entry to the queue, drop the oldest from a full one, and make a version unless the warm-up waits."""
        chosen, deltas = self.settings, self.settings.queue == "delta"
        pushed = update.delta if deltas else self.start_of(update) + update.delta
        self.entries = [*self.entries, pushed][-chosen.queue_length :]
        changes, statistics = deltas and self.bn_mode == "delta", update.buffers
        if changes and statistics is not None:
            statistics = update.buffers_change
        self.buffer_entries = [*self.buffer_entries, statistics][-chosen.queue_length :]
        if chosen.warmup == "wait" and len(self.entries) < chosen.queue_length:
            return False
        known = [entry for entry in self.buffer_entries if entry is not None]
        if self.buffers is not None and known:
            moved = torch.stack(known).mean(0)
            self.set_buffers(self.buffers + moved if changes else moved)
        mean = torch.stack(self.entries).mean(0)
        return self.new_version(self.x + mean if deltas else mean)
