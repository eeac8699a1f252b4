"""AFL-DW: asynchronous updates whose weight falls with staleness; FedRevive shares its schedule β.

"Reviving Stale Updates: Data-Free Knowledge Distillation for Asynchronous Federated Learning" (FedRevive), §3.1 and
Appendix I.1. The paper plots its schedules but prints no formulas; the formulas here come from the authors' code.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, About, Algorithm
from asyncfl_lite.simulator.jobs import Update

RATE = 0.005
"""Rate r of the linear and exponential schedules."""
SPAN = 150.0
"""Staleness at which the stepwise schedule is 1; the authors' code takes 1.5 M_c / M."""


@ALGORITHMS.register("afl_dw")
class AFLDW(Algorithm):
    """Asynchronous updates with a weight 1 - β that falls with staleness (FedRevive §3.1).

    ``x ← x + η (1 - β(τ)) Δ``. With β = 0 it is vanilla asynchronous federated learning (FedRevive Eq. 1), which
    is FedBuff with a buffer of one.
    """

    about = About(
        title="AFL-DW",
        paper="FedRevive, §3.1, AFL-DW",
        family="asynchronous",
        colour="#ca9161",
    )
    scheduling = "after_agg"
    buffered = False

    class Settings(Algorithm.Settings):
        """Options of AFL-DW: the schedule β."""

        beta_family: Literal["cosine", "linear", "exponential", "stepwise", "constant"] = "cosine"
        """``cosine``: ½ (1 - cos(π τ / 2 s_max)), then 1; ``linear``: r τ, at most 1; ``exponential``: 1 - e^(-r τ);
        ``stepwise``: a quarter more at each quarter of 150, then 1; ``constant``: always the same. r is 0.005."""
        s_max: float = Field(75.0, gt=0)
        """Staleness at which the cosine schedule is ½; the schedule reaches 1 at twice this staleness."""
        beta_constant: float = Field(0.5, ge=0, le=1)
        """β of the constant schedule, for any staleness; DD-FedRevive has 0.5 (FedRevive Table 5)."""

    settings: Settings

    def beta(self, tau: int) -> float:
        """Return the damping β, between 0 and 1, of an update of staleness ``tau``."""
        chosen = self.settings
        if chosen.beta_family == "constant":
            return chosen.beta_constant
        if chosen.beta_family == "linear":
            return min(1.0, RATE * tau)
        if chosen.beta_family == "exponential":
            return 1.0 - math.exp(-RATE * tau)
        if chosen.beta_family == "stepwise":
            return min(4, math.floor(4 * tau / SPAN)) / 4
        return 0.5 * (1.0 - math.cos(math.pi * min(1.0, tau / (2 * chosen.s_max))))

    def weight_of(self, update: Update) -> float:
        """Return the damping β of an update, from its staleness."""
        return self.beta(update.staleness)

    def distilled_update(self) -> Tensor | None:
        """Return the ``(d,)`` update Δ^KD that replaces the part removed by damping; None in AFL-DW."""
        return None

    def on_receive(self, update: Update) -> bool:
        """Make the version ``x + η ((1 - β) Δ + β Δ^KD)``, without the last term if Δ^KD is None (FedRevive Eq. 3)."""
        beta = self.weight_of(update)
        step = (1.0 - beta) * update.delta
        distilled = self.distilled_update() if beta > 0 else None
        if distilled is not None:
            step = step + beta * distilled
        self.mix_buffers(update, self.server_lr * (1.0 - beta))
        return self.new_version(self.x + self.server_lr * step)
