"""The clock of a run in which clients can fail.

:class:`Fates` draws what happens to each job, and :class:`Presence` says which clients are present.

To the server, a job is in flight until it arrives or the server gives up on it, whatever has happened to its client. A
lost job is therefore on the heap like any other, at the time at which the server gives up on it, and is never trained.
Two more kinds of event come between arrivals: a second copy of an update arrives, or a client comes or leaves.

If several events happen at the same time, clients come and leave first, so that no client is sent work at the time at
which it leaves. If fewer clients are present than are wanted, slots stay unfilled until clients come back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asyncfl_lite.base.errors import DataError, SimulationError
from asyncfl_lite.base.streams import stream
from asyncfl_lite.simulator.clock_only import ClockOnly
from asyncfl_lite.simulator.delays import parse_number, read_rows
from asyncfl_lite.simulator.faults import DROPPED_OUT, DUPLICATE, GIVEN_UP, LEFT, Faults
from asyncfl_lite.simulator.jobs import Arrival, Fate, Job, Outcome
from asyncfl_lite.simulator.scheduling import IdleClients
from asyncfl_lite.simulator.simulation import Delays, Simulation

DAMAGES = ("nan", "inf", "length")
"""Ways in which an update can be damaged."""
KINDS = ("dropout", "crash", "partial", "duplicate", "damage")
"""Settings that are probabilities per job."""
MOST_LOST_IN_A_ROW = 10_000
"""Smallest number of consecutive lost or damaged jobs that ends a run without a horizon; more if losses are likely."""


@dataclass(eq=False, repr=False)
class FaultySimulation(Simulation):
    """A :class:`~asyncfl_lite.simulator.simulation.Simulation` in which clients can fail.

    Attributes:
        faults: the failures of clients, and the time after which the server gives up on a job.
        present: the idle clients that are present; None if all clients are always present.
        unfilled: how many dispatches wait for clients to come back; 0 unless clients come and go.
        awaited: clients that get the current model as soon as they come back.
        fates: the random streams of each job's fate.
        copies: ``(time, sequence_no, row)`` of every update that will arrive a second time, the earliest first.
        lost_in_a_row: how many jobs in a row were lost or damaged.

    Raises:
        SimulationError: also when no client is in flight and none comes back, or too many jobs are lost in a row.
    """

    faults: Faults = field(kw_only=True)
    unfilled: int = field(default=0, init=False)
    awaited: set[int] = field(default_factory=set, init=False)
    copies: list[tuple[float, int, Arrival]] = field(default_factory=list, init=False)
    lost_in_a_row: int = field(default=0, init=False)
    present: PresentClients | None = field(default=None, init=False)

    def __post_init__(self, clients: Sequence[int], seed: int, num_samples: Mapping[int, int] | None) -> None:
        super().__post_init__(clients, seed, num_samples)
        if self.faults.comes_and_goes:
            presence = Presence(self.faults, clients, seed)
            self.idle = self.present = PresentClients(clients, self.idle.highest, presence)
        self.time_out = math.inf if self.faults.time_out is None else self.faults.time_out
        self.fates = Fates(self.faults, self.delays, seed)

    @property
    def busy(self) -> int:
        """Number of clients that train now, plus the slots that wait for a client to come back."""
        return self.in_flight + self.unfilled

    # What comes next ----------------------------------------------------------------------------------------

    def _next_arrival(self) -> Job | None:
        """Process all events before the next arrival; return its job, or None at the end of the run."""
        while self.algorithm.version < self.rounds:
            arrives = self.heap[0][0] if self.heap else math.inf
            again = self.copies[0][0] if self.copies else math.inf
            changes = self.next_change
            now = min(arrives, again, changes)
            if now == math.inf and self.horizon == math.inf:
                raise self._nobody_left()
            if now > self.horizon or now == math.inf:
                return None
            if self.midway:
                self._pass_midway(now)
            if changes == now:
                self._come_and_go(now)
            elif again == now:
                self._refuse_copy(*heappop(self.copies))
            elif (fate := self.heap[0][2].fate) and fate.lost:
                self._lose(*heappop(self.heap), fate.lost)
            else:
                return self.heap[0][2]
        return None

    @property
    def next_change(self) -> float:
        """Time at which the next client comes or leaves; infinite if none does, or if no job or slot depends on it."""
        waiting = self.heap or self.unfilled or self.awaited
        return self.present.presence.next_change if waiting and self.present is not None else math.inf

    def _nobody_left(self) -> SimulationError:
        return SimulationError(
            f"nobody is in flight at time {self.clock:g}, version {self.algorithm.version} of {self.rounds}, and no "
            "client comes back: lengthen the trace, or set a horizon"
        )

    # Clients that come and go -------------------------------------------------------------------------------

    def _come_and_go(self, until: float) -> None:
        """Process clients that come or leave up to ``until``, or up to now if later; those that come may fill slots."""
        if self.present is None:
            return
        happened = self.present.presence.advance(max(until, self.clock))
        for client, comes in happened:
            self.present.change(client, comes)
        for client in dict.fromkeys(client for client, comes in happened if comes):
            if client in self.idle:  # it may have left again, or been sent work
                self._fill_slot(client, until)

    def _fill_slot(self, client: int, now: float) -> None:
        fills = client not in self.awaited and self.unfilled > 0 and self.scheduling.may_fill(client)
        if client in self.awaited or fills:
            self.awaited.discard(client)
            self.unfilled -= fills
            self.clock = max(self.clock, now)
            self.dispatch(client)

    def dispatch_idle(self, count: int, reporter: int | None = None) -> None:
        """Send the current model to ``count`` idle clients; if there are too few, slots stay empty."""
        if self.present is not None:
            self._come_and_go(self.clock)
            here = min(count, len(self.idle))
            self.unfilled += count - here
            count = here
        if count:
            super().dispatch_idle(count, reporter)

    def dispatch(self, client: int) -> None:
        """Send the current model to ``client``, now or, if it is away, as soon as it comes back."""
        self._come_and_go(self.clock)
        if self.present is not None and client in self.present.aside:
            self.awaited.add(client)
            return
        super().dispatch(client)

    def call_off(self) -> None:
        """Cancel every job in flight, and every dispatch that waits for a client to come back."""
        super().call_off()
        self.unfilled = 0
        self.awaited.clear()

    # Jobs that are lost, late, duplicated or damaged --------------------------------------------------------

    def _send(self, job: Job) -> None:
        fate = self.fates.draw(job.client)
        if fate is not None:
            job.duration *= self.fates.pace(fate)
            job.finish_time = job.dispatched_at + job.duration
        gives_up = job.dispatched_at + self.time_out
        if lost := self._why_lost(job, fate, gives_up):
            job.finish_time, job.fate = math.inf, Fate(lost)
            heappush(self.heap, (gives_up, job.sequence_no, job))
        else:
            job.fate = fate
            super()._send(job)

    def _why_lost(self, job: Job, fate: Fate | None, gives_up: float) -> str:
        if fate is not None and fate.lost:
            return fate.lost
        if self.present is not None and self.present.presence.leaves[job.client] < min(job.finish_time, gives_up):
            return LEFT
        return GIVEN_UP if job.finish_time > gives_up else ""

    def _lose(self, gives_up: float, _: int, job: Job, why: str) -> None:
        self.clock = max(self.clock, gives_up)
        self._end(job, why)
        self._count_lost(why)
        self.scheduling.after_lost(self, job.client)
        self._note()

    def _receive(self, job: Job) -> None:
        fate = job.fate
        if fate is not None and fate.again is not None:
            time = job.finish_time + fate.again
            copy = Arrival.of(job, 0, 0, DUPLICATE)._replace(arrived_at=time)
            heappush(self.copies, (time, job.sequence_no, copy))
        if fate is not None and fate.damage:
            job.outcome = damaged(job.done, fate.damage)
            self._count_lost("damaged")
        else:
            self.lost_in_a_row = 0
        super()._receive(job)

    def _refuse_copy(self, time: float, _: int, copy: Arrival) -> None:
        """Refuse the second copy of an update, which has arrived before."""
        self.clock = max(self.clock, time)
        version = self.algorithm.version
        self._note(copy._replace(staleness=version - copy.start_version, version=version))

    def _count_refused(self, job: Job, refused: str) -> None:
        if job.fate is None or not job.fate.damage:
            super()._count_refused(job, refused)

    def _count_lost(self, why: str) -> None:
        self.lost_in_a_row += 1
        chance = (1 - self.faults.dropout) * (1 - self.faults.damage)
        limit = math.ceil(max(MOST_LOST_IN_A_ROW, 30 * self.scheduling.most_in_flight) / chance)
        if self.lost_in_a_row >= limit and self.horizon == math.inf:
            raise SimulationError(
                f"the last {limit} jobs were all lost or damaged, the last of them {why}: "
                "raise time_out or available, or lower dropout or damage"
            )

    # Saving -------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the base class's state and the states of presence, second copies and the random streams of faults."""
        return {
            **super().state(),
            "unfilled": self.unfilled,
            "awaited": sorted(self.awaited),
            "reached": None if self.present is None else self.present.presence.reached,
            "aside": [] if self.present is None else sorted(self.present.aside),
            "fates": self.fates.state(),
            "copies": [(time, number, tuple(row)) for time, number, row in self.copies],
            "lost_in_a_row": self.lost_in_a_row,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Load a saved state."""
        super().restore(state)
        self.unfilled = state["unfilled"]
        self.awaited = set(state["awaited"])
        if self.present is not None:
            presence = self.present.presence
            presence.go_back_to(state["reached"])
            idle = self.idle.as_list()
            self.idle = self.present = PresentClients(idle, self.idle.highest, presence, state["aside"])
        self.fates.restore(state["fates"])
        self.copies = [(time, number, Arrival(*row)) for time, number, row in state["copies"]]
        self.lost_in_a_row = state["lost_in_a_row"]


class FaultyClock(ClockOnly, FaultySimulation):
    """A simulation without training in which clients can fail, for a server that only counts updates."""


def faulty(kind: type[Simulation]) -> type[FaultySimulation]:
    """Return the subclass of ``kind`` in which clients can fail."""
    return {Simulation: FaultySimulation, ClockOnly: FaultyClock}[kind]


class Fates:
    """The random streams from which the fate of each job is drawn, one for each kind of fault.

    The time to a second arrival is drawn from the delay law, too.
    """

    def __init__(self, faults: Faults, delays: Delays, seed: int) -> None:
        self.faults, self.delays = faults, delays
        kinds = [kind for kind in KINDS if getattr(faults, kind)]
        if faults.duplicate:
            kinds.append("duplicate delay")
        self.streams = {kind: stream(seed, f"trouble: {'drop-out' if kind == 'dropout' else kind}") for kind in kinds}

    def draw(self, client: int) -> Fate | None:
        """Draw the fate of the job that is dispatched now; return None if no fault strikes it."""
        fate, faults, streams = Fate(), self.faults, self.streams
        for kind, rng in streams.items():
            if kind == "dropout":
                fate.lost = DROPPED_OUT if rng.random() < faults.dropout else ""
            elif kind == "crash":
                fate.crashed = rng.random() < faults.crash
            elif kind == "partial":
                strikes, share = rng.random(2).tolist()
                fate.share = share if strikes < faults.partial else 1.0
            elif kind == "damage":
                strikes, way = rng.random(2).tolist()
                fate.damage = DAMAGES[int(way * len(DAMAGES))] if strikes < faults.damage else ""
            elif kind == "duplicate":
                later = self.delays.draw(client, streams["duplicate delay"])
                fate.again = later if rng.random() < faults.duplicate else None
        return fate if fate.lost or fate.struck else None

    def pace(self, fate: Fate) -> float:
        """Return the factor by which faults lengthen or shorten a job's duration."""
        return fate.share * (self.faults.late if fate.crashed else 1.0)

    def state(self) -> dict[str, Any]:
        """Return the states of the random streams."""
        return {kind: rng.bit_generator.state for kind, rng in self.streams.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Load saved states."""
        for kind, rng in self.streams.items():
            rng.bit_generator.state = state[kind]


def damaged(outcome: Outcome, damage: str) -> Outcome:
    """Return a copy of an outcome with a damaged delta; the original stays unchanged."""
    if outcome.delta is None:  # in a simulation without training
        return outcome
    if damage == "length":
        return replace(outcome, delta=outcome.delta[:-1])
    delta = outcome.delta.clone()
    delta[0] = torch.nan if damage == "nan" else torch.inf
    return replace(outcome, delta=delta)


Spells = list[tuple[float, float]]
"""Intervals (from, until) in which a client is present; sorted and disjoint."""


class Presence:
    """The clients that are present now; :meth:`advance` moves the time forward.

    At the time of a change itself, a client that leaves is already absent, and one that comes is already present.

    Args:
        faults: the settings, which say how clients come and go.
        clients: all clients of the run.
        seed: the run's seed. The stream ``trouble: presence`` is drawn from only in the order of changes, so that it
            does not depend on the clients' jobs.

    Attributes:
        there: the clients that are present now.
        reached: the time up to which changes have been processed.
    """

    def __init__(self, faults: Faults, clients: Sequence[int], seed: int) -> None:
        self._faults, self._clients, self._seed = faults, clients, seed
        self._spells = None if faults.trace is None else read_spells(faults.trace, clients)
        self.go_back_to(0.0)

    def go_back_to(self, time: float) -> None:
        """Restore the state at a given time, by starting again and advancing to it."""
        self.there: set[int] = set()
        self.leaves: dict[int, float] = {}
        self._changes: list[tuple[float, int]] = []
        rng = stream(self._seed, "trouble: presence")
        self._lives = {
            client: _at_random(self._faults, rng) if self._spells is None else _as_read(self._spells[client])
            for client in self._clients
        }
        for client in self._lives:
            self._begin(client)
        self.reached = 0.0
        self.advance(time)

    def _begin(self, client: int) -> bool:
        there, until = next(self._lives[client])
        heappush(self._changes, (until, client))
        if there:
            self.there.add(client)
            self.leaves[client] = until
        else:
            self.there.discard(client)
        return there

    @property
    def next_change(self) -> float:
        """Time at which the next client comes or leaves; infinite if none ever does."""
        return self._changes[0][0]

    def advance(self, until: float) -> list[tuple[int, bool]]:
        """Advance to a given time; return which clients came (True) and left (False) on the way, in order."""
        happened = []
        while self._changes[0][0] <= until < math.inf:
            _, client = heappop(self._changes)
            happened.append((client, self._begin(client)))
        self.reached = max(self.reached, until)
        return happened


Life = Iterator[tuple[bool, float]]
"""A client's spells, one after another: whether it is present, and until when."""


def _at_random(faults: Faults, rng: np.random.Generator) -> Life:
    available, away = faults.available or 0.0, faults.away or 0.0
    there, time = rng.random() < available / (available + away), 0.0
    while True:
        time += (available if there else away) * rng.standard_exponential()
        yield there, time
        there = not there


def _as_read(spells: Spells) -> Life:
    for start, until in spells:
        if start > 0:
            yield False, start
        yield True, until
    yield False, math.inf


class PresentClients(IdleClients):
    """The idle clients that are present; absent ones are set aside until they come back.

    Args:
        clients: the clients that are idle now, present or absent.
        highest: the largest client number in the run.
        presence: the clients that are present.
        aside: further clients that are idle and absent.
    """

    def __init__(self, clients: Iterable[int], highest: int, presence: Presence, aside: Iterable[int] = ()) -> None:
        clients = list(clients)
        super().__init__((client for client in clients if client in presence.there), highest)
        self.presence = presence
        self.aside = {*aside, *(client for client in clients if client not in presence.there)}

    def add(self, client: int) -> None:
        """Add an idle client, or set it aside if it is away."""
        if client in self.presence.there:
            super().add(client)
        else:
            self.aside.add(client)

    def change(self, client: int, comes: bool) -> None:
        """Make a client that has come back available again, or set aside one that has left, unless it has work."""
        if comes and client in self.aside:
            self.aside.remove(client)
            super().add(client)
        elif not comes and client in self:
            super().remove(client)
            self.aside.add(client)


def read_spells(path: Path, clients: Sequence[int]) -> dict[int, Spells]:
    """Read the intervals in which each client is present from a CSV file (client,from,until), and merge overlaps.

    An ``until`` of ``inf`` means that the client stays for good; a client without a row is never present. Rows of
    clients that the run does not have are ignored, as are other columns.

    Raises:
        DataError: if the file cannot be read, has a bad row (the message names its line), or no client is ever present.
    """
    rows: dict[int, Spells] = {client: [] for client in clients}
    for where, row in read_rows(path, ("client", "from", "until")):
        client = int(parse_number(row["client"], int, f"{where}: client must be a whole number of at least 0"))
        start = parse_number(row["from"], float, f"{where}: from must be a time of at least 0")
        until = parse_number(row["until"], float, f"{where}: until must be a time later than from, or inf")
        if not start < until or start == math.inf:
            raise DataError(f"{where}: until must be a time later than from, got {row['from']!r} and {row['until']!r}")
        if client in rows:
            rows[client].append((start, until))
    if not any(rows.values()):
        raise DataError(f"{path}: none of the run's {len(clients)} clients is ever there")
    return {client: _joined(sorted(spells)) for client, spells in rows.items()}


def _joined(spells: Spells) -> Spells:
    joined: Spells = []
    for start, until in spells:
        if joined and start <= joined[-1][1]:
            start, before = joined.pop()
            until = max(until, before)
        joined.append((start, until))
    return joined
