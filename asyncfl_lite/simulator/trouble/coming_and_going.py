"""A clock on which clients come and go.

At one time clients come and leave before anything else happens, so that nobody is sent work at the time at which they
leave. Where fewer clients are there than are wanted, the dispatches are owed and made when clients come back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from asyncfl_lite.algorithms.base import Algorithm
from asyncfl_lite.base.errors import SimulationError
from asyncfl_lite.simulator.scheduling import Scheduling
from asyncfl_lite.simulator.simulation import Delays, Simulation
from asyncfl_lite.simulator.trouble.presence import Presence, PresentClients
from asyncfl_lite.simulator.trouble.settings import Trouble


class ComingAndGoing(Simulation):
    """The part of a simulation of clients in trouble that knows who is there.

    Args:
        algorithm, scheduling, delays, clients, seed, options: as :class:`.Simulation` takes them.
        trouble: what goes wrong.

    Attributes:
        presence: who is there; None where all always are.
        awaited: clients that get the current model as soon as they come back.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        scheduling: Scheduling,
        delays: Delays,
        clients: Sequence[int],
        *,
        trouble: Trouble,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(algorithm, scheduling, delays, clients, seed=seed, **options)
        self.trouble = trouble
        self.presence: Presence | None = None
        if trouble.comes_and_goes:
            self.presence = Presence(trouble, clients, seed)
            self.idle = PresentClients(clients, self.idle.highest, self.presence)
        self.awaited: set[int] = set()

    @property
    def next_change(self) -> float:
        """When the next client comes or leaves; infinite where none does, or none is waited for."""
        waiting = self.heap or self.owed or self.awaited
        return self.presence.next_change if waiting and self.presence is not None else math.inf

    def _come_and_go(self, until: float) -> None:
        """Note who comes and leaves until a time, or until now if that is later; who comes gets work that is owed."""
        happened = self.presence.advance(max(until, self.clock))
        for client, comes in happened:
            if comes:
                self.idle.come(client)
            else:
                self.idle.leave(client)
        for client in dict.fromkeys(client for client, comes in happened if comes):
            if client in self.idle:  # and not gone again, or sent work by now
                self._make_up_for(client, until)

    def _make_up_for(self, client: int, now: float) -> None:
        """Send the current model to a client that has come back, if it is awaited or a dispatch is owed."""
        if client in self.awaited:
            self.awaited.remove(client)
        elif self.owed and self.scheduling.welcomes(client):
            self.owed -= 1
        else:
            return
        self.clock = max(self.clock, now)
        self.dispatch(client)

    def dispatch_idle(self, count: int, reporter: int | None = None) -> None:
        """Send the current model to ``count`` idle clients; what there are too few clients for is owed."""
        if self.presence is not None:
            self._come_and_go(self.clock)
            here = min(count, len(self.idle))
            self.owed += count - here
            count = here
        if count:
            super().dispatch_idle(count, reporter)

    def dispatch(self, client: int) -> None:
        """Send the current model to ``client``, now or, if it is away, as soon as it comes back."""
        if self.presence is not None:
            self._come_and_go(self.clock)
            if client in self.idle.aside:
                self.awaited.add(client)
                return
        super().dispatch(client)

    def call_off(self) -> None:
        """Call every job in flight off, and every dispatch that is owed."""
        super().call_off()
        self.owed = 0
        self.awaited.clear()

    def nobody(self) -> SimulationError:
        """Return what ends a run in which nobody is in flight and nobody will be."""
        return SimulationError(
            f"nobody is in flight at time {self.clock:g}, version {self.algorithm.version} of {self.rounds}, and no "
            "client comes back: lengthen the trace, or set a horizon"
        )

    def more_state(self) -> dict[str, Any]:
        """Return who is there, and who is waited for."""
        return {
            "awaited": sorted(self.awaited),
            "reached": None if self.presence is None else self.presence.reached,
            "aside": [] if self.presence is None else sorted(self.idle.aside),
        }

    def restore_more(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self.awaited = set(state["awaited"])
        if self.presence is not None:
            self.presence.go_back_to(state["reached"])
            self.idle = PresentClients(self.idle.as_list(), self.idle.highest, self.presence, state["aside"])
