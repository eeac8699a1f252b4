"""A simulation without training, which shows when each client trains, from which version, and how stale updates are.

Delays do not depend on weights, so the clock can run alone. It uses no tensors: a server that only counts updates
takes the place of the method.
"""

from __future__ import annotations

from collections.abc import Sequence

from asyncfl_lite.simulator.jobs import Job, Outcome, Receipt, Update
from asyncfl_lite.simulator.scheduling import Selection
from asyncfl_lite.simulator.server import Server
from asyncfl_lite.simulator.simulation import Simulation

NOTHING = Outcome(None)


class VersionCounter(Server):
    """A server without a model that makes a version after every ``buffer_size`` updates."""

    x = buffers = None

    def __init__(self, buffer_size: int = 1) -> None:
        self.buffer_size = buffer_size
        self.version = 0
        self.filled = 0

    def receive(self, update: Update | None = None) -> Receipt:
        """Count one update, without reading it, and make a version when the buffer is full."""
        self.filled += 1
        return Receipt(self.filled == self.buffer_size and self.flush())

    def flush(self) -> bool:
        """Make a version from the buffered updates; return whether there were any."""
        made = self.filled > 0
        self.version += made
        self.filled = 0
        return made


class ClockOnly(Simulation):
    """A :class:`.Simulation` whose server is a :class:`VersionCounter`; its jobs have no loss and no delta."""

    algorithm: VersionCounter
    outcomes: Sequence[Outcome] | None = None

    def _send(self, job: Job) -> None:
        job.outcome = NOTHING if self.outcomes is None else self.outcomes[job.client]
        super()._send(job)

    def deliver(self, job: Job, staleness: int) -> Receipt:
        """Count the job unless its update is damaged; show it to the selection policy if the policy uses updates."""
        if job.fate is not None and job.fate.damage:
            return Receipt(False, "damaged")
        if type(self.selection).observe is not Selection.observe:
            self.selection.observe(job.update(staleness))
        return self.algorithm.receive()

    def run_alone(self, outcomes: Sequence[Outcome] | None = None) -> None:
        """Run to the end, without a trainer; ``outcomes`` are what each client's jobs report, by default nothing."""
        self.outcomes = outcomes
        for _ in self.steps():
            raise AssertionError("jobs on this clock are never trained")
