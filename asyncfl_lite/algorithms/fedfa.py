"""FedFa: the global model is the mean of a sliding window of client models.

Xu et al., "FedFa: A Fully Asynchronous Training Paradigm for Federated Learning", IJCAI 2024. Neither the paper nor the
official code was available. This is a re-implementation from the abstract and third-party queue code. Another method,
"Fairness and Accuracy", has the same name.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, About, Algorithm, ServerContext
from asyncfl_lite.simulator.jobs import Update


@ALGORITHMS.register("fedfa")
class FedFa(Algorithm):
    """Mean of the latest client models, updated at each arrival (Xu et al. 2024; reimplemented).

    ``x ← (1/|Q|) Σ x_q`` over a first-in-first-out queue Q of the latest client models. With a queue of one entry, it
    is FedAsync with mixing weight 1.

    Until the queue is full, the mean is that of the entries so far. Running statistics become the mean of those in the
    queue, as the parameters do.

    Attributes:
        entries: the queue of ``(d,)`` models, oldest first.
        buffer_entries: each entry's ``(b,)`` running statistics, or None.
    """

    about = About(
        title="FedFa",
        paper="Xu et al. 2024 (re-implemented from the abstract and third-party code)",
        secondary=True,
        family="asynchronous",
        models_stored="1 + queue_length",
        colour="#8c564b",
    )
    scheduling = "after_agg"
    buffered = False
    uses_server_lr = False
    state_names = (*Algorithm.state_names, "entries", "buffer_entries")

    class Settings(Algorithm.Settings):
        """Options of FedFa."""

        queue_length: int = Field(10, ge=1)
        """Number of entries in the queue; no source states FedFa's, so the default is FedADT's buffer size, 10."""

    settings: Settings

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Begin at version 0 with an empty queue."""
        super().start(x0, context, **options)
        self.entries: list[Tensor] = []
        self.buffer_entries: list[Tensor | None] = []

    def on_receive(self, update: Update) -> bool:
        """Add the client's model to the queue, drop the oldest from a full one, and make the mean the new version."""
        length = self.settings.queue_length
        self.entries = [*self.entries, self.start_of(update) + update.delta][-length:]
        self.buffer_entries = [*self.buffer_entries, update.buffers][-length:]
        known = [entry for entry in self.buffer_entries if entry is not None]
        if self.buffers is not None and known:
            self.set_buffers(torch.stack(known).mean(0))
        return self.new_version(torch.stack(self.entries).mean(0))
