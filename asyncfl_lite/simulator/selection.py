"""Client selection policies, which choose the client that gets work next.

A :class:`Selection` holds no model; it draws only from the simulation's stream of client choices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from asyncfl_lite.base import registry
from asyncfl_lite.base.registry import Registry
from asyncfl_lite.simulator.jobs import Update

SELECTIONS: Registry[Selection] = Registry("selection")


class IdleClients:
    """The clients without work; drawing a random client or removing a given one takes constant time.

    It holds two arrays of 8 bytes per client: the idle clients, and each client's index in that array.

    Args:
        clients: the clients that are idle now.
        highest: the largest client number in the run; by default the largest in ``clients``.
    """

    def __init__(self, clients: Iterable[int], highest: int | None = None) -> None:
        self._clients = array("q", clients)
        self.highest = max(self._clients, default=-1) if highest is None else highest
        self._position = array("q", [-1]) * (self.highest + 1)
        for index, client in enumerate(self._clients):
            self._position[client] = index

    def __len__(self) -> int:
        return len(self._clients)

    def __contains__(self, client: int) -> bool:
        return 0 <= client <= self.highest and self._position[client] >= 0

    @property
    def arrays(self) -> tuple[array[int], array[int]]:
        """The idle clients in their current order, and each client's index there, or -1; for a loop's own use."""
        return self._clients, self._position

    def as_list(self) -> list[int]:
        """Return the clients in their current order (:meth:`draw` depends on the order)."""
        return self._clients.tolist()

    def add(self, client: int) -> None:
        """Add a client that is idle again."""
        self._position[client] = len(self._clients)
        self._clients.append(client)

    def remove(self, client: int) -> None:
        """Remove a client, which must be idle.

        Raises:
            KeyError: when the client is not idle.
        """
        index = self._position[client]
        if index < 0:
            raise KeyError(client)
        self._position[client] = -1
        last = self._clients.pop()
        if last != client:
            self._clients[index] = last
            self._position[last] = index

    def draw(self, rng: np.random.Generator) -> int:
        """Return a uniformly random idle client, without removing it."""
        return self._clients[int(rng.random() * len(self._clients))]


class Selection(ABC):
    """A policy that chooses the client that gets work next.

    Args:
        settings: the policy's own options, by name.
    """

    revision: ClassVar[int] = 1
    """Revision of the policy's numbers; increase it when their meaning changes, to mark older results as outdated."""

    needs_rounds: ClassVar[bool] = False
    """Whether the policy only makes sense when clients are chosen one round at a time."""
    overcommit: float = 1.0
    """Number of clients that a round invites, as a multiple of the number wanted."""

    class Settings(registry.Settings):
        """The default settings class, with no options; a policy that has options defines its own."""

    settings: Settings

    def __init__(self, **settings: Any) -> None:
        self.settings = self.Settings(**settings)

    def start(self, num_samples: Mapping[int, int]) -> None:  # noqa: B027
        """Receive each client's sample count, before the first choice."""

    @abstractmethod
    def choose(self, idle: IdleClients, count: int, reporter: int | None, rng: np.random.Generator) -> Iterable[int]:
        """Choose ``count`` of the ``idle`` clients; each is removed before the next is chosen.

        Args:
            idle: the clients without work.
            count: how many clients are wanted, at most ``len(idle)``.
            reporter: the client that has just reported, if one has.
            rng: the run's stream of client choices.
        """

    def observe(self, update: Update) -> None:  # noqa: B027
        """Learn from an update that the server accepted; by default, do nothing."""

    def state(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` loads, as plain numbers, lists and mappings."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027
        """Load a saved state."""


@SELECTIONS.register("uniform")
class Uniform(Selection):
    """A uniformly random idle client; the one that has just reported counts as idle, too (FedEcho Alg. 1)."""

    def choose(self, idle: IdleClients, count: int, reporter: int | None, rng: np.random.Generator) -> Iterable[int]:
        """Choose uniformly random idle clients."""
        if count == 1:  # the usual case, once per event
            return (idle.draw(rng),)
        return (idle.draw(rng) for _ in range(count))


@SELECTIONS.register("same_client")
class SameClient(Selection):
    """The client that reported gets the next job at once; for examples worked by hand."""

    def choose(self, idle: IdleClients, count: int, reporter: int | None, rng: np.random.Generator) -> Iterable[int]:
        """Yield the client that reported; at the start, or if it left, the idle clients with the lowest numbers."""
        for _ in range(count):
            yield reporter if reporter is not None and reporter in idle else min(idle.as_list())
