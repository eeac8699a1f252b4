"""Who works and who is idle: jobs on the heap until they arrive, trained at any time before, half of the way noted."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from asyncfl_lite.algorithms.base import Algorithm
from asyncfl_lite.simulator.jobs import CALLED_OFF, Job
from asyncfl_lite.simulator.selection import IdleClients


class Held:
    """Which versions clients in flight hold, and how many clients each.

    Attributes:
        most: most distinct versions that were held at one time.
    """

    def __init__(self, versions: Iterable[int] = (), most: int = 0) -> None:
        self.counts = dict(Counter(versions))
        self.most = max(most, len(self.counts))

    def add(self, version: int) -> None:
        """Count one more client that holds ``version``."""
        counts = self.counts
        if version in counts:
            counts[version] += 1
            return
        counts[version] = 1
        if len(counts) > self.most:
            self.most = len(counts)

    def remove(self, version: int) -> None:
        """Count one client fewer."""
        if self.counts[version] == 1:
            del self.counts[version]
        else:
            self.counts[version] -= 1


class InFlight:
    """The part of a simulation that keeps its jobs and clients.

    Args:
        algorithm: a started method, which says whether jobs get a newer model half-way.
        clients: the clients that may be chosen.
        horizon: no job that arrives later is trained.
        together: train all untrained jobs at once; without, the one that is due.

    Attributes:
        clock: virtual time now.
        idle: the clients without work.
        num_clients: how many clients there are.
        owed: how many dispatches wait for clients to come back.
        jobs_of: client -> how many jobs it has had.
        heap: ``(finish_time, sequence_no, job)`` of every job in flight, the earliest first.
        untrained: the jobs that can be trained now.
        midway: ``(time, sequence_no, job)`` of every job that gets a newer model then, the earliest first.
        held: the versions that clients hold.
        ended: ``(client, dispatched_at, start_version, ended_at, why)`` of every job that ended without arriving.
    """

    def __init__(self, algorithm: Algorithm, clients: Sequence[int], horizon: float | None, together: bool) -> None:
        self.algorithm = algorithm
        self.clock = 0.0
        self.idle = IdleClients(clients)
        self.num_clients = len(clients)
        self.owed = 0
        self.jobs_of = array("q", bytes(8 * (self.idle.highest + 1)))
        self.horizon = math.inf if horizon is None else horizon
        self.together = together
        self.heap: list[tuple[float, int, Job]] = []
        self.untrained: list[Job] = []
        self.midway: list[tuple[float, int, Job]] = []
        self.held = Held()
        self.ended: list[tuple[int, float, int, float, str]] = []

    @property
    def in_flight(self) -> int:
        """How many clients train now, as far as the server knows."""
        return len(self.heap)

    @property
    def jobs(self) -> list[Job]:
        """The jobs in flight, in the order of their dispatch."""
        return sorted((job for _, _, job in self.heap), key=lambda job: job.sequence_no)

    @property
    def most_versions_in_flight(self) -> int:
        """Most distinct versions that clients held at one time."""
        return self.held.most

    def _send(self, job: Job, duration: float) -> None:
        """Put a job that takes so long on its way."""
        self.held.add(job.start_version)
        heappush(self.heap, (job.finish_time, job.sequence_no, job))
        if job.finish_time <= self.horizon:  # later ones never arrive: do not train them
            if self.algorithm.midway is None:
                self.untrained.append(job)
            else:
                half_way = job.dispatched_at + self.algorithm.midway * duration
                heappush(self.midway, (half_way, job.sequence_no, job))

    def _next_jobs(self) -> list[Job]:
        """Return what has to be trained now, the job that is due among it, each with its client's correction."""
        if self.together:
            jobs, self.untrained = self.untrained, []
        else:
            jobs = [self.heap[0][2]]
            self.untrained.remove(jobs[0])
        for job in jobs:
            if job.control is not None:
                job.correction = self.algorithm.correction_for(job.client, job.control)
        return jobs

    def _pass_midway(self, until: float) -> None:
        """Give jobs that are half-way by ``until`` the model of that time; then they can be trained."""
        while self.midway and self.midway[0][0] <= until:
            _, _, job = heappop(self.midway)
            job.midway = self.algorithm.midway_model(job.start_version)
            self.untrained.append(job)

    def call_off(self) -> None:
        """Call every job in flight off: its client is idle again, and what it did is lost."""
        for _, _, job in sorted(self.heap):
            self._end(job, CALLED_OFF)
        self.heap, self.untrained, self.midway = [], [], []

    def _end(self, job: Job, why: str) -> None:
        """Note a job that ends now without having arrived; its client is idle again."""
        self.ended.append((job.client, job.dispatched_at, job.start_version, self.clock, why))
        self.idle.add(job.client)
        self.held.remove(job.start_version)
