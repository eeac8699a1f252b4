"""The clock of a run: a heap of arrivals, ordered by ``(finish_time, sequence_no)``.

Time is virtual. :meth:`Simulation.run` is the whole of asynchronous federated learning: pop the
earliest arrival, let the server receive it, dispatch. Delays do not depend on weights, so a job may be
trained at any time before it arrives: all jobs that can be trained by now are trained at once (or only the
one that is due, if ``together`` is off). The clock knows nothing about models or data.

Code that runs once per event uses no tensors: the heap holds plain tuples, and clients are numbers in arrays.
:mod:`asyncfl_lite.simulator.faulty_simulation` adds clients that drop out, come and go, or send broken updates.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from heapq import heappop, heappush
from typing import Any, ClassVar, Protocol

import numpy as np

from asyncfl_lite.base.errors import DivergedError, SimulationError, shown
from asyncfl_lite.base.registry import is_ours
from asyncfl_lite.base.streams import no_global_draws, stream
from asyncfl_lite.simulator.jobs import CALLED_OFF, NOT_FINITE, Arrival, Job, Outcome, Receipt
from asyncfl_lite.simulator.scheduling import IdleClients, Scheduling, Selection, Uniform
from asyncfl_lite.simulator.server import (
    MOST_ACCEPTED,
    Published,
    Server,
    check_answer,
    check_like,
    check_makes_versions,
    midway_for,
)


class Delays(Protocol):
    """The part of a prepared delay law that the simulator uses."""

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of the client's next job."""


NOTHING_SENT = (None, None, None)
"""Model, statistics and control variate in a simulation without training."""

Train = Callable[[Sequence[Job]], Sequence[Outcome]]
Observer = Callable[["Simulation", Arrival], None]
VersionObserver = Callable[["Simulation"], None]


@dataclass(eq=False, repr=False)
class Simulation:
    """The clock of one run, with its dispatches and arrivals.

    Args:
        clients: the clients that may be chosen.
        seed: the run's seed, which determines the streams of client choices and delays.
        num_samples: client -> its number of samples, for selection policies that use it; 1 each by default.

    Attributes:
        algorithm: a started method.
        scheduling: the policy that decides when clients are dispatched.
        delays: the prepared delay law.
        rounds: the version at which the run ends; None or infinite for no limit.
        horizon: virtual time at which the run ends, or None. A later arrival is not processed, and its job not trained.
        server_time: virtual time that making a version takes; the server works on one arrival at a time.
        selection: the policy that chooses the next client to dispatch; by default, a uniformly random idle client.
        observers: functions that are called after each arrival with this simulation and the :class:`Arrival`.
        keep_arrivals: keep every :class:`Arrival`; if False, memory does not grow with the length of the run.
        together: ask for the outcomes of all untrained jobs at once; if False, ask only for that of the job that is
            due, so that jobs that never arrive are not trained.
        clock: the current virtual time.
        received: how many jobs have arrived.
        arrivals: every :class:`Arrival` so far, which can be read but not changed.
        version_observers: functions that are called with this simulation after every event that made a version (an
            arrival, or the loss of a job); the arrival is among ``arrivals`` by then.
        idle: the clients without work.
        jobs_of: client -> how many jobs it has had.
        heap: ``(due, sequence_no, job)`` of every job in flight, the earliest first; ``due`` is the time at which it
            arrives or, if it is lost, at which the server gives up on it.
        untrained: the jobs that can be trained now.
        midway: ``(time, sequence_no, job)`` of every job that gets a newer model at that time, the earliest first.
        held: version -> how many clients in flight train from it.
        most_versions_in_flight: largest number of different versions from which clients trained at the same time.
        ended: ``(client, dispatched_at, start_version, ended_at, why)`` of every job that ended without arriving.

    Raises:
        SimulationError: when fewer clients than the concurrency are given, or a self-check fails.
        ServerError: when the method makes no version of very many updates, or its return value says wrongly whether it
            made one.

    >>> from asyncfl_lite import Config, Run
    >>> simulation = Run(Config(task="digits", algorithm="fedbuff", rounds=2)).simulation
    >>> simulation.clock, simulation.in_flight, simulation.received
    (0.0, 0, 0)
    """

    published_class: ClassVar[type[Published]] = Published

    algorithm: Server
    scheduling: Scheduling
    delays: Delays
    clients: InitVar[Sequence[int]]
    _: KW_ONLY
    seed: InitVar[int] = 0
    rounds: float = math.inf
    horizon: float = math.inf
    server_time: float = 0.0
    selection: Selection = field(default_factory=Uniform)
    num_samples: InitVar[Mapping[int, int] | None] = None
    observers: list[Observer] = field(default_factory=list)
    keep_arrivals: bool = True
    together: bool = True

    started: bool = field(default=False, init=False)
    clock: float = field(default=0.0, init=False)
    sequence_no: int = field(default=0, init=False)
    received: int = field(default=0, init=False)
    refused_in_a_row: int = field(default=0, init=False)
    accepted_in_a_row: int = field(default=0, init=False)
    version_observers: list[VersionObserver] = field(default_factory=list, init=False)
    heap: list[tuple[float, int, Job]] = field(default_factory=list, init=False)
    untrained: list[Job] = field(default_factory=list, init=False)
    midway: list[tuple[float, int, Job]] = field(default_factory=list, init=False)
    held: Counter[int] = field(default_factory=Counter, init=False)
    most_versions_in_flight: int = field(default=0, init=False)
    ended: list[tuple[int, float, int, float, str]] = field(default_factory=list, init=False)
    _arrivals: list[Arrival] = field(default_factory=list, init=False)

    def __post_init__(self, clients: Sequence[int], seed: int, num_samples: Mapping[int, int] | None) -> None:
        self.rounds = math.inf if self.rounds is None else self.rounds
        self.horizon = math.inf if self.horizon is None else self.horizon
        self.observers = list(self.observers)
        if self.rounds == self.horizon == math.inf:
            raise SimulationError("rounds, horizon: a simulation needs one of them to end")
        if len(clients) < self.scheduling.concurrency:
            raise SimulationError(
                f"concurrency: {self.scheduling.concurrency} clients at a time were asked for, "
                f"and only {len(clients)} have samples"
            )
        self.published = None if self.algorithm.x is None else self.published_class(self.algorithm)
        self.observed_version = self.algorithm.version
        self.selection.start(num_samples or dict.fromkeys(clients, 1))
        self.choice_stream = stream(seed, "client choice")
        self.delay_stream = stream(seed, "delays")
        self.idle = IdleClients(clients)
        self.num_clients = len(clients)
        self.jobs_of = array("q", bytes(8 * (self.idle.highest + 1)))

    @property
    def in_flight(self) -> int:
        """Number of clients that are training now, as far as the server knows."""
        return len(self.heap)

    busy = in_flight
    """Number of clients that train now or will soon; more than ``in_flight`` only if clients come and go."""

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """Every arrival so far."""
        return tuple(self._arrivals)

    @property
    def jobs(self) -> list[Job]:
        """The jobs in flight, in the order of their dispatch."""
        return sorted((job for _, _, job in self.heap), key=lambda job: job.sequence_no)

    # The course of a run ------------------------------------------------------------------------------------

    def run(self, train: Train) -> None:
        """Run to the end; ``train`` turns jobs into outcomes.

        All state is in the simulation, so :meth:`state` can be saved inside ``train``, and if ``train`` raises an
        exception, a new call continues where this one stopped.
        """
        self._start()
        while (job := self._next_arrival()) is not None:
            if job.outcome is None:
                jobs = self._next_jobs()
                for trained, outcome in zip(jobs, train(jobs), strict=True):
                    trained.outcome = outcome
                self.untrained = [job for job in self.untrained if job.outcome is None]
            heappop(self.heap)
            self._receive(job)
        if self.horizon < math.inf and self.algorithm.version < self.rounds:
            self.clock = max(self.clock, self.horizon)

    def _start(self) -> None:
        if not self.started:
            self.started = True
            who = f"delay or selection: one of {type(self.delays).__name__} and {type(self.selection).__name__}"
            own = self.delays if is_ours(self.selection) else self.selection
            with no_global_draws(own, who, "the generators that they are given", SimulationError):
                self.scheduling.start(self)

    def _next_arrival(self) -> Job | None:
        """Process all events before the next arrival; return its job (still on the heap), or None at the end."""
        if self.algorithm.version >= self.rounds or not self.heap:
            return None
        due, _, job = self.heap[0]
        if due > self.horizon:
            return None
        if self.midway:
            self._pass_midway(due)
        return job

    def _pass_midway(self, until: float) -> None:
        """Give the newest model to jobs that are due to merge it by ``until``, so that they can be trained."""
        while self.midway and self.midway[0][0] <= until:
            _, _, job = heappop(self.midway)
            job.midway = midway_for(self.algorithm, job)
            self.untrained.append(job)

    def _next_jobs(self) -> list[Job]:
        """Return the jobs to train now, including the next to arrive, each with its client's correction."""
        jobs = self._needed(self.untrained) if self.together else [self.heap[0][2]]
        for job in jobs:
            if job.control is not None:
                job.correction = self.algorithm.correction_for(job.client, job.control)
                check_like(self.algorithm, "correction_for", job.correction, job.start)
        return jobs

    def _needed(self, jobs: list[Job]) -> list[Job]:
        """Leave out jobs that come after those that make the last version: they count only if updates are refused."""
        left = (self.rounds - self.algorithm.version) * self.scheduling.buffer_size
        if left >= len(self.heap):
            return jobs
        needed = {job.sequence_no for _, _, job in sorted(self.heap)[: int(left)]}
        return [job for job in jobs if job.sequence_no in needed]

    # Arrivals -----------------------------------------------------------------------------------------------

    def _receive(self, job: Job) -> None:
        client, version = job.client, job.start_version
        if not job.finish_time >= job.dispatched_at or client in self.idle:
            raise SimulationError(f"client {client} reported without one dispatch before it")
        self.clock = max(self.clock, job.finish_time)
        self._free(job)
        latest, staleness = self.algorithm.version, self.algorithm.version - version
        self.scheduling.before_receive(self, client)
        made_version, refused = self.deliver(job, staleness)
        check_answer(self.algorithm, made_version, latest)
        if made_version:
            self.clock += self.server_time
        if refused:
            self._count_refused(job, refused)
        else:
            self.refused_in_a_row = 0
            self.accepted_in_a_row = 0 if made_version else self.accepted_in_a_row + 1
            if self.accepted_in_a_row >= MOST_ACCEPTED:
                check_makes_versions(self.algorithm, self.scheduling, self.jobs, self.accepted_in_a_row)
        if self.algorithm.version < self.rounds:
            self.scheduling.after_receive(self, client, made_version)
        self.received += 1
        self._note(Arrival.of(job, staleness, self.algorithm.version, refused))

    def deliver(self, job: Job, staleness: int) -> Receipt:
        """Pass a trained job to the server, and to the selection if it learns; return the server's receipt."""
        update = job.update(staleness, shares=is_ours(self.algorithm))
        if type(self.selection).observe is Selection.observe:
            return self.algorithm.receive(update)
        observed = replace(job.update(staleness), delta=update.delta.clone())
        receipt = self.algorithm.receive(update)
        if not receipt.refused:
            self.selection.observe(observed)
        return receipt

    def flush(self) -> None:
        """Make the server aggregate its buffer even if it is not full."""
        before = self.algorithm.version
        answer = self.algorithm.flush()
        check_answer(self.algorithm, answer, before, "flush")
        if answer:
            self.accepted_in_a_row = 0
            self.clock += self.server_time

    def _note(self, arrival: Arrival | None = None) -> None:
        if arrival is not None and self.keep_arrivals:
            self._arrivals.append(arrival)
        if self.algorithm.version != self.observed_version:
            self.observed_version = self.algorithm.version
            for observe_version in self.version_observers:
                observe_version(self)
        if arrival is not None:
            for observe in self.observers:
                observe(self, arrival)

    def _count_refused(self, job: Job, refused: str) -> None:
        self.refused_in_a_row += 1
        limit = 20 * self.scheduling.most_in_flight
        if self.refused_in_a_row >= limit:
            advice = ": lower client_lr or server_lr" if refused == NOT_FINITE else ""
            raise DivergedError(f"the last {limit} updates were all refused ({refused}){advice}")

    # Dispatches ---------------------------------------------------------------------------------------------

    def dispatch(self, client: int) -> None:
        """Send the current model to ``client``, which must be idle."""
        try:
            self.idle.remove(client)
        except KeyError:
            raise SimulationError(f"client {client} was dispatched while it was training") from None
        duration = self._drawn_duration(client)
        clock, version, before = self.clock, self.algorithm.version, self.jobs_of[client]
        sent = NOTHING_SENT if self.published is None else self.published.current()
        job = Job(clock + duration, self.sequence_no, client, before, version, clock, *sent, duration=duration)
        self.sequence_no += 1
        self.jobs_of[client] += 1
        self.held[version] += 1
        self.most_versions_in_flight = max(self.most_versions_in_flight, len(self.held))
        self._send(job)
        if len(self.heap) > self.scheduling.most_in_flight:
            raise SimulationError(
                f"{self.in_flight} clients in flight, at most {self.scheduling.most_in_flight} allowed"
            )

    def _drawn_duration(self, client: int) -> float:
        duration = self.delays.draw(client, self.delay_stream)
        try:
            if 0 <= duration < math.inf:
                return duration
        except (TypeError, ValueError):  # it is no number
            pass
        raise SimulationError(
            f"delay: {type(self.delays).__name__}.draw must return a finite number, at least 0, got {shown(duration)} "
            f"for client {client}"
        )

    def dispatch_idle(self, count: int, reporter: int | None = None) -> None:
        """Send the current model to ``count`` idle clients, chosen one after another."""
        for client in self.selection.choose(self.idle, count, reporter, self.choice_stream):
            self.dispatch(client)

    def _send(self, job: Job) -> None:
        heappush(self.heap, (job.finish_time, job.sequence_no, job))
        if job.finish_time > self.horizon or job.outcome is not None:  # it never arrives, or needs no training
            return
        if self.algorithm.midway is None:
            self.untrained.append(job)
        else:
            half_way = job.dispatched_at + self.algorithm.midway * job.duration
            heappush(self.midway, (half_way, job.sequence_no, job))

    def call_off(self) -> None:
        """Cancel every job in flight, so that its client is idle again and its work is lost."""
        for _, _, job in sorted(self.heap):
            self._end(job, CALLED_OFF)
        self.heap, self.untrained, self.midway = [], [], []

    def _end(self, job: Job, why: str) -> None:
        self.ended.append((job.client, job.dispatched_at, job.start_version, self.clock, why))
        self._free(job)

    def _free(self, job: Job) -> None:
        """Make the client of a job that has ended idle again, so that it holds no version any more."""
        self.idle.add(job.client)
        self.held[job.start_version] -= 1
        if not self.held[job.start_version]:
            del self.held[job.start_version]

    # Saving -------------------------------------------------------------------------------------------------

    PLAIN = (
        *("started", "clock", "sequence_no", "received", "observed_version"),
        *("refused_in_a_row", "accepted_in_a_row"),
    )
    """Attributes that are saved unchanged."""

    def state(self) -> dict[str, Any]:
        """Return all state but the server's: clock, jobs, history and random streams, as tensors and plain values."""
        jobs = [(due, job.state()) for due, _, job in sorted(self.heap)]
        for _, job in jobs:
            del job["start"], job["start_buffers"]  # saved once for each version
        return {
            **{name: getattr(self, name) for name in self.PLAIN},
            "jobs_of": self.jobs_of.tolist(),
            "jobs": jobs,
            "versions": {job.start_version: (job.start, job.start_buffers) for job in self.jobs},
            "untrained": [job.sequence_no for job in self.untrained],
            "midway": [(time, number) for time, number, _ in self.midway],
            "idle": self.idle.as_list(),
            "most_versions": self.most_versions_in_flight,
            "ended": list(self.ended),
            "arrivals": [tuple(arrival) for arrival in self._arrivals],
            "choice_stream": self.choice_stream.bit_generator.state,
            "delay_stream": self.delay_stream.bit_generator.state,
            "scheduling": self.scheduling.state(),
            "selection": self.selection.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state that :meth:`state` returned; the server must be restored first."""
        for name in self.PLAIN:
            setattr(self, name, state[name])
        self.jobs_of = array("q", state["jobs_of"])
        self.heap = []
        for due, values in state["jobs"]:  # sorted, hence a heap already
            start, start_buffers = state["versions"][values["start_version"]]
            job = Job.restored({**values, "start": start, "start_buffers": start_buffers})
            self.heap.append((due, job.sequence_no, job))
        by_number = {number: job for _, number, job in self.heap}
        self.untrained = [by_number[number] for number in state["untrained"]]
        self.midway = [(time, number, by_number[number]) for time, number in state["midway"]]
        self.held = Counter(job.start_version for job in self.jobs)
        self.most_versions_in_flight = state["most_versions"]
        self.idle = IdleClients(state["idle"], self.idle.highest)
        self.ended = [tuple(row) for row in state["ended"]]
        self._arrivals = [Arrival(*row) for row in state["arrivals"]]
        self.choice_stream.bit_generator.state = state["choice_stream"]
        self.delay_stream.bit_generator.state = state["delay_stream"]
        if self.published is not None:
            self.published = self.published_class(self.algorithm)
        self.scheduling.restore(state["scheduling"])
        self.selection.restore(state["selection"])
