"""FADAS: FedBuff with an adaptive optimiser on the server.

Wang, Wang, Chen, Wang, Lin, "FADAS: Towards Federated Adaptive Asynchronous Optimization", ICML 2024, Algorithm 1 and
its delay-adaptive rule.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, About, ServerContext
from asyncfl_lite.algorithms.fedopt import AdaptiveStep


@ALGORITHMS.register("fadas")
class FADAS(AdaptiveStep):
    """FedBuff with AMSGrad on the server, optionally delay-adaptive (Wang et al. 2024, Alg. 1).

    ``v̂ ← max(v̂, v)``, ``x ← x + η_t m / (√v̂ + ε)``. With ``delay_adaptive``, η_t falls when the stalest
    entry of the buffer is older than ``tau_c``. The averages' bias is not corrected, as in the paper; the authors' code
    corrects it.

    Attributes:
        largest_square: ``(d,)`` v̂, the largest v so far, entry by entry.
    """

    about = About(
        title="FADAS",
        paper="Wang et al. 2024 (FADAS), Alg. 1",
        models_stored="5",
        colour="#d4b106",
    )
    state_names = (*AdaptiveStep.state_names, "largest_square")

    class Settings(AdaptiveStep.Settings):
        """Options of FADAS."""

        da_rule: Literal["ratio", "divide", "min_inv"] = "min_inv"
        """The rate for stale buffers, with ``delay_adaptive``: min(η, 1/τ_max) as in the paper (``min_inv``), η/τ_max
        as in the authors' code (``divide``), or η τ_c/τ_max (``ratio``)."""

    settings: Settings

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Begin at version 0 with all averages at zero."""
        super().start(x0, context, **options)
        self.largest_square = torch.zeros_like(self.x)

    def step(self, mean: Tensor) -> Tensor:
        """Return the model after a step along ``m / (√v̂ + ε)``, where v̂ is the largest v so far, entry by entry."""
        self.average(mean)
        self.largest_square = torch.maximum(self.largest_square, self.square)
        return self.x + self.step_size() * self.mean / (self.largest_square.sqrt() + self.settings.eps)
