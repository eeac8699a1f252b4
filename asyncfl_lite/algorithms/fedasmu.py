"""FedASMU: mixing weights that fall with staleness and time, and clients that merge a newer model half-way.

Liu et al., "FedASMU: Efficient Asynchronous Federated Learning with Dynamic Staleness-Aware Model Update", AAAI 2024.
We have not read the paper. This is a re-implementation from secondary sources, with constants in place of values that
the paper learns. Do not publish comparisons with it without reading the paper.
"""

from __future__ import annotations

import math

from pydantic import Field

from asyncfl_lite.algorithms.base import ALGORITHMS, About
from asyncfl_lite.algorithms.mixing import MixingMethod
from asyncfl_lite.simulator.jobs import Midway, Update

LAMBDA, IOTA, SIGMA = 1.0, 0.5, 0.5
"""λ, the size of the part of ξ that falls; ι, the part that never falls; σ, the exponent by which staleness counts."""
GAMMA, UPSILON = 1.0, 1.0
"""γ, the factor of φ; υ, by which φ is 0 for a model at most υ² - 1 versions newer."""


@ALGORITHMS.register("fedasmu")
class FedASMU(MixingMethod):
    """Time-aware mixing; clients merge a newer model (Liu et al. 2024; secondary sources).

    ``α = μ ξ / (1 + μ ξ)`` with ``ξ = λ / (√t s^σ) + ι``, where t counts versions and s staleness, both from 1.
    Half-way through its job, a client that started from version o merges the newest version g:
    ``w ← (1 - β) w + β x_g`` with ``β = μ φ / (1 + μ φ)`` and ``φ = γ / √g · (1 - υ / √(g - o + 1))``.
    """

    about = About(
        title="FedASMU",
        paper="Liu et al. 2024 (re-implemented from secondary sources)",
        secondary=True,
        family="asynchronous",
        client_work="a second download half-way, merged into the local model",
        colour="#9a9a00",
    )

    midway = 0.5

    class Settings(MixingMethod.Settings):
        """Options of FedASMU."""

        mu: float = Field(1.0, ge=0)
        """μ, the factor of ξ in α and of φ in β; 0 mixes nothing in."""

    settings: Settings

    def weight_of(self, update: Update) -> float:
        """Return the mixing weight α for an update."""
        mu, staleness = self.settings.mu, update.staleness + 1
        freshness = LAMBDA / (math.sqrt(self.version + 1) * staleness**SIGMA) + IOTA
        return mu * freshness / (1 + mu * freshness)

    def midway_model(self, start_version: int) -> Midway | None:
        """Return the newest model and its mixing weight β; None if the client already has that model."""
        mu, newest = self.settings.mu, self.version
        if newest == start_version:
            return None
        newer = 1 - UPSILON / math.sqrt(newest - start_version + 1)
        freshness = GAMMA / math.sqrt(newest) * max(newer, 0.0)
        return Midway(self.x, mu * freshness / (1 + mu * freshness))
