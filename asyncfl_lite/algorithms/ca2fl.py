"""CA²FL: the server's cache of every client's latest update stands in for absent clients.

Wang et al., "Tackling the Data Heterogeneity in Asynchronous Federated Learning with Cached Update Calibration", ICLR
2024. The authors' code was not available; this is a re-implementation of the paper's Algorithm 1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, About, ServerContext
from asyncfl_lite.algorithms.fedbuff import FedBuff
from asyncfl_lite.simulator.jobs import Update


@ALGORITHMS.register("ca2fl")
class CA2FL(FedBuff):
    """FedBuff calibrated by a cache of every client's latest update (Wang et al. 2024).

    A step adds the mean of all cached updates h_i to the mean of the buffered corrections Δ_i - h_i.

    ``v = h + (1/M) Σ (Δ_i - h_i)``, ``x ← x + η v``, then ``h_i ← Δ_i``; h is the mean of all h_i, which start
    at zero. A client that reports twice before that is cached by its last report. The first aggregation is FedBuff's.

    Attributes:
        cache: client -> ``(d,)`` cached update h_i; absent while zero.
        cache_sum: ``(d,)`` sum Σ h_i of the cached updates.
    """

    about = About(
        title="CA²FL",
        paper="Wang et al. 2024 (CA²FL), Alg. 1",
        models_stored="N + M + 2",
        colour="#d55e00",
    )
    state_names = (*FedBuff.state_names, "cache", "cache_sum", "_waiting")

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Start at version 0 with an empty cache."""
        super().start(x0, context, **options)
        self.cache: dict[int, Tensor] = {}
        self.cache_sum = torch.zeros_like(self.x)
        self._waiting: dict[int, Tensor] = {}

    def entry(self, update: Update) -> Tensor:
        """Return the correction Δ_i - h_i, and remember Δ_i for the cache."""
        self._waiting = {**self._waiting, update.client: update.delta}
        cached = self.cache.get(update.client)
        return update.delta if cached is None else update.delta - cached

    def step(self, mean: Tensor) -> Tensor:
        """Return the model after a step along the cache's mean plus the mean correction, and update the cache."""
        x = super().step(self.cached_mean() + mean if self.cache else mean)
        self._commit()
        return x

    def cached_mean(self) -> Tensor:
        """Return h, the ``(d,)`` mean of the cached updates; clients that have not reported count as zero."""
        return self.cache_sum / self.context.num_clients

    def _commit(self) -> None:
        for client, delta in self._waiting.items():
            old = self.cache.get(client)
            self.cache_sum = self.cache_sum + (delta if old is None else delta - old)
        self.cache = {**self.cache, **self._waiting}
        self._waiting = {}
