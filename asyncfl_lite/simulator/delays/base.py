"""Delay laws, which draw how long each job of a client takes on the virtual clock.

A law's ``prepare`` draws each client's fixed properties once (its category, its mean). The object that it returns draws
the duration of each job. The two use separate random streams, so that more draws from one never change the other. The
simulator needs only ``draw`` (:class:`.Delays`); :class:`ClientDelays` adds categories, which tables show.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from asyncfl_lite.base.errors import ConfigError, shown
from asyncfl_lite.base.registry import Registry, Settings
from asyncfl_lite.base.streams import no_global_draws
from asyncfl_lite.simulator.simulation import Delays


@dataclass(frozen=True, eq=False)
class ClientDelays(ABC):
    """The properties of N clients that a delay law fixes for the whole run; durations of jobs are drawn from them.

    An instance holds arrays and never changes, so that a saved run needs only the states of the run's generators.

    Attributes:
        category_index: (N,) int8 index of a client's category in ``category_names``, or None.
        category_names: the names of the law's categories.
    """

    category_index: np.ndarray | None = field(default=None, kw_only=True)
    category_names: tuple[str, ...] = field(default=(), kw_only=True)

    @cached_property
    def categories(self) -> list[str] | None:
        """Name of each client's category, by client index; None if the law has no categories."""
        if self.category_index is None:
            return None
        return [self.category_names[index] for index in self.category_index.tolist()]

    @abstractmethod
    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of one job of ``client``, in the law's unit: finite, at least 0.

        Args:
            client: index of the client, 0 to N - 1.
            rng: the run's stream ``delays``.
        """


@dataclass(frozen=True, eq=False)
class UniformDelays(ClientDelays):
    """Durations uniform between ``low`` and ``low + width``, both (N,); a width of 0 means a fixed duration."""

    low: np.ndarray
    width: np.ndarray

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of one job of ``client``, in the law's unit."""
        return self.low.item(client) + self.width.item(client) * rng.random()


@dataclass(frozen=True, eq=False)
class ExponentialDelays(ClientDelays):
    """Durations with an exponential part of mean ``mean`` and a uniform part from ``low`` to ``low + width``."""

    mean: np.ndarray
    low: np.ndarray
    width: np.ndarray

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of one job of ``client``, in the law's unit."""
        uniform = self.low.item(client) + self.width.item(client) * rng.random()
        return uniform + self.mean.item(client) * rng.standard_exponential()


@dataclass(frozen=True, eq=False)
class TraceDelays(ClientDelays):
    """Recorded durations of each client: ``seconds[starts[client]:starts[client + 1]]``."""

    seconds: np.ndarray
    starts: np.ndarray

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return one of the client's recorded durations in seconds, each as likely as the others."""
        start, end = self.starts.item(client), self.starts.item(client + 1)
        return self.seconds.item(start + int(rng.random() * (end - start)))


class DelayLaw(Settings):
    """Abstract base of delay laws; a new law defines ``prepare`` (and ``unit``, if it has one) and is registered."""

    revision: ClassVar[int] = 1
    """Revision of the law's numbers; increase it when their meaning changes, to mark older results as outdated."""

    unit: ClassVar[str] = "time units"
    """Unit of virtual time under this law, for example ``"s"`` for seconds."""

    @abstractmethod
    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> Delays:
        """Draw the properties that each client keeps for the whole run.

        Args:
            num_samples: (N,) number of training samples of each client.
            rng: the run's stream ``delays setup``.

        Returns:
            An object with a method ``draw(client, rng)`` like :meth:`ClientDelays.draw`; it need not be a
            :class:`ClientDelays`. If it has no ``categories``, tables leave that column empty. It must not change from
            draw to draw, since a checkpoint saves only the states of generators.
        """


DELAYS: Registry[DelayLaw] = Registry("delay")


def prepared(law: DelayLaw, num_samples: np.ndarray, rng: np.random.Generator) -> Delays:
    """Return, after a check, the delays that ``law`` prepares for clients with the given sample counts.

    Raises:
        ConfigError: if a user's own law has no unit, or if its delays have no ``draw`` or a wrong number of categories.
    """
    name = type(law).__name__
    unit = getattr(law, "unit", None)
    if not isinstance(unit, str) or not unit:
        raise ConfigError(f"delay: {name} must state its unit of time, such as unit = 's', got {shown(unit)}")
    with no_global_draws(law, f"delay: {name}.prepare", "the generator that it is given"):
        delays = law.prepare(num_samples.copy(), rng)
    if not callable(getattr(delays, "draw", None)):
        raise ConfigError(f"delay: {name}.prepare must return an object with draw(client, rng), got {shown(delays)}")
    categories = getattr(delays, "categories", None)
    if categories is not None and len(categories) != len(num_samples):
        raise ConfigError(
            f"delay: {name} must have a category for each of {len(num_samples)} clients, got {len(categories)}"
        )
    return delays


def same_for_all(low: float, high: float, num_clients: int) -> UniformDelays:
    """Return uniform delays with the same bounds for every client."""
    return UniformDelays(np.full(num_clients, low), np.full(num_clients, high - low))
