"""FedAvgM and FedAdam, FedAvg with an optimiser on the server, and the averages of adaptive optimisers.

FedAvgM: Hsu, Qi, Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual
Classification", 2019, §4.2. FedAdam: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2
(FedAdam).
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, About, ServerContext
from asyncfl_lite.algorithms.fedavg import FedAvg
from asyncfl_lite.algorithms.fedbuff import FedBuff


class AdaptiveStep(FedBuff):
    """FedBuff with moving averages of the mean update Δ_t and of its square.

    The averages are ``m ← β₁ m + (1 - β₁) Δ_t`` and ``v ← β₂ v + (1 - β₂) Δ_t²``.

    Both persist for the whole run, without bias correction.

    Attributes:
        mean: ``(d,)`` moving average m of the mean updates.
        square: ``(d,)`` moving average v of their squares.
    """

    state_names = (*FedBuff.state_names, "mean", "square")
    beta2: ClassVar[float] = 0.99
    """β₂, the fraction of v that an aggregation keeps (FADAS's code; Reddi et al. 2021, Alg. 2)."""

    class Settings(FedBuff.Settings):
        """Options of the moving averages."""

        beta1: float = Field(0.9, ge=0, lt=1)
        """β₁, the fraction of m that an aggregation keeps; with 0, m is the newest mean update."""
        eps: float = Field(1e-8, ge=0)
        """Number added to the root of v; FedAdam has a larger default."""

    settings: Settings

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Begin at version 0 with both averages at zero."""
        super().start(x0, context, **options)
        self.mean = torch.zeros_like(self.x)
        self.square = torch.zeros_like(self.x)

    def average(self, direction: Tensor) -> None:
        """Update both moving averages with a ``(d,)`` mean update."""
        beta1, beta2 = self.settings.beta1, self.beta2
        self.mean = beta1 * self.mean + (1 - beta1) * direction
        self.square = beta2 * self.square + (1 - beta2) * direction.square()


@ALGORITHMS.register("fedavgm")
class FedAvgM(FedAvg):
    """FedAvg with momentum on the server (Hsu et al. 2019).

    ``v ← β v + Δ``, ``x ← x + η v``, where Δ is the round's weighted mean update and v starts at zero,
    without dampening.

    Attributes:
        velocity: ``(d,)`` velocity v.
    """

    about = About(
        title="FedAvgM",
        paper="Hsu et al. 2019, §4.2",
        family="synchronous",
        models_stored="3",
        colour="#b5b5b5",
    )
    state_names = (*FedAvg.state_names, "velocity")

    class Settings(FedAvg.Settings):
        """Options of FedAvgM."""

        fedavgm_beta: float = Field(0.9, ge=0, lt=1)
        """Momentum β; 0 gives FedAvg. FLGo ships 0.01, so the value in FedADT's experiments is not known."""

    settings: Settings

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Start at version 0 with zero velocity."""
        super().start(x0, context, **options)
        self.velocity = torch.zeros_like(self.x)

    def step(self, mean: Tensor) -> Tensor:
        """Return the model after a step along the velocity, a sum of mean updates in which older ones count less."""
        self.velocity = self.settings.fedavgm_beta * self.velocity + mean
        return self.x + self.step_size() * self.velocity


@ALGORITHMS.register("fedadam")
class FedAdam(FedAvg, AdaptiveStep):
    """FedAvg with Adam on the server, without bias correction (Reddi et al. 2021, Alg. 2).

    ``x ← x + η m / (√v + ε)``. v starts at 0 as in most code; the paper's analysis requires ε² or more. KUIPER cites
    another method of this name, with Adam on the clients.
    """

    about = About(
        title="FedAdam",
        paper="Reddi et al. 2021, Alg. 2",
        family="synchronous",
        models_stored="4",
        colour="#4d4d4d",
    )

    class Settings(FedAvg.Settings, AdaptiveStep.Settings):
        """Options of FedAdam."""

        eps: float = Field(1e-3, ge=0)
        """Number added to the root of v; the paper's adaptivity τ."""

    settings: Settings

    def step(self, mean: Tensor) -> Tensor:
        """Return the model after a step along ``m / (√v + ε)``."""
        self.average(mean)
        return self.x + self.step_size() * self.mean / (self.square.sqrt() + self.settings.eps)
