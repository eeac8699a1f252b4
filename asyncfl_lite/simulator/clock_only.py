"""A simulation without training, which shows when each client trains, from which version, and how stale updates are.

Delays do not depend on weights, so the clock can run alone. It uses no tensors: a server that only counts updates
takes the place of the method.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from asyncfl_lite.simulator.jobs import Job, Outcome, Receipt, Update
from asyncfl_lite.simulator.scheduling import Selection
from asyncfl_lite.simulator.simulation import Simulation

NOTHING = Outcome(None)
VERSION_MADE, BUFFERED = Receipt(True), Receipt(False)


class VersionCounter:
    """A server without a model that makes a version after every ``buffer_size`` updates."""

    x = buffers = midway = None

    def __init__(self, buffer_size: int = 1) -> None:
        self.buffer_size = buffer_size
        self.version = 0
        self.filled = 0

    def control_sent(self) -> None:
        """Return None, since clients add nothing to their gradients."""

    def correction_for(self, client: int, control: Tensor) -> Tensor:
        """Return ``control`` unchanged; never called, since no control variate is sent."""
        return control

    def midway_model(self, start_version: int) -> None:
        """Return None, since no client is sent a newer model half-way through its job."""

    def receive(self, update: Update | None = None) -> Receipt:
        """Count one update, without reading it, and make a version when the buffer is full."""
        self.filled += 1
        return VERSION_MADE if self.filled == self.buffer_size and self.flush() else BUFFERED

    def flush(self) -> bool:
        """Make a version from the buffered updates; return whether there were any."""
        if not self.filled:
            return False
        self.filled = 0
        self.version += 1
        return True


class ClockOnly(Simulation):
    """A :class:`.Simulation` whose server is a :class:`VersionCounter`; its jobs have no loss and no delta."""

    def __init__(self, counter: VersionCounter, *parts: Any, **options: Any) -> None:
        super().__init__(counter, *parts, **options)
        self.counter = counter

    def deliver(self, job: Job, staleness: int) -> Receipt:
        """Count the job's update, and show it to the selection policy if the policy uses updates."""
        receipt = self.counter.receive()
        if type(self.selection).observe is not Selection.observe:
            self.selection.observe(job.update(staleness))
        return receipt

    def run_alone(self, outcomes: Sequence[Outcome] | None = None) -> None:
        """Run to the end, without a trainer; ``outcomes`` are what each client's jobs report, by default nothing."""
        with _no_collection():
            if outcomes is None:
                self.run(lambda jobs: [NOTHING] * len(jobs))
            else:
                self.run(lambda jobs: [outcomes[job.client] for job in jobs])


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disable Python's garbage collector inside the block, since a clock makes millions of objects, but no cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
