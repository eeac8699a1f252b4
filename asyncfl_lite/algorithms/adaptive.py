"""Base class of methods with an adaptive server optimiser: moving averages of the mean update and its square."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.base import ServerContext
from asyncfl_lite.algorithms.fedbuff import FedBuff


class AdaptiveStep(FedBuff):
    """FedBuff with moving averages of the mean update Δ_t and of its square.

    The averages are ``m ← β₁ m + (1 - β₁) Δ_t`` and ``v ← β₂ v + (1 - β₂) Δ_t²``.

    Both persist for the whole run. There is no bias correction unless a subclass adds one.

    Attributes:
        mean: ``(d,)`` moving average m of the mean updates.
        square: ``(d,)`` moving average v of their squares.
    """

    state_names = (*FedBuff.state_names, "mean", "square")

    class Settings(FedBuff.Settings):
        """Options of the moving averages."""

        beta1: float = Field(0.9, ge=0, lt=1)
        """β₁, the fraction of m that an aggregation keeps; with 0, m is the newest mean update."""
        beta2: float = Field(0.99, ge=0, lt=1)
        """β₂, the fraction of v that an aggregation keeps."""
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
        beta1, beta2 = self.settings.beta1, self.settings.beta2
        self.mean = beta1 * self.mean + (1 - beta1) * direction
        self.square = beta2 * self.square + (1 - beta2) * direction.square()
