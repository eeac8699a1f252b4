"""A simulation without training, which shows when each client trains, from which version, and how stale updates are.

Delays do not depend on weights, so the clock can run alone. It uses no tensors: a server that only counts updates
takes the place of the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heapreplace

from asyncfl_lite.simulator.jobs import Arrival, Job, Outcome, Receipt, Update
from asyncfl_lite.simulator.scheduling import DispatchAfterAggregation as AFTER
from asyncfl_lite.simulator.scheduling import DispatchBeforeAggregation as BEFORE
from asyncfl_lite.simulator.scheduling import Selection, Uniform
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

    def _outcome(self, client: int) -> Outcome:
        return NOTHING if self.outcomes is None else self.outcomes[client]

    def _send(self, job: Job) -> None:
        job.outcome = self._outcome(job.client)
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
        if self._is_plain:
            self._run_plain()
        self.run(lambda jobs: [])  # jobs on this clock have their outcomes from the start

    @property
    def _is_plain(self) -> bool:
        """Whether each arrival only counts, and starts one job of a uniformly random idle client."""
        kinds = type(self), type(self.algorithm), type(self.selection)
        plain = kinds == (ClockOnly, VersionCounter, Uniform) and type(self.scheduling) in (BEFORE, AFTER)
        watched = self.observers or self.version_observers
        return plain and not watched and self.algorithm.buffer_size <= self.scheduling.buffer_size

    def _run_plain(self) -> None:
        """Run as :meth:`run` does, in one loop over plain numbers, which takes less than half as long.

        Comments name the methods whose work is done there.
        """
        self._start()
        counter, held, idle, position = self.algorithm, self.held, *self.idle.arrays
        before, keep, arrivals = type(self.scheduling) is BEFORE, self.keep_arrivals, self._arrivals
        random, jobs_of, clock, number = self.choice_stream.random, self.jobs_of, self.clock, self.sequence_no
        version, filled, buffer_size, received = counter.version, counter.filled, counter.buffer_size, self.received
        rounds, horizon, server_time = self.rounds, self.horizon, self.server_time
        outcome_of, drawn_duration = self._outcome, self._drawn_duration
        heap = [(due, no, j.client, j.number, j.start_version, j.dispatched_at, j.duration) for due, no, j in self.heap]
        while version < rounds and heap and heap[0][0] <= horizon:
            finish, _, client, _, start_version, dispatched_at, _ = heap[0]
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
                outcome = outcome_of(client)
                told = outcome.num_samples, outcome.train_loss, outcome.train_accuracy
                row = (client, dispatched_at, finish, start_version, staleness, *told, True, version, "", "")
                arrivals.append(Arrival(*row))
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
            duration = drawn_duration(client)
            nth = jobs_of[client]
            jobs_of[client] = nth + 1
            heapreplace(heap, (sent_at + duration, number, client, nth, sent, sent_at, duration))
            number += 1
            held[sent] += 1  # dispatch
            if len(held) > self.most_versions_in_flight:
                self.most_versions_in_flight = len(held)
        self.clock, self.sequence_no, self.received, self.accepted_in_a_row = clock, number, received, filled
        counter.version, counter.filled, self.observed_version = version, filled, version
        jobs = [Job(*row[:6], None, outcome=outcome_of(row[2]), duration=row[6]) for row in heap]
        self.heap = [(job.finish_time, job.sequence_no, job) for job in jobs]
