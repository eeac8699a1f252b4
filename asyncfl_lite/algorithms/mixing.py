"""The base class of methods that mix every arriving client model into the global one, and weights that fall with
staleness (Xie et al. 2019, §5)."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from asyncfl_lite.algorithms.base import Algorithm
from asyncfl_lite.simulator.jobs import Update


def poly(staleness: float, a: float = 0.5) -> float:
    """Return ``(1 + τ)^-a``; ``a = 0`` is constant."""
    return (1.0 + staleness) ** -a


def hinge(staleness: float, a: float = 10.0, b: float = 4.0) -> float:
    """Return 1 up to staleness ``b``, then ``1 / (a (τ - b) + 1)``; continuous at ``b``."""
    return 1.0 if staleness <= b else 1.0 / (a * (staleness - b) + 1.0)


class MixingMethod(Algorithm):
    """Base class of methods that set ``x ← (1 - α) x + α x_i`` at every arrival; a subclass chooses α."""

    scheduling = "after_agg"
    buffered = False
    uses_server_lr = False

    @abstractmethod
    def weight_of(self, update: Update) -> float:
        """Return the mixing weight α for an update."""

    def on_receive(self, update: Update) -> bool:
        """Mix the client's model into the global one."""
        weight = self.weight_of(update)
        client_model = self.client_model(update)
        self.mix_buffers(update, weight)
        return self.new_version((1.0 - weight) * self.x + weight * client_model)

    def client_model(self, update: Update) -> Tensor:
        """Return the ``(d,)`` client model to mix in: the trained one, unless a subclass changes it."""
        return self.start_of(update) + update.delta
