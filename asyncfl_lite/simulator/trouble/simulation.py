"""The clock of a run in which things go wrong at clients.

To the server a job is in flight until it arrives or the server gives up on it, whatever became of its client. A lost
job is therefore on the heap like any other, with the time at which the server gives up on it, and is never trained.
Two more kinds of event come between arrivals: a second copy of an update arrives, or a client comes or leaves.
"""

from __future__ import annotations

import math
from array import array
from heapq import heappop, heappush
from typing import Any

from asyncfl_lite.base.errors import SimulationError
from asyncfl_lite.simulator.clock_only import ClockOnly
from asyncfl_lite.simulator.jobs import DUPLICATE, GIVEN_UP, LEFT, Arrival, Fate, Job
from asyncfl_lite.simulator.simulation import Simulation
from asyncfl_lite.simulator.trouble.coming_and_going import ComingAndGoing
from asyncfl_lite.simulator.trouble.fates import Fates, damaged, second_copy
from asyncfl_lite.simulator.trouble.settings import Trouble

PATIENCE = 10_000
"""Jobs that may come to nothing in a row, and more where chance makes that likely."""


class TroubledSimulation(ComingAndGoing):
    """A :class:`~asyncfl_lite.simulator.simulation.Simulation` of clients in trouble.

    Args:
        parts, seed, options: as :class:`~asyncfl_lite.simulator.simulation.Simulation` takes them.
        trouble: what goes wrong, and how long the server waits.

    Attributes:
        fates: what draws the fate of each job.
        copies: ``(time, sequence_no, job)`` of every update that is to arrive a second time, the earliest first.
        fruitless: how many jobs in a row were lost or damaged.

    Raises:
        SimulationError: also when nobody is in flight and nobody comes back, or too many jobs come to nothing.
    """

    def __init__(self, *parts: Any, trouble: Trouble, seed: int = 0, **options: Any) -> None:
        super().__init__(*parts, trouble=trouble, seed=seed, **options)
        self.time_out = math.inf if trouble.time_out is None else trouble.time_out
        self.fates = Fates(trouble, self.delays, seed)
        self.copies: list[tuple[float, int, Job]] = []
        self.last_arrived = array("q", [-1]) * (self.idle.highest + 1)
        self.fruitless = 0

    def _goes_on(self) -> bool:
        """Let everything happen that comes before the next arrival; return whether there is one within the run."""
        while self.algorithm.version < self.rounds:
            arrives = self.heap[0][0] if self.heap else math.inf
            again = self.copies[0][0] if self.copies else math.inf
            changes = self.next_change
            now = min(arrives, again, changes)
            if now == math.inf and self.horizon == math.inf:
                raise self.nobody()
            if now > self.horizon or now == math.inf:
                return False
            if self.midway:
                self._pass_midway(now)
            if changes == now:
                self._come_and_go(now)
            elif again == now:
                self._receive(heappop(self.copies)[2])
            elif (fate := self.heap[0][2].fate) is not None and fate.lost:
                self._lose(heappop(self.heap)[2])
            else:
                return True
        return False

    def _send(self, job: Job, duration: float) -> None:
        """Put a job on its way, as its fate has it."""
        fate = self.fates.draw(job.client)
        if fate is not None:
            duration *= self.fates.pace(fate)
            job.finish_time = job.dispatched_at + duration
        gives_up = job.dispatched_at + self.time_out
        lost = self._why_lost(job, fate, gives_up)
        if not lost:
            job.fate = fate
            super()._send(job, duration)
            return
        job.finish_time, job.fate = gives_up, Fate(lost)
        self.held.add(job.start_version)
        heappush(self.heap, (gives_up, job.sequence_no, job))

    def _why_lost(self, job: Job, fate: Fate | None, gives_up: float) -> str:
        """Return what keeps a job from arriving before the server gives up on it, or nothing."""
        if fate is not None and fate.lost:
            return fate.lost
        if self.presence is not None and self.presence.leaves[job.client] < min(job.finish_time, gives_up):
            return LEFT
        return GIVEN_UP if job.finish_time > gives_up else ""

    def _lose(self, job: Job) -> None:
        """Let the server give up on a job."""
        self.clock = max(self.clock, job.finish_time)
        self._end(job, job.fate.lost)
        self._bear(job)
        version = self.algorithm.version
        self.scheduling.after_lost(self, job.client)
        if self.algorithm.version != version:
            for observe in self.version_observers:
                observe(self)

    def _receive(self, job: Job) -> None:
        """Receive what arrives; the server knows by the job's number whether it had arrived before."""
        if job.number <= self.last_arrived[job.client]:
            self._refuse_copy(job)
            return
        self.last_arrived[job.client] = job.number
        fate = job.fate
        if fate is not None and fate.again is not None:
            copy = second_copy(job)
            heappush(self.copies, (copy.finish_time, copy.sequence_no, copy))
        if fate is not None and fate.damage:
            job.outcome = damaged(job.outcome, fate.damage)
            self._bear(job)
        else:
            self.fruitless = 0
        super()._receive(job)

    def _refuse_copy(self, job: Job) -> None:
        """Note a second copy in the table of updates, and nowhere else."""
        self.clock = max(self.clock, job.finish_time)
        version = self.algorithm.version
        if self.keep_arrivals or self.observers:
            self._record(Arrival.of(job, version - job.start_version, version, DUPLICATE))

    def _check_progress(self, job: Job) -> None:
        """Count refused updates in a row but for those that were damaged, which say nothing of the method."""
        if job.fate is None or not job.fate.damage:
            super()._check_progress(job)

    def _bear(self, job: Job) -> None:
        """Count one more job that came to nothing; end a run in which too many did in a row."""
        self.fruitless += 1
        chance = (1 - self.trouble.drop_out) * (1 - self.trouble.damage)
        limit = math.ceil(max(PATIENCE, 30 * self.scheduling.most_in_flight) / chance)
        if self.fruitless >= limit and self.horizon == math.inf:
            raise SimulationError(
                f"the last {limit} jobs were all lost or damaged, the last of them {job.fate.lost or 'damaged'}: "
                "raise time_out or available, or lower drop_out or damage"
            )

    def more_state(self) -> dict[str, Any]:
        """Return random streams, second copies on their way, and who is there."""
        return {
            **super().more_state(),
            "fates": self.fates.state(),
            "copies": [job.state() for _, _, job in sorted(self.copies)],
            "last_arrived": self.last_arrived.tolist(),
            "fruitless": self.fruitless,
        }

    def restore_more(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        super().restore_more(state)
        self.fates.restore(state["fates"])
        self.copies = [(job.finish_time, job.sequence_no, job) for job in map(Job.restored, state["copies"])]
        self.last_arrived = array("q", state["last_arrived"])
        self.fruitless = state["fruitless"]


class TroubledClock(ClockOnly, TroubledSimulation):
    """The same without training, for a server that counts updates."""

    def deliver(self, job: Job, staleness: int) -> tuple[bool, bool]:
        """Count the job if it is sound."""
        if job.fate is not None and job.fate.damage:
            return False, False
        return super().deliver(job, staleness)

    def why_refused(self) -> str:
        """Return why the last update was refused."""
        return "damaged"


def troubled(kind: type[Simulation]) -> type[TroubledSimulation]:
    """Return the kind of simulation that does the same where things go wrong at clients."""
    return {Simulation: TroubledSimulation, ClockOnly: TroubledClock}[kind]
