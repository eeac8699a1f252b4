"""The clock of a run in which clients can fail.

To the server, a job is in flight until it arrives or the server gives up on it, whatever has happened to its client. A
lost job is therefore on the heap like any other, at the time at which the server gives up on it, and is never trained.
Two more kinds of event come between arrivals: a second copy of an update arrives, or a client comes or leaves.

If several events happen at the same time, clients come and leave first, so that no client is sent work at the time at
which it leaves. If fewer clients are present than are wanted, slots stay unfilled until clients come back.
"""

from __future__ import annotations

import math
from array import array
from heapq import heappop, heappush
from typing import Any

from asyncfl_lite.base.errors import SimulationError
from asyncfl_lite.simulator.clock_only import ClockOnly
from asyncfl_lite.simulator.faults import (
    DUPLICATE,
    GIVEN_UP,
    LEFT,
    Fates,
    Faults,
    Presence,
    PresentClients,
    damaged,
    second_copy,
)
from asyncfl_lite.simulator.jobs import Arrival, Fate, Job, Receipt
from asyncfl_lite.simulator.simulation import Simulation

MOST_LOST_IN_A_ROW = 10_000
"""Smallest number of consecutive lost or damaged jobs that ends a run without a horizon; more if losses are likely."""


class FaultySimulation(Simulation):
    """A :class:`~asyncfl_lite.simulator.simulation.Simulation` in which clients can fail.

    Args:
        parts, seed, options: the arguments of :class:`~asyncfl_lite.simulator.simulation.Simulation`.
        faults: the failures of clients, and the time after which the server gives up on a job.

    Attributes:
        presence: the clients that are present; None if all clients are always present.
        unfilled: how many dispatches wait for clients to come back; 0 unless clients come and go.
        awaited: clients that get the current model as soon as they come back.
        fates: the random streams of each job's fate.
        copies: ``(time, sequence_no, job)`` of every update that will arrive a second time, the earliest first.
        lost_in_a_row: how many jobs in a row were lost or damaged.

    Raises:
        SimulationError: also when no client is in flight and none comes back, or too many jobs are lost in a row.
    """

    def __init__(self, *parts: Any, faults: Faults, seed: int = 0, **options: Any) -> None:
        super().__init__(*parts, seed=seed, **options)
        clients = self.idle.as_list()
        self.faults = faults
        self.presence: Presence | None = None
        if faults.comes_and_goes:
            self.presence = Presence(faults, clients, seed)
            self.idle = PresentClients(clients, self.idle.highest, self.presence)
        self.unfilled = 0
        self.awaited: set[int] = set()
        self.time_out = math.inf if faults.time_out is None else faults.time_out
        self.fates = Fates(faults, self.delays, seed)
        self.copies: list[tuple[float, int, Job]] = []
        self.last_arrived = array("q", [-1]) * (self.idle.highest + 1)
        self.lost_in_a_row = 0

    @property
    def busy(self) -> int:
        """Number of clients that train now, plus the slots that wait for a client to come back."""
        return self.in_flight + self.unfilled

    # What comes next ----------------------------------------------------------------------------------------

    def _next_arrival(self) -> Job | None:
        """Process all events before the next arrival; return its job, or None at the end of the run."""
        while self.algorithm.version < self.rounds:
            arrives = self.heap[0][0] if self.heap else math.inf
            again = self.copies[0][0] if self.copies else math.inf
            changes = self.next_change
            now = min(arrives, again, changes)
            if now == math.inf and self.horizon == math.inf:
                raise self._nobody_left()
            if now > self.horizon or now == math.inf:
                return None
            if self.midway:
                self._pass_midway(now)
            if changes == now:
                self._come_and_go(now)
            elif again == now:
                self._receive(heappop(self.copies)[2])
            elif (fate := self.heap[0][2].fate) and fate.lost:
                self._lose(*heappop(self.heap))
            else:
                return self.heap[0][2]
        return None

    @property
    def next_change(self) -> float:
        """Time at which the next client comes or leaves; infinite if none does, or if no job or slot depends on it."""
        waiting = self.heap or self.unfilled or self.awaited
        return self.presence.next_change if waiting and self.presence is not None else math.inf

    def _nobody_left(self) -> SimulationError:
        return SimulationError(
            f"nobody is in flight at time {self.clock:g}, version {self.algorithm.version} of {self.rounds}, and no "
            "client comes back: lengthen the trace, or set a horizon"
        )

    @property
    def _present(self) -> PresentClients:
        """The idle clients, in a run in which clients come and go."""
        if not isinstance(self.idle, PresentClients):
            raise SimulationError("the clients of this run do not come and go")
        return self.idle

    # Clients that come and go -------------------------------------------------------------------------------

    def _come_and_go(self, until: float) -> None:
        """Process clients that come or leave up to ``until``, or up to now if later; those that come may fill slots."""
        happened = self._present.presence.advance(max(until, self.clock))
        for client, comes in happened:
            if comes:
                self._present.come(client)
            else:
                self._present.leave(client)
        for client in dict.fromkeys(client for client, comes in happened if comes):
            if client in self.idle:  # it may have left again, or been sent work
                self._fill_slot(client, until)

    def _fill_slot(self, client: int, now: float) -> None:
        if client in self.awaited:
            self.awaited.remove(client)
        elif self.unfilled and self.scheduling.may_fill(client):
            self.unfilled -= 1
        else:
            return
        self.clock = max(self.clock, now)
        self.dispatch(client)

    def dispatch_idle(self, count: int, reporter: int | None = None) -> None:
        """Send the current model to ``count`` idle clients; if there are too few, slots stay empty."""
        if self.presence is not None:
            self._come_and_go(self.clock)
            here = min(count, len(self.idle))
            self.unfilled += count - here
            count = here
        if count:
            super().dispatch_idle(count, reporter)

    def dispatch(self, client: int) -> None:
        """Send the current model to ``client``, now or, if it is away, as soon as it comes back."""
        if self.presence is not None:
            self._come_and_go(self.clock)
            if client in self._present.aside:
                self.awaited.add(client)
                return
        super().dispatch(client)

    def call_off(self) -> None:
        """Cancel every job in flight, and every dispatch that waits for a client to come back."""
        super().call_off()
        self.unfilled = 0
        self.awaited.clear()

    # Jobs that are lost, late, duplicated or damaged --------------------------------------------------------

    def _send(self, job: Job) -> None:
        fate = self.fates.draw(job.client)
        if fate is not None:
            job.duration *= self.fates.pace(fate)
            job.finish_time = job.dispatched_at + job.duration
        gives_up = job.dispatched_at + self.time_out
        if lost := self._why_lost(job, fate, gives_up):
            job.finish_time, job.fate = math.inf, Fate(lost)
            heappush(self.heap, (gives_up, job.sequence_no, job))
        else:
            job.fate = fate
            super()._send(job)

    def _why_lost(self, job: Job, fate: Fate | None, gives_up: float) -> str:
        if fate is not None and fate.lost:
            return fate.lost
        if self.presence is not None and self.presence.leaves[job.client] < min(job.finish_time, gives_up):
            return LEFT
        return GIVEN_UP if job.finish_time > gives_up else ""

    def _lose(self, gives_up: float, _: int, job: Job) -> None:
        self.clock = max(self.clock, gives_up)
        lost = job.fate.lost if job.fate else ""
        self._end(job, lost)
        self._count_lost(lost)
        self.scheduling.after_lost(self, job.client)
        self._note()

    def _receive(self, job: Job) -> None:
        """Process an arrival, or refuse it if its job number shows that this update has arrived before."""
        if job.number <= self.last_arrived[job.client]:
            self._refuse_copy(job)
            return
        self.last_arrived[job.client] = job.number
        fate = job.fate
        if fate is not None and fate.again is not None:
            copy = second_copy(job, fate.again)
            heappush(self.copies, (copy.finish_time, copy.sequence_no, copy))
        if fate is not None and fate.damage:
            job.outcome = damaged(job.done, fate.damage)
            self._count_lost("damaged")
        else:
            self.lost_in_a_row = 0
        super()._receive(job)

    def _refuse_copy(self, job: Job) -> None:
        self.clock = max(self.clock, job.finish_time)
        version = self.algorithm.version
        if self.keep_arrivals or self.observers:
            self._note(Arrival.of(job, version - job.start_version, version, DUPLICATE))

    def _check_progress(self, job: Job, refused: str) -> None:
        fate = job.fate
        if fate is None or not fate.damage:
            super()._check_progress(job, refused)

    def _count_lost(self, why: str) -> None:
        self.lost_in_a_row += 1
        chance = (1 - self.faults.dropout) * (1 - self.faults.damage)
        limit = math.ceil(max(MOST_LOST_IN_A_ROW, 30 * self.scheduling.most_in_flight) / chance)
        if self.lost_in_a_row >= limit and self.horizon == math.inf:
            raise SimulationError(
                f"the last {limit} jobs were all lost or damaged, the last of them {why}: "
                "raise time_out or available, or lower dropout or damage"
            )

    # Saving -------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the base class's state and the states of presence, second copies and the random streams of faults."""
        return {
            **super().state(),
            "unfilled": self.unfilled,
            "awaited": sorted(self.awaited),
            "reached": None if self.presence is None else self.presence.reached,
            "aside": [] if self.presence is None else sorted(self._present.aside),
            "fates": self.fates.state(),
            "copies": [job.state() for _, _, job in sorted(self.copies)],
            "last_arrived": self.last_arrived.tolist(),
            "lost_in_a_row": self.lost_in_a_row,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Load a saved state."""
        super().restore(state)
        self.unfilled = state["unfilled"]
        self.awaited = set(state["awaited"])
        if self.presence is not None:
            self.presence.go_back_to(state["reached"])
            self.idle = PresentClients(self.idle.as_list(), self.idle.highest, self.presence, state["aside"])
        self.fates.restore(state["fates"])
        self.copies = [(job.finish_time, job.sequence_no, job) for job in map(Job.restored, state["copies"])]
        self.last_arrived = array("q", state["last_arrived"])
        self.lost_in_a_row = state["lost_in_a_row"]


class FaultyClock(ClockOnly, FaultySimulation):
    """A simulation without training in which clients can fail, for a server that only counts updates."""

    def deliver(self, job: Job, staleness: int) -> Receipt:
        """Count the job if its update is not damaged."""
        fate = job.fate
        if fate is not None and fate.damage:
            return Receipt(False, "damaged")
        return super().deliver(job, staleness)


def faulty(kind: type[Simulation]) -> type[FaultySimulation]:
    """Return the subclass of ``kind`` in which clients can fail."""
    return {Simulation: FaultySimulation, ClockOnly: FaultyClock}[kind]
