"""FADAS: FedBuff with an adaptive optimiser on the server.

Wang, Wang, Chen, Wang, Lin, "FADAS: Towards Federated Adaptive Asynchronous Optimization", ICML 2024, Algorithm 1 and
its delay-adaptive rule. Where the authors' code differs from the paper, there is an option.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, About, ServerContext
from asyncfl_lite.algorithms.fedopt import AdaptiveStep
from asyncfl_lite.simulator.jobs import Update


@ALGORITHMS.register("fadas")
class FADAS(AdaptiveStep):
    """FedBuff with AMSGrad on the server, optionally delay-adaptive (Wang et al. 2024, Alg. 1).

    ``v̂ ← max(v̂, v)``, ``x ← x + η_t m / (√v̂ + ε)``. With ``delay_adaptive``, η_t falls when the stalest
    entry of the buffer is older than ``tau_c``.

    Attributes:
        largest_square: ``(d,)`` v̂, the largest v so far, entry by entry.

    >>> import torch
    >>> from asyncfl_lite import Update, make_algorithm
    >>> server = make_algorithm("fadas", buffer_size=2, server_lr=0.1)
    >>> server.start(torch.zeros(2))
    >>> for client, delta in enumerate([[4.0, 0.0], [0.0, 2.0]]):
    ...     receipt = server.receive(Update(client, torch.tensor(delta), start_version=0, num_samples=10))
    >>> server.version, server.x
    (1, tensor([0.1000, 0.1000]))
    """

    about = About(
        title="FADAS",
        paper="Wang et al. 2024 (FADAS), Alg. 1",
        models_stored="5",
        colour="#d4b106",
    )
    state_names = (*AdaptiveStep.state_names, "largest_square", "_stalest")

    class Settings(AdaptiveStep.Settings):
        """Options of FADAS."""

        bias_correction: bool = False
        """Correct the averages' bias as the authors' code does: η_t / (1 - β₁^t) and √v̂ / √(1 - β₂^t)."""
        delay_adaptive: bool = False
        """Whether η_t falls for stale buffers, by ``da_rule``; if False, it is η whatever the staleness."""
        da_rule: Literal["min_inv", "divide"] = "min_inv"
        """η_t for stale buffers: min(η, 1/τ_max) as in the paper, or η/τ_max as in the authors' code."""
        tau_c: int = Field(1, ge=0)
        """Staleness up to which η_t = η."""

    settings: Settings

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Begin at version 0 with all averages at zero."""
        super().start(x0, context, **options)
        self.largest_square = torch.zeros_like(self.x)
        self._stalest = 0

    def entry(self, update: Update) -> Tensor:
        """Return the delta, and update the largest staleness in the buffer."""
        self._stalest = max(self._stalest, update.staleness)
        return super().entry(update)

    def step_size(self, stalest: int) -> float:
        """Return the server learning rate η_t for a buffer whose stalest entry has staleness ``stalest``."""
        chosen = self.settings
        if not chosen.delay_adaptive or stalest <= chosen.tau_c:
            return self.server_lr
        return min(self.server_lr, 1.0 / stalest) if chosen.da_rule == "min_inv" else self.server_lr / stalest

    def step(self, mean: Tensor) -> Tensor:
        """Return the model after a step along ``m / (√v̂ + ε)``, where v̂ is the largest v so far, entry by entry."""
        chosen = self.settings
        self.average(mean)
        self.largest_square = torch.maximum(self.largest_square, self.square)
        rate, root = self.step_size(self._stalest), self.largest_square.sqrt()
        self._stalest = 0
        if chosen.bias_correction:
            count = self.version + 1
            rate = rate / (1 - chosen.beta1**count)
            root = root / (1 - chosen.beta2**count) ** 0.5
        return self.x + rate * self.mean / (root + chosen.eps)
