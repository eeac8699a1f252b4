"""The clock of a run: a heap of arrivals, ordered by ``(finish_time, sequence_no)``.

Time is virtual. :meth:`Simulation.steps` is the whole of asynchronous federated learning: pop the
earliest arrival, let the server receive it, dispatch. Delays do not depend on weights, so a job may be
trained at any time before it arrives; the generator yields the jobs that must be trained now, all that
are in flight and untrained, and is sent their outcomes. It knows nothing of models or data.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
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

    Attributes:
        clock: virtual time now.
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
        self.idle = IdleClients(list(clients))
        self.clock = 0.0
        self.sequence_no = 0
        self.heap: list[Job] = []
        self.untrained: list[Job] = []
        self.midway: list[tuple[float, Job]] = []
        self.jobs_of: Counter[int] = Counter()
        self.versions_in_flight: Counter[int] = Counter()
        self.most_versions_in_flight = 0
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
    def finished(self) -> bool:
        """Whether the run has reached its rounds or its horizon."""
        if self.algorithm.version >= self.rounds:
            return True
        return self.started and (not self.heap or self.heap[0].finish_time > self.horizon)

    def steps(self) -> Generator[list[Job], Sequence[Outcome], None]:
        """Run to the end; yields the jobs to train and is sent their outcomes.

        Everything that it knows lives in the object, so a new generator goes on where another one
        stopped.
        """
        if not self.started:
            self.started = True
            self.scheduling.start(self)
        while not self.finished:
            self._pass_midway(self.heap[0].finish_time)
            if self.heap[0].outcome is None:
                jobs, self.untrained = self.untrained, []
                outcomes = yield jobs
                for job, outcome in zip(jobs, outcomes, strict=True):
                    job.outcome = outcome
            self._receive(heapq.heappop(self.heap))
        if self.horizon < math.inf and self.algorithm.version < self.rounds:
            self.clock = max(self.clock, self.horizon)

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
        if client not in self.idle:
            raise SimulationError(f"client {client} was dispatched while it was training")
        self.idle.remove(client)
        version = self.algorithm.version
        duration = self.delays.draw(client, self.delay_stream)
        job = Job(
            finish_time=self.clock + duration,
            sequence_no=self.sequence_no,
            client=client,
            number=self.jobs_of[client],
            start_version=version,
            dispatched_at=self.clock,
            start=self.algorithm.x,
            start_buffers=self.algorithm.buffers,
            correction=self.algorithm.correction_for(client),
        )
        self.sequence_no += 1
        self.jobs_of[client] += 1
        self.versions_in_flight[version] += 1
        self.most_versions_in_flight = max(self.most_versions_in_flight, len(self.versions_in_flight))
        heapq.heappush(self.heap, job)
        if job.finish_time <= self.horizon:  # later ones never arrive: do not train them
            if self.algorithm.midway is None:
                self.untrained.append(job)
            else:
                heapq.heappush(self.midway, (self.clock + self.algorithm.midway * duration, job))
        if self.in_flight > self.scheduling.most_in_flight:
            raise SimulationError(
                f"{self.in_flight} clients in flight, at most {self.scheduling.most_in_flight} allowed"
            )

    def dispatch_idle(self, count: int, reporter: int | None = None) -> None:
        """Send the current model to ``count`` idle clients, chosen one after another."""
        for client in self.selection.choose(self.idle, count, reporter, self.choice_stream):
            self.dispatch(client)

    def call_off(self) -> None:
        """Call every job in flight off: its client is idle again, and what it did is lost."""
        for job in sorted(self.heap):
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
            _, job = heapq.heappop(self.midway)
            job.midway = self.algorithm.midway_model(job.start_version)
            self.untrained.append(job)

    def _receive(self, job: Job) -> None:
        if job.finish_time < job.dispatched_at or job.client in self.idle:
            raise SimulationError(f"client {job.client} reported without one dispatch before it")
        if math.isnan(job.finish_time):
            raise SimulationError(f"client {job.client} has no arrival time: its delay is not a number")
        self.clock = max(self.clock, job.finish_time)
        self.idle.add(job.client)
        self.versions_in_flight[job.start_version] -= 1
        if not self.versions_in_flight[job.start_version]:
            del self.versions_in_flight[job.start_version]
        staleness = self.algorithm.version - job.start_version
        self.scheduling.before_receive(self, job.client)
        refused = len(self.algorithm.rejections)
        update = self._update(job)
        changed = self.algorithm.receive(update)
        if changed:
            self.clock += self.server_time
        accepted = len(self.algorithm.rejections) == refused
        self._check_progress(accepted)
        if accepted:
            self.selection.observe(update)
        if self.algorithm.version < self.rounds:
            self.scheduling.after_receive(self, job.client, changed)
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
        self.arrivals.append(arrival)
        for observe in self.observers:
            observe(self, arrival)

    @staticmethod
    def _update(job: Job) -> Update:
        outcome = job.outcome
        return Update(
            client=job.client,
            delta=outcome.delta,
            start_version=job.start_version,
            num_samples=outcome.num_samples,
            train_loss=outcome.train_loss,
            train_accuracy=outcome.train_accuracy,
            start=job.start,
            buffers=outcome.buffers,
            start_buffers=job.start_buffers,
            duration=job.finish_time - job.dispatched_at,
            num_steps=outcome.num_steps,
            mean_square_loss=outcome.mean_square_loss,
            trained_accuracy=outcome.trained_accuracy,
            correction=job.correction,
            features=outcome.features,
            label_counts=outcome.label_counts,
        )

    def _check_progress(self, accepted: bool) -> None:
        self.refused_in_a_row = 0 if accepted else self.refused_in_a_row + 1
        limit = 20 * self.scheduling.most_in_flight
        if self.refused_in_a_row >= limit:
            raise SimulationError(
                f"the last {limit} updates were all refused "
                f"({self.algorithm.rejections[-1].reason}): lower client_lr or server_lr"
            )
