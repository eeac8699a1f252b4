"""The clock of a run: a heap of arrivals, ordered by ``(finish_time, sequence_no)``.

Time is virtual. :meth:`Simulation.steps` is the whole of asynchronous federated learning: pop the
earliest arrival, let the server receive it, dispatch. Delays do not depend on weights, so a job may be
trained at any time before it arrives; the generator yields the jobs that must be trained now, all that
are in flight and untrained, and is sent their outcomes. It knows nothing of models or data.

What happens once an event is kept free of tensors: the heap holds plain tuples, clients are numbers in arrays.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Generator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Protocol

import numpy as np

from asyncfl_lite.algorithms.base import Algorithm, Update
from asyncfl_lite.errors import SimulationError
from asyncfl_lite.jobs import Arrival, Job, Outcome
from asyncfl_lite.scheduling import Scheduling
from asyncfl_lite.selection import IdleClients, Selection, Uniform
from asyncfl_lite.streams import stream


class Delays(Protocol):
    """What the simulator needs of a delay law that was prepared for the clients."""

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of the client's next job."""


Train = Callable[[Sequence[Job]], Sequence[Outcome]]
Observer = Callable[["Simulation", Arrival], None]


class Simulation:
    """One run's clock, dispatches and arrivals.

    Args:
        algorithm: a started method.
        scheduling: when clients are dispatched.
        delays: durations of jobs.
        clients: the clients that may be chosen.
        seed: names the streams of client choices and delays.
        rounds: stop at this version.
        horizon: stop before the first arrival later than this virtual time.
        server_time: virtual time that making a version takes; the server works on one arrival at a time.
        selection: who is dispatched next.
        num_samples: client -> how many samples it has, for selections that go by it; 1 each by default.
        observers: called after each arrival with this simulation and the :class:`Arrival`.
        keep_arrivals: keep every :class:`Arrival`; without, memory does not grow with the length of the run.
        together: ask for the outcomes of all untrained jobs at once; without, for that of the job that is due, so
            that no job is trained that never arrives.

    Attributes:
        clock: virtual time now.
        heap: ``(finish_time, sequence_no, job)`` of every job in flight, the earliest first.
        received: how many jobs have arrived.
        arrivals: every :class:`Arrival` so far.
        called_off: ``(client, dispatched_at, start_version, called_off_at)`` of every job that was called off.
        most_versions_in_flight: most distinct versions that clients held at one time.

    Raises:
        SimulationError: when fewer clients than the concurrency are given, or the self-check fails.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        scheduling: Scheduling,
        delays: Delays,
        clients: Sequence[int],
        *,
        seed: int = 0,
        rounds: int | None = None,
        horizon: float | None = None,
        server_time: float = 0.0,
        selection: Selection | None = None,
        num_samples: Mapping[int, int] | None = None,
        observers: Sequence[Observer] = (),
        keep_arrivals: bool = True,
        together: bool = True,
    ) -> None:
        if rounds is None and horizon is None:
            raise SimulationError("rounds, horizon: a simulation needs one of them to end")
        if len(clients) < scheduling.concurrency:
            raise SimulationError(
                f"concurrency: {scheduling.concurrency} clients at a time were asked for, "
                f"and only {len(clients)} have samples"
            )
        self.algorithm = algorithm
        self.scheduling = scheduling
        self.delays = delays
        self.rounds = math.inf if rounds is None else rounds
        self.horizon = math.inf if horizon is None else horizon
        self.server_time = server_time
        self.selection = selection or Uniform()
        self.selection.start(num_samples or dict.fromkeys(clients, 1))
        self.observers = list(observers)
        self.idle = IdleClients(clients)
        self.clock = 0.0
        self.sequence_no = 0
        self.received = 0
        self.heap: list[tuple[float, int, Job]] = []
        self.untrained: list[Job] = []
        self.midway: list[tuple[float, int, Job]] = []
        self.jobs_of = array("q", bytes(8 * (self.idle.highest + 1)))
        self.versions_in_flight: dict[int, int] = {}
        self.most_versions_in_flight = 0
        self.keep_arrivals = keep_arrivals
        self.together = together
        self.arrivals: list[Arrival] = []
        self.called_off: list[tuple[int, float, int, float]] = []
        self.choice_stream = stream(seed, "client choice")
        self.delay_stream = stream(seed, "delays")
        self.started = False
        self.refused_in_a_row = 0

    @property
    def in_flight(self) -> int:
        """How many clients train now."""
        return len(self.heap)

    @property
    def jobs(self) -> list[Job]:
        """The jobs in flight, in the order of their dispatch."""
        return sorted((job for _, _, job in self.heap), key=lambda job: job.sequence_no)

    @property
    def finished(self) -> bool:
        """Whether the run has reached its rounds or its horizon."""
        if self.algorithm.version >= self.rounds:
            return True
        return self.started and (not self.heap or self.heap[0][0] > self.horizon)

    def steps(self) -> Generator[list[Job], Sequence[Outcome], None]:
        """Run to the end; yields the jobs to train and is sent their outcomes.

        Everything that it knows lives in the object, so a new generator goes on where another one
        stopped.
        """
        if not self.started:
            self.started = True
            self.scheduling.start(self)
        while not self.finished:
            if self.midway:
                self._pass_midway(self.heap[0][0])
            if self.heap[0][2].outcome is None:
                jobs = self._next_jobs()
                outcomes = yield jobs
                for job, outcome in zip(jobs, outcomes, strict=True):
                    job.outcome = outcome
            self._receive(heappop(self.heap)[2])
        if self.horizon < math.inf and self.algorithm.version < self.rounds:
            self.clock = max(self.clock, self.horizon)

    def _next_jobs(self) -> list[Job]:
        """Return what has to be trained now, the job that is due among it."""
        if self.together:
            jobs, self.untrained = self.untrained, []
            return jobs
        due = self.heap[0][2]
        self.untrained.remove(due)
        return [due]

    def run(self, train: Train) -> None:
        """Run to the end with ``train`` turning jobs into outcomes."""
        steps = self.steps()
        try:
            jobs = next(steps)
            while True:
                jobs = steps.send(train(jobs))
        except StopIteration:
            return

    def dispatch(self, client: int) -> None:
        """Send the current model to ``client``, which must be idle."""
        try:
            self.idle.remove(client)
        except KeyError:
            raise SimulationError(f"client {client} was dispatched while it was training") from None
        algorithm, clock, number = self.algorithm, self.clock, self.sequence_no
        version = algorithm.version
        duration = self.delays.draw(client, self.delay_stream)
        arrives = clock + duration
        job = Job(
            arrives,
            number,
            client,
            self.jobs_of[client],
            version,
            clock,
            algorithm.x,
            algorithm.buffers,
            algorithm.correction_for(client),
        )
        self.sequence_no = number + 1
        self.jobs_of[client] += 1
        self._hold(version)
        heappush(self.heap, (arrives, number, job))
        if arrives <= self.horizon:  # later ones never arrive: do not train them
            if algorithm.midway is None:
                self.untrained.append(job)
            else:
                heappush(self.midway, (clock + algorithm.midway * duration, number, job))
        if len(self.heap) > self.scheduling.most_in_flight:
            raise SimulationError(
                f"{self.in_flight} clients in flight, at most {self.scheduling.most_in_flight} allowed"
            )

    def _hold(self, version: int) -> None:
        """Count one more client that holds ``version``."""
        held = self.versions_in_flight
        if version in held:
            held[version] += 1
            return
        held[version] = 1
        if len(held) > self.most_versions_in_flight:
            self.most_versions_in_flight = len(held)

    def _let_go(self, version: int) -> None:
        """Count one client fewer."""
        if self.versions_in_flight[version] == 1:
            del self.versions_in_flight[version]
        else:
            self.versions_in_flight[version] -= 1

    def dispatch_idle(self, count: int, reporter: int | None = None) -> None:
        """Send the current model to ``count`` idle clients, chosen one after another."""
        for client in self.selection.choose(self.idle, count, reporter, self.choice_stream):
            self.dispatch(client)

    def call_off(self) -> None:
        """Call every job in flight off: its client is idle again, and what it did is lost."""
        for _, _, job in sorted(self.heap):
            self.called_off.append((job.client, job.dispatched_at, job.start_version, self.clock))
            self.idle.add(job.client)
        self.heap, self.untrained, self.midway = [], [], []
        self.versions_in_flight.clear()

    def flush(self) -> None:
        """Have the method aggregate what its buffer holds, though it is not full."""
        if self.algorithm.flush():
            self.clock += self.server_time

    def _pass_midway(self, until: float) -> None:
        """Give jobs that are half-way by ``until`` the model of that time; then they can be trained."""
        while self.midway and self.midway[0][0] <= until:
            _, _, job = heappop(self.midway)
            job.midway = self.algorithm.midway_model(job.start_version)
            self.untrained.append(job)

    def _receive(self, job: Job) -> None:
        client, version = job.client, job.start_version
        if not job.finish_time >= job.dispatched_at or client in self.idle:
            raise self._impossible(job)
        if job.finish_time > self.clock:
            self.clock = job.finish_time
        self.idle.add(client)
        self._let_go(version)
        staleness = self.algorithm.version - version
        self.scheduling.before_receive(self, client)
        changed, accepted = self.deliver(job, staleness)
        if changed:
            self.clock += self.server_time
        if accepted:
            self.refused_in_a_row = 0
        else:
            self._check_progress()
        if self.algorithm.version < self.rounds:
            self.scheduling.after_receive(self, client, changed)
        self.received += 1
        if self.keep_arrivals or self.observers:
            self._record(job, staleness, accepted)

    def deliver(self, job: Job, staleness: int) -> tuple[bool, bool]:
        """Hand a trained job to the method; return whether it made a version, and whether it was accepted."""
        refused = len(self.algorithm.rejections)
        update = Update.of(job, staleness)
        changed = self.algorithm.receive(update)
        accepted = len(self.algorithm.rejections) == refused
        if accepted:
            self.selection.observe(update)
        return changed, accepted

    def _record(self, job: Job, staleness: int, accepted: bool) -> None:
        outcome = job.outcome
        arrival = Arrival(
            job.client,
            job.dispatched_at,
            job.finish_time,
            job.start_version,
            staleness,
            outcome.num_samples,
            outcome.train_loss,
            outcome.train_accuracy,
            accepted,
            self.algorithm.version,
        )
        if self.keep_arrivals:
            self.arrivals.append(arrival)
        for observe in self.observers:
            observe(self, arrival)

    @staticmethod
    def _impossible(job: Job) -> SimulationError:
        if math.isnan(job.finish_time):
            return SimulationError(f"client {job.client} has no arrival time: its delay is not a number")
        return SimulationError(f"client {job.client} reported without one dispatch before it")

    def _check_progress(self) -> None:
        self.refused_in_a_row += 1
        limit = 20 * self.scheduling.most_in_flight
        if self.refused_in_a_row >= limit:
            raise SimulationError(
                f"the last {limit} updates were all refused "
                f"({self.algorithm.rejections[-1].reason}): lower client_lr or server_lr"
            )
