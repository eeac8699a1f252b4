"""Functions by which an update's weight falls with its staleness (Xie et al. 2019, §5)."""

from __future__ import annotations


def constant(staleness: float) -> float:
    """Return 1 for every staleness."""
    return 1.0


def hinge(staleness: float, a: float = 10.0, b: float = 4.0) -> float:
    """Return 1 up to staleness ``b``, then ``1 / (a (τ - b) + 1)``; continuous at ``b``."""
    return 1.0 if staleness <= b else 1.0 / (a * (staleness - b) + 1.0)


def poly(staleness: float, a: float = 0.5) -> float:
    """Return ``(1 + τ)^-a``; ``a = 0`` is constant."""
    return (1.0 + staleness) ** -a
