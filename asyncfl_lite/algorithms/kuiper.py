"""KUIPER: waiting clients report in bursts, whose models are weighted by sample count and error and then mixed in.

"KUIPER: Moderated Asynchronous Federated Learning on Heterogeneous Mobile Devices with Non-IID Data", Section 3.1, Eqs.
2 to 4, Algorithm 1. Details that the paper leaves open (which accuracy a client reports, whether the weights are
renormalised, T₀) are options. A fresh model has staleness 0 here, and 1 if Algorithm 1 is read literally. KUIPER's
teacher chain is an initialiser (:mod:`asyncfl_lite.runs.teacher_chain`).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, About, Algorithm, ServerContext
from asyncfl_lite.algorithms.mixing import poly
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.simulator.jobs import Update


@ALGORITHMS.register("kuiper")
class KUIPER(Algorithm):
    """Bursts of M clients, weighted by sample count and error, then mixed in (KUIPER Alg. 1).

    The mixing weight falls with the mean staleness of the burst.

    ``c_i = n_i / Σ n_j · e_i`` with ``e_i = 1 - acc_i`` (Eq. 2), ``β_t = β (1 + τ̄)^-α`` with the burst's mean
    staleness τ̄ (Eq. 3), ``w ← (1 - β_t) w + β_t Σ c_i w_i`` (Eq. 4). Taken literally, the coefficients sum to less
    than 1 and the model shrinks towards zero; ``renorm`` divides by their sum.

    ``acc_i`` is the accuracy of the model that the client received, on the client's own samples, before it trains: "a
    low training accuracy with the current state of the model" (§3.1). If the accuracy of the *trained* model were used,
    a client with few classes, for which it is always near 1, would count for nothing.
    """

    about = About(
        title="KUIPER",
        paper="KUIPER, §3.1, Alg. 1, Eqs. 2-4",
        models_stored="2",
        client_work="a forward pass over its samples, for the received model's accuracy; waits until its burst is full",
        colour="#a51c30",
    )
    scheduling = "burst"
    uses_server_lr = False
    state_names = (*Algorithm.state_names, "_models", "_statistics_sum", "_sizes", "_kept", "_staleness", "filled")

    ACCURACIES: ClassVar[dict[str, str]] = {
        "received": "received_accuracy",
        "last_epoch": "train_accuracy",
        "post_eval": "trained_accuracy",
    }
    """Option ``acc`` -> the attribute of an update that holds this accuracy."""

    class Settings(Algorithm.Settings):
        """Options of KUIPER."""

        mixing: float = Field(0.7, ge=0, le=1)
        """The paper's β, the mixing weight of a fresh burst."""
        poly_a: float = Field(0.5, ge=0)
        """The paper's α, the exponent of the staleness penalty."""
        kuiper_norm: Literal["renorm", "literal", "delta"] = "renorm"
        """Coefficients of the burst: divided by their sum (``renorm``), as printed in Eq. 2 (``literal``), or applied
        to ``w_i - w`` (``delta``)."""
        t0: float | None = Field(None, ge=0)
        """T₀, the number of the aggregation below which accuracy counts (Eq. 2; the text calls it a latency): with
        none, it always counts; with 0, it never does. Aggregations are counted from 1 (Alg. 1, line 4), so with a T₀ of
        3 accuracy counts in the first two."""
        acc: Literal["received", "last_epoch", "post_eval"] = "received"
        """Accuracy on the client's samples: of the model that it received, during its last local epoch, or of the
        model that it trained."""

    settings: Settings

    @property
    def client_reports(self) -> frozenset[str]:
        """Extra report that clients must send, if any: the accuracy of the received or of the trained model."""
        chosen = self.settings
        needed = chosen.t0 != 0 and chosen.acc != "last_epoch"  # every client reports its last epoch's accuracy
        return frozenset({self.ACCURACIES[chosen.acc]} if needed else ())

    @property
    def moves_by_itself(self) -> bool:
        """Whether Eq. 2 is used as printed, which shrinks the model even if every update is zero."""
        return self.settings.kuiper_norm == "literal"

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Begin at version 0 with an empty burst."""
        super().start(x0, context, **options)
        self._empty()

    def _empty(self) -> None:
        self._models = torch.zeros_like(self.x)
        self._statistics_sum = None if self.buffers is None else torch.zeros_like(self.buffers)
        self._sizes = self._kept = 0.0
        self._staleness = self.filled = 0

    def accuracy_factor(self, update: Update) -> float:
        """Return the factor e_i of an update's weight: 1 - accuracy while accuracy counts, else 1.

        Raises:
            ConfigError: when the update comes without the required accuracy.
        """
        chosen = self.settings
        if chosen.t0 is not None and not self.version + 1 < chosen.t0:
            return 1.0
        name = self.ACCURACIES[chosen.acc]
        accuracy = getattr(update, name)
        if math.isnan(accuracy):
            raise ConfigError(f"{name}: KUIPER weighs updates by it; client {update.client} sent none")
        return 1.0 - accuracy

    def on_receive(self, update: Update) -> bool:
        """Add the client's model to the burst; if the burst then holds M models, mix it into the global model."""
        weight = update.num_samples * self.accuracy_factor(update)
        self._models = self._models + weight * (self.start_of(update) + update.delta)
        if self._statistics_sum is not None and update.buffers is not None:
            statistics = update.buffers_change if self.bn_mode == "delta" else update.buffers
            self._statistics_sum = self._statistics_sum + weight * statistics
        self._sizes += update.num_samples
        self._kept += weight
        self._staleness += update.staleness
        self.filled += 1
        return self.filled == self.buffer_size and self.flush()

    def mixing_weight(self, mean_staleness: float) -> float:
        """Return β_t, the mixing weight of the burst."""
        return self.settings.mixing * poly(mean_staleness, self.settings.poly_a)

    def flush(self) -> bool:
        """Mix the burst into the global model; return whether it held any updates."""
        if not self.filled:
            return False
        rate = self.mixing_weight(self._staleness / self.filled)
        x = self._mixed(self.x, self._models, rate)
        if self.buffers is not None and self._statistics_sum is not None:
            if self.bn_mode == "delta":
                self.set_buffers(self.buffers + rate * self._statistics_sum / (self._kept or 1.0))
            else:
                self.set_buffers(self._mixed(self.buffers, self._statistics_sum, rate))
        self._empty()
        return self.new_version(x)

    def _mixed(self, old: Tensor, weighted_sum: Tensor, rate: float) -> Tensor:
        """Return ``old`` (the model or its statistics) mixed with the burst's weighted sum, as ``kuiper_norm`` says."""
        if self.settings.kuiper_norm == "renorm":
            # a burst whose members are all perfect on their own data has no weight, so nothing is mixed in
            return (1 - rate) * old + rate * (weighted_sum / self._kept) if self._kept else old
        share = weighted_sum / self._sizes
        if self.settings.kuiper_norm == "delta":
            return old + rate * (share - self._kept / self._sizes * old)
        return (1 - rate) * old + rate * share
