"""FedBuff: buffered asynchronous aggregation.

Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", AISTATS 2022, Algorithm 1.
FedEcho §5 and FedRevive Eq. 2 use it with equal weights (``staleness_weight = none``).

The rules of ``delay_adaptive``: ``ratio`` as in the published code of Mishchenko, Bach, Even, Woodworth, "Asynchronous
SGD Beats Minibatch SGD Under Arbitrary Delays", NeurIPS 2022; ``divide`` as in Koloskova, Stich, Jaggi, "Sharper
Convergence Guarantees for Asynchronous SGD for Distributed and Federated Learning", NeurIPS 2022, §4.4; ``min_inv``
as in FADAS's paper.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, About, Algorithm, ServerContext
from asyncfl_lite.algorithms.mixing import poly
from asyncfl_lite.simulator.jobs import Update


@ALGORITHMS.register("fedbuff")
class FedBuff(Algorithm):
    """Buffered aggregation: the mean of M updates makes a new version (Nguyen et al. 2022).

    ``x ← x + η · (1/M) Σ s(τ_i) Δ_i`` when M updates have arrived. Updates are averaged, not clients, so a client that
    reports twice before the buffer fills counts twice. The rate η may fall from version to version
    (``server_lr_decay``), and for stale buffers (``delay_adaptive``).
    """

    about = About(
        title="FedBuff",
        paper="Nguyen et al. 2022, Alg. 1",
        models_stored="2",
        colour="#0173b2",
    )

    state_names = (*Algorithm.state_names, "_sum", "_statistics_sum", "_divisor", "_stalest", "filled")

    class Settings(Algorithm.Settings):
        """Options of FedBuff."""

        staleness_weight: Literal["none", "poly", "poly_norm"] = "none"
        """Weights by staleness. ``poly``: s = (1 + τ)^-1/2; ``poly_norm``: the same, divided by Σ s in place of M."""
        buffer_weight: Literal["uniform", "samples"] = "uniform"
        """Weights by client. ``samples``: weight entries by n_i / Σ n_j."""
        server_lr_decay: float = Field(1.0, gt=0, le=1)
        """Factor on the server's learning rate after every version."""
        delay_adaptive: bool = False
        """Whether the server's learning rate falls for a buffer whose stalest update is older than ``tau_c``."""
        da_rule: Literal["ratio", "divide", "min_inv"] = "ratio"
        """The rate for such a buffer, where τ_max is the staleness of its stalest update: η τ_c/τ_max (``ratio``),
        η/τ_max (``divide``), or min(η, 1/τ_max) (``min_inv``)."""
        tau_c: int = Field(1, ge=0)
        """Staleness τ_c up to which the rate is η."""

    settings: Settings

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Begin at version 0 with an empty buffer."""
        super().start(x0, context, **options)
        self._empty()

    def _empty(self) -> None:
        self._sum = torch.zeros_like(self.x)
        self._statistics_sum = None if self.buffers is None else torch.zeros_like(self.buffers)
        self._divisor, self._stalest, self.filled = 0.0, 0, 0

    def on_receive(self, update: Update) -> bool:
        """Add the update to the buffer; aggregate if the buffer is full."""
        self.accumulate(update)
        return self.filled == self.buffer_size and self.flush()

    def accumulate(self, update: Update) -> None:
        """Add an update to the buffer's weighted sum."""
        weight, counted = self.weights(update)
        entry = self.entry(update)
        self._sum = self._sum + (entry if weight == 1 else weight * entry)
        self._divisor += counted
        self._stalest = max(self._stalest, update.staleness)
        self.filled += 1
        if self._statistics_sum is not None and update.buffers is not None:
            statistics = update.buffers_change if self.bn_mode == "delta" else update.buffers
            self._statistics_sum = self._statistics_sum + statistics

    def weights(self, update: Update) -> tuple[float, float]:
        """Return an update's weight in the buffer's sum, and the number that it adds to the sum's divisor."""
        size = update.num_samples if self.settings.buffer_weight == "samples" else 1
        shrink = 1.0 if self.settings.staleness_weight == "none" else poly(update.staleness)
        return size * shrink, size * shrink if self.settings.staleness_weight == "poly_norm" else size

    def entry(self, update: Update) -> Tensor:
        """Return the ``(d,)`` vector that the buffer sums for an update; in FedBuff, this is the delta."""
        return update.delta

    def flush(self) -> bool:
        """Apply the mean of the buffered updates; return whether there were any."""
        if not self.filled:
            return False
        if self.buffers is not None and self._statistics_sum is not None:
            mean = self._statistics_sum / self.filled
            self.set_buffers(self.buffers + mean if self.bn_mode == "delta" else mean)
        x = self.after_step(self.step(self._sum / self._divisor))
        self._empty()
        return self.new_version(x)

    def step_size(self) -> float:
        """Return the server's learning rate for the buffered updates."""
        chosen, stalest = self.settings, self._stalest
        rate = self.server_lr * chosen.server_lr_decay**self.version
        if not chosen.delay_adaptive or stalest <= chosen.tau_c:
            return rate
        if chosen.da_rule == "min_inv":
            return min(rate, 1.0 / stalest)
        return rate * (chosen.tau_c if chosen.da_rule == "ratio" else 1) / stalest

    def step(self, mean: Tensor) -> Tensor:
        """Return the model after a server step along the ``(d,)`` mean of the buffer."""
        return self.x + self.step_size() * mean

    def after_step(self, x: Tensor) -> Tensor:
        """Return the next version's model, given the aggregated one; in FedBuff they are the same."""
        return x
