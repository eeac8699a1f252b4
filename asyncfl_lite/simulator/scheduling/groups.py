"""Policies that dispatch clients in groups: rounds, bursts and refills."""

from __future__ import annotations

import math
from typing import Any

from asyncfl_lite.simulator.scheduling.base import SCHEDULING, Dispatcher, Scheduling


@SCHEDULING.register("rounds")
class Rounds(Scheduling):
    """Synchronous rounds: a round's clients start together and the server waits for the last (FedAvg).

    A selection that over-commits invites more than M_c clients; the first M_c reports complete the round, and the other
    clients' jobs are called off. A lost job counts as a report. A round also ends when no client is in flight any more.
    """

    overcommit = 1.0
    """Number of invited clients as a multiple of M_c; taken from the selection policy at the start."""

    def __init__(self, concurrency: int, buffer_size: int = 1) -> None:
        super().__init__(concurrency, buffer_size)
        self.reported: list[int] = []

    @property
    def most_in_flight(self) -> int:
        """Number of clients that a round invites."""
        return math.ceil(self.overcommit * self.concurrency - 1e-9)

    def start(self, simulation: Dispatcher) -> None:
        """Start the first round."""
        self.overcommit = simulation.selection.overcommit
        self._invite(simulation)

    def after_receive(self, simulation: Dispatcher, client: int, changed: bool) -> None:
        """Start the next round when the last awaited client has reported."""
        self.reported.append(client)
        if len(self.reported) < self.concurrency and simulation.in_flight:
            return
        simulation.call_off()
        if not changed:
            simulation.flush()  # a refused update must not hold the round up for ever
        self._invite(simulation)

    def _invite(self, simulation: Dispatcher) -> None:
        self.reported = []
        simulation.dispatch_idle(min(self.most_in_flight, simulation.num_clients))

    def state(self) -> dict[str, Any]:
        """Return the progress of the round."""
        return {"reported": list(self.reported), "overcommit": self.overcommit}

    def restore(self, state: dict[str, Any]) -> None:
        """Load the progress of the round."""
        self.reported, self.overcommit = list(state["reported"]), state["overcommit"]


@SCHEDULING.register("burst")
class Burst(Scheduling):
    """Clients wait until M of them have reported; then all M get the new model together (KUIPER Alg. 1).

    A client whose job is lost waits with the others. A burst also closes when no client is in flight any more, unless M
    is larger than the concurrency.
    """

    def __init__(self, concurrency: int, buffer_size: int = 1) -> None:
        super().__init__(concurrency, buffer_size)
        self.waiting: list[int] = []

    def after_receive(self, simulation: Dispatcher, client: int, changed: bool) -> None:
        """Dispatch all waiting clients when enough of them have reported."""
        self.waiting.append(client)
        stays_open = simulation.in_flight or self.buffer_size > self.concurrency  # so large a burst never fills
        if len(self.waiting) < self.buffer_size and stays_open:
            return
        if not changed:
            simulation.flush()
        for member in self.waiting:
            simulation.dispatch(member)
        self.waiting = []

    def state(self) -> dict[str, Any]:
        """Return the clients that are waiting."""
        return {"waiting": list(self.waiting)}

    def restore(self, state: dict[str, Any]) -> None:
        """Load the clients that are waiting."""
        self.waiting = list(state["waiting"])


@SCHEDULING.register("refill")
class Refill(Scheduling):
    """M_c / 2 random clients join whenever fewer than M_c are active (FedADT §V: 50 join below 100)."""

    @property
    def batch(self) -> int:
        """Number of clients that join at once."""
        return max(1, self.concurrency // 2)

    @property
    def most_in_flight(self) -> int:
        """Largest number of clients in flight: one below the threshold, plus a whole group."""
        return self.concurrency - 1 + self.batch

    def start(self, simulation: Dispatcher) -> None:
        """Dispatch the first clients at time 0."""
        self._fill(simulation)

    def after_receive(self, simulation: Dispatcher, client: int, changed: bool) -> None:
        """Dispatch a group of clients if the report leaves too few in flight."""
        self._fill(simulation)

    def _fill(self, simulation: Dispatcher) -> None:
        while (busy := simulation.busy) < self.concurrency:
            simulation.dispatch_idle(min(self.batch, simulation.num_clients - busy))
