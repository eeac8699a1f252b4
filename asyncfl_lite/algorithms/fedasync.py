"""FedAsync: every arriving model is mixed into the global one.

Xie, Koyejo, Gupta, "Asynchronous Federated Optimization", 2019, Algorithm 1 and §5. Staleness counts from
0 for a fresh update; the paper counts the iteration that is being computed, too.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from asyncfl_lite.algorithms.base import ALGORITHMS, About
from asyncfl_lite.algorithms.mixing import MixingMethod, hinge, poly
from asyncfl_lite.simulator.jobs import Update


@ALGORITHMS.register("fedasync")
class FedAsync(MixingMethod):
    """Mixing of every arriving model, with less weight the staler it is (Xie et al. 2019).

    ``x ← (1 - α_t) x + α_t x_i`` with ``α_t = α s(τ)`` and ``x_i = x_{t_i} + Δ_i``.
    """

    about = About(
        title="FedAsync",
        paper="Xie et al. 2019, Alg. 1",
        family="asynchronous",
        colour="#de8f05",
    )

    class Settings(MixingMethod.Settings):
        """Options of FedAsync."""

        mixing: float = Field(0.6, ge=0, le=1)
        """The paper's α, the mixing weight of a fresh model."""
        staleness_function: Literal["poly", "constant", "hinge"] = "poly"
        """The paper's s: ``poly``, which is (1 + τ)^-a; ``constant``, which is 1; or ``hinge``."""
        poly_a: float = Field(0.5, ge=0)
        """a of ``poly``, the exponent by which the weight falls with staleness; 0 is constant."""
        hinge_a: float = Field(10.0, gt=0)
        """a of ``hinge``, whose weight is 1 / (a (τ - b) + 1) above staleness b; a larger a makes it fall faster."""
        hinge_b: float = Field(4.0, ge=0)
        """b of ``hinge``, the staleness up to which the weight is 1."""
        rho: float = Field(0.0, ge=0)
        """Weight ρ of the client's proximal term ρ/2 ‖w - x_{t_i}‖²."""

    settings: Settings

    @property
    def proximal(self) -> float:
        """Weight ρ of the proximal term in the clients' loss."""
        return self.settings.rho

    def mixing_weight(self, tau: int) -> float:
        """Return the mixing weight α_t for an update of staleness ``tau``."""
        chosen = self.settings
        if chosen.staleness_function == "hinge":
            return chosen.mixing * hinge(tau, chosen.hinge_a, chosen.hinge_b)
        if chosen.staleness_function == "poly":
            return chosen.mixing * poly(tau, chosen.poly_a)
        return chosen.mixing

    def weight_of(self, update: Update) -> float:
        """Return the mixing weight α_t for an update, from its staleness."""
        return self.mixing_weight(update.staleness)
