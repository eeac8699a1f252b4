"""Check T11, which tests FedRevive's Appendix H on writing an update as an interpolation."""

from __future__ import annotations

from asyncfl_reproduction.theory.beds import feed, started, vector
from asyncfl_reproduction.theory.results import AS_PRINTED, ASIDE, REPAIRED, Case, Check, checked


def both_forms(x: float, start: float, delta: float, rate: float) -> tuple[float, float]:
    """Return the next model by Eq. 1 (x + η Δ) and by Appendix H ((1 - η) x + η (x_{t_i} + Δ)).

    Eq. 1 is AFL-DW with β = 0; the interpolation is FedAsync with the constant weight η. The client started from
    x_{t_i} = ``start``, and ``rate`` is η_s.
    """
    settings = {"beta_family": "constant", "beta_constant": 0.0}
    added = started("afl_dw", vector(x), server_lr=rate, **settings)
    mixed = started("fedasync", vector(x), mixing=rate, staleness_function="constant")
    return tuple(feed(server, [vector(delta)], 0, start=vector(start)).item() for server in (added, mixed))


def check_t11() -> Check:
    """Check T11, FedRevive's Appendix H, which writes an aggregation step as a mixture with the client's model."""
    added, mixed = both_forms(1.5, 1.0, 0.4, 0.1)
    fresh = both_forms(1.5, 1.5, 0.4, 0.1)
    return checked(
        "T11",
        [
            Case(AS_PRINTED, "x_t = 1.5, client from 1, Δ = 0.4, η_s = 0.1", mixed, "=", added, 1e-12),
            Case(REPAIRED, "the same with η_s (x_t - x_{t_i}) added", mixed + 0.1 * (1.5 - 1.0), "=", added, 1e-12),
            Case(ASIDE, "a fresh client", fresh[1], "=", fresh[0], 1e-12),
        ],
    )
