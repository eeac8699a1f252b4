"""A simulation without training, which shows when each client trains, from which version, and how stale updates are.

Delays do not depend on weights, so the clock can run alone. It uses no tensors: a server that only counts updates
takes the place of the method.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heapreplace
from math import inf
from typing import Any

from torch import Tensor

from asyncfl_lite.simulator.jobs import Arrival, Job, Outcome, Receipt, Update
from asyncfl_lite.simulator.scheduling import DispatchAfterAggregation as AFTER
from asyncfl_lite.simulator.scheduling import DispatchBeforeAggregation as BEFORE
from asyncfl_lite.simulator.scheduling import Selection, Uniform
from asyncfl_lite.simulator.server import most_accepted
from asyncfl_lite.simulator.simulation import Simulation, drawn_duration

_row: Any = tuple.__new__
"""Makes a named tuple of a row in half the time."""
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

    algorithm: VersionCounter

    def deliver(self, job: Job, staleness: int) -> Receipt:
        """Count the job's update, and show it to the selection policy if the policy uses updates."""
        receipt = self.algorithm.receive()
        if type(self.selection).observe is not Selection.observe:
            self.selection.observe(job.update(staleness))
        return receipt

    def _needed(self, jobs: list[Job]) -> list[Job]:
        """Leave out none, as counting costs nothing."""
        return jobs

    def run_alone(self, outcomes: Sequence[Outcome] | None = None) -> None:
        """Run to the end, without a trainer; ``outcomes`` are what each client's jobs report, by default nothing."""
        with _no_collection():
            if self._is_plain:
                self._run_plain(outcomes)
            elif outcomes is None:
                self.run(lambda jobs: [NOTHING] * len(jobs))
            else:
                self.run(lambda jobs: [outcomes[job.client] for job in jobs])

    @property
    def _is_plain(self) -> bool:
        """Whether each arrival only counts, and starts one job of a uniformly random idle client."""
        watched = self.observers or self.version_observers
        kinds = type(self), type(self.algorithm), type(self.selection)
        plain = kinds == (ClockOnly, VersionCounter, Uniform) and type(self.scheduling) in (BEFORE, AFTER)
        return plain and self.together and not watched and self.algorithm.buffer_size <= most_accepted(self.scheduling)

    def _run_plain(self, outcomes: Sequence[Outcome] | None) -> None:
        """Run to the end as :meth:`steps` does, in one loop over plain numbers, which takes half as long.

        Each line does what the method named beside it does for one arrival.
        """
        for _ in self.steps():
            break  # the first clients are dispatched, and the loop goes on from here
        else:
            return
        counter, held, idle, position = self.algorithm, self.held, *self.idle.arrays
        jobs_of, arrivals, before = self.jobs_of, self._arrivals, type(self.scheduling) is BEFORE
        delays, random, delay_stream = self.delays, self.choice_stream.random, self.delay_stream
        rounds, horizon, server_time, buffer_size = self.rounds, self.horizon, self.server_time, counter.buffer_size
        told = None if outcomes is None else [(o.num_samples, o.train_loss, o.train_accuracy) for o in outcomes]
        keep, received = self.keep_arrivals, self.received
        nothing = (NOTHING.num_samples, NOTHING.train_loss, NOTHING.train_accuracy)
        clock, number, version, filled, trained = self.clock, self.sequence_no, counter.version, counter.filled, 0
        heap = [(due, no, j.client, j.number, j.start_version, j.dispatched_at, j.duration) for due, no, j in self.heap]
        while version < rounds and heap and heap[0][0] <= horizon:
            finish, sequence_no, client, _, start_version, dispatched_at, _ = heap[0]
            if sequence_no >= trained:  # steps: all jobs so far are trained now
                trained = number
            if finish > clock:
                clock = finish
            if held[start_version] == 1:  # _free
                del held[start_version]
            else:
                held[start_version] -= 1
            staleness, sent, sent_at = version - start_version, version, clock
            filled += 1  # VersionCounter.receive
            if filled == buffer_size:
                filled = 0
                version += 1
                clock += server_time
            if keep:
                loss = nothing if told is None else told[client]
                row = (client, dispatched_at, finish, start_version, staleness, *loss, True, version, "", "")
                arrivals.append(_row(Arrival, row))
            received += 1
            if not before:
                sent, sent_at = version, clock
                if version >= rounds:
                    heappop(heap)
                    position[client] = len(idle)
                    idle.append(client)
                    break
            index = int(random() * (len(idle) + 1))  # IdleClients.add of the reporter, draw, and remove
            if index < len(idle):
                chosen, idle[index], position[client] = idle[index], client, index
                position[chosen] = -1
                client = chosen
            duration = drawn_duration(delays, client, delay_stream)
            nth = jobs_of[client]
            jobs_of[client] = nth + 1
            heapreplace(heap, (sent_at + duration, number, client, nth, sent, sent_at, duration))
            number += 1
            if sent in held:  # dispatch
                held[sent] += 1
            else:
                held[sent] = 1
                if len(held) > self.most_versions_in_flight:
                    self.most_versions_in_flight = len(held)
        self.clock = max(clock, horizon) if horizon < inf and version < rounds else clock
        self.sequence_no, self.received, self.accepted_in_a_row = number, received, filled
        counter.version, counter.filled, self.observed_version = version, filled, version
        jobs = [Job(*row[:6], None, duration=row[6]) for row in heap]
        for job in jobs:
            if job.sequence_no < trained and job.finish_time <= horizon:
                job.outcome = NOTHING if outcomes is None else outcomes[job.client]
        self.heap = [(job.finish_time, job.sequence_no, job) for job in jobs]
        self.untrained = [job for job in self.jobs if job.outcome is None and job.finish_time <= horizon]


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
