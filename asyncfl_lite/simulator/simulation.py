"""The clock of a run: a heap of arrivals, ordered by ``(finish_time, sequence_no)``.

Time is virtual. :meth:`Simulation.steps` is the whole of asynchronous federated learning: pop the
earliest arrival, let the server receive it, dispatch. Delays do not depend on weights, so a job may be
trained at any time before it arrives; the generator yields the jobs that must be trained now, all that
are in flight and untrained, and is sent their outcomes. It knows nothing of models or data.

What happens once an event is kept free of tensors: the heap holds plain tuples, clients are numbers in arrays.
Clients that drop out, come and go, or send what is broken are in :mod:`asyncfl_lite.simulator.trouble`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from heapq import heappop
from typing import Any, Protocol

import numpy as np

from asyncfl_lite.algorithms.base import Algorithm, Update
from asyncfl_lite.base.errors import SimulationError
from asyncfl_lite.base.streams import stream
from asyncfl_lite.simulator.in_flight import InFlight
from asyncfl_lite.simulator.jobs import Arrival, Job, Outcome
from asyncfl_lite.simulator.scheduling import Scheduling
from asyncfl_lite.simulator.selection import Selection, Uniform


class Delays(Protocol):
    """What the simulator needs of a delay law that was prepared for the clients."""

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of the client's next job."""


Train = Callable[[Sequence[Job]], Sequence[Outcome]]
Observer = Callable[["Simulation", Arrival], None]


class Simulation(InFlight):
    """One run's clock, dispatches and arrivals; attributes of the jobs on their way are those of :class:`InFlight`.

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
        received: how many jobs have arrived.
        arrivals: every :class:`Arrival` so far.
        version_observers: called with this simulation after a version that no arrival made but the loss of a job.

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
        super().__init__(algorithm, clients, horizon, together)
        self.scheduling = scheduling
        self.delays = delays
        self.rounds = math.inf if rounds is None else rounds
        self.server_time = server_time
        self.selection = selection or Uniform()
        self.selection.start(num_samples or dict.fromkeys(clients, 1))
        self.observers = list(observers)
        self.version_observers: list[Callable[[Simulation], None]] = []
        self.sequence_no = 0
        self.received = 0
        self.keep_arrivals = keep_arrivals
        self.arrivals: list[Arrival] = []
        self.choice_stream = stream(seed, "client choice")
        self.delay_stream = stream(seed, "delays")
        self.started = False
        self.refused_in_a_row = 0

    def steps(self) -> Generator[list[Job], Sequence[Outcome], None]:
        """Run to the end; yields the jobs to train and is sent their outcomes.

        Everything that it knows lives in the object, so a new generator goes on where another one
        stopped.
        """
        if not self.started:
            self.started = True
            self.scheduling.start(self)
        while self._goes_on():
            due, _, job = self.heap[0]
            if self.midway:
                self._pass_midway(due)
            if job.outcome is None:
                jobs = self._next_jobs()
                outcomes = yield jobs
                for trained, outcome in zip(jobs, outcomes, strict=True):
                    trained.outcome = outcome
            heappop(self.heap)
            self._receive(job)
        if self.horizon < math.inf and self.algorithm.version < self.rounds:
            self.clock = max(self.clock, self.horizon)

    def _goes_on(self) -> bool:
        """Whether a job arrives before the run has reached its rounds or its horizon; it is the heap's first."""
        return self.algorithm.version < self.rounds and bool(self.heap) and not self.heap[0][0] > self.horizon

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
        duration = self.delays.draw(client, self.delay_stream)
        job = Job(
            clock + duration,
            number,
            client,
            self.jobs_of[client],
            algorithm.version,
            clock,
            algorithm.x,
            algorithm.buffers,
            algorithm.control_sent(),
        )
        self.sequence_no = number + 1
        self.jobs_of[client] += 1
        self._send(job, duration)
        if len(self.heap) > self.scheduling.most_in_flight:
            raise SimulationError(
                f"{self.in_flight} clients in flight, at most {self.scheduling.most_in_flight} allowed"
            )

    def dispatch_idle(self, count: int, reporter: int | None = None) -> None:
        """Send the current model to ``count`` idle clients, chosen one after another."""
        for client in self.selection.choose(self.idle, count, reporter, self.choice_stream):
            self.dispatch(client)

    def flush(self) -> None:
        """Have the method aggregate what its buffer holds, though it is not full."""
        if self.algorithm.flush():
            self.clock += self.server_time

    def _receive(self, job: Job) -> None:
        """Let the server work on a job that has arrived."""
        client, version = job.client, job.start_version
        if not job.finish_time >= job.dispatched_at or client in self.idle:
            raise self._impossible(job)
        if job.finish_time > self.clock:
            self.clock = job.finish_time
        self.idle.add(client)
        self.held.remove(version)
        staleness = self.algorithm.version - version
        self.scheduling.before_receive(self, client)
        changed, accepted = self.deliver(job, staleness)
        if changed:
            self.clock += self.server_time
        if accepted:
            self.refused_in_a_row = 0
        else:
            self._check_progress(job)
        if self.algorithm.version < self.rounds:
            self.scheduling.after_receive(self, client, changed)
        self.received += 1
        if self.keep_arrivals or self.observers:
            refused = "" if accepted else self.why_refused()
            self._record(Arrival.of(job, staleness, self.algorithm.version, refused))

    def deliver(self, job: Job, staleness: int) -> tuple[bool, bool]:
        """Hand a trained job to the method; return whether it made a version, and whether it was accepted."""
        refused = len(self.algorithm.rejections)
        update = Update.of(job, staleness)
        changed = self.algorithm.receive(update)
        accepted = len(self.algorithm.rejections) == refused
        if accepted:
            self.selection.observe(update)
        return changed, accepted

    def why_refused(self) -> str:
        """Return why the last update was refused."""
        return self.algorithm.rejections[-1].reason

    def _record(self, arrival: Arrival) -> None:
        if self.keep_arrivals:
            self.arrivals.append(arrival)
        for observe in self.observers:
            observe(self, arrival)

    @staticmethod
    def _impossible(job: Job) -> SimulationError:
        if math.isnan(job.finish_time):
            return SimulationError(f"client {job.client} has no arrival time: its delay is not a number")
        return SimulationError(f"client {job.client} reported without one dispatch before it")

    def _check_progress(self, job: Job) -> None:
        """End a run in which too many updates were refused in a row, ``job`` the last of them."""
        self.refused_in_a_row += 1
        limit = 20 * self.scheduling.most_in_flight
        if self.refused_in_a_row >= limit:
            raise SimulationError(
                f"the last {limit} updates were all refused ({self.why_refused()}): lower client_lr or server_lr"
            )

    def more_state(self) -> dict[str, Any]:
        """Return what a subclass has to be saved beyond what every simulation has."""
        return {}

    def restore_more(self, state: dict[str, Any]) -> None:
        """Take up what :meth:`more_state` returned."""
