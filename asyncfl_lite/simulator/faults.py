"""Faults of clients: jobs that are lost, late, cut short, duplicated or damaged, and clients that come and go.

:class:`Faults` holds the settings. :class:`Fates` draws what happens to each job when it is dispatched, and
:class:`Presence` says which clients are present. :mod:`asyncfl_lite.simulator.faulty_simulation` is the clock on which
all of this happens.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field, model_validator

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.base.registry import Registry, Settings
from asyncfl_lite.base.streams import stream
from asyncfl_lite.simulator.delays import parse_number, read_rows
from asyncfl_lite.simulator.jobs import Fate, Job, Outcome
from asyncfl_lite.simulator.scheduling import IdleClients
from asyncfl_lite.simulator.simulation import Delays

LOST = DROPPED_OUT, LEFT, GIVEN_UP = ("dropped out", "left", "given up")
"""Reasons why a job never arrives: its client dropped out, left before the job was done, or took too long."""
DUPLICATE = "duplicate of a job that had arrived"
"""Reason that is recorded when the server refuses the second copy of an update."""

DAMAGES = ("nan", "inf", "length")
"""Ways in which an update can be damaged."""
KINDS = ("dropout", "crash", "partial", "duplicate", "damage")
"""Settings that are probabilities per job."""


class Faults(Settings):
    """Failures of clients, and the time after which the server gives up on a job; by default, there are none.

    Each kind of fault that affects single jobs draws from its own random stream for every job, in the order of
    dispatch, even if another kind affects the job, too. So turning one kind on or off does not change the others. Times
    are in the delay law's unit.

    Raises:
        ConfigError: if a setting is invalid; the message names it, the given value and the allowed ones.
    """

    revision: ClassVar[int] = 1
    """Revision of the numbers; increase it when their meaning changes, to mark older results as outdated."""

    dropout: float = Field(0.0, ge=0, lt=1)
    """Probability that a job never returns."""
    crash: float = Field(0.0, ge=0, le=1)
    """Probability that a client crashes during a job and returns late."""
    late: float = Field(3.0, gt=1)
    """Factor on the duration of a job whose client crashes."""
    partial: float = Field(0.0, ge=0, le=1)
    """Probability that a client does only part of a job: a uniformly drawn share of its minibatch steps, at least one.
    The job's duration is the same share of the usual one."""
    duplicate: float = Field(0.0, ge=0, le=1)
    """Probability that an update arrives a second time; the time in between is drawn like a job's duration."""
    damage: float = Field(0.0, ge=0, lt=1)
    """Probability that an update arrives damaged: with a NaN in it, with an infinite number, or one number short."""
    time_out: float | None = Field(None, gt=0)
    """Virtual time after dispatch at which the server gives up on a job; later arrivals are discarded."""
    available: float | None = Field(None, gt=0)
    """Mean of the exponentially distributed length of a client's presence. A client that leaves loses its job."""
    away: float | None = Field(None, gt=0)
    """Mean of the exponentially distributed length of a client's absence."""
    trace: Path | None = None
    """CSV file (client,from,until) of the times at which clients are present, instead of ``available`` and ``away``;
    relative to the working folder."""

    @model_validator(mode="after")
    def _possible(self) -> Faults:
        if (self.available is None) != (self.away is None):
            given, missing = ("available", "away") if self.away is None else ("away", "available")
            raise ValueError(f"{missing}: must be given with {given}")
        if self.trace is not None and self.available is not None:
            raise ValueError("trace: must not be given with available and away, which it replaces")
        if self.time_out is None and (self.dropout or self.comes_and_goes):
            reason = "dropout" if self.dropout else "trace" if self.trace else "available and away"
            raise ValueError(f"time_out: must be given with {reason}, or the server would wait for ever for lost jobs")
        return self

    @property
    def comes_and_goes(self) -> bool:
        """Whether clients come and go during the run."""
        return self.available is not None or self.trace is not None

    @property
    def none(self) -> bool:
        """Whether all kinds of faults are off, and the server never gives up on a job."""
        chances = (self.dropout, self.crash, self.partial, self.duplicate, self.damage)
        return not any(chances) and self.time_out is None and not self.comes_and_goes


class _OneClass(Registry[Faults]):
    """A registry with a single class, which it returns for every name."""

    def get(self, name: object) -> type[Faults]:
        return Faults


FAULTS = _OneClass("faults")


class Fates:
    """The random streams from which the fate of each job is drawn, one for each kind of fault.

    Args:
        faults: the settings, which say how likely each kind of fault is.
        delays: the delay law, from which the time to a second arrival is drawn, too.
        seed: the run's seed, which determines the streams.
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
        return dataclasses.replace(outcome, delta=outcome.delta[:-1])
    delta = outcome.delta.clone()
    delta[0] = torch.nan if damage == "nan" else torch.inf
    return dataclasses.replace(outcome, delta=delta)


def second_copy(job: Job, later: float) -> Job:
    """Return a copy of a trained job that arrives ``later`` units of virtual time after the original.

    The copy has no tensors, since the server never reads it.
    """
    tensors: dict[str, Any] = dict.fromkeys(("delta", "buffers", "features", "label_counts", "mean_gradient"))
    outcome = dataclasses.replace(job.done, **tensors)
    return dataclasses.replace(
        job,
        finish_time=job.finish_time + later,
        start=None,
        start_buffers=None,
        control=None,
        correction=None,
        midway=None,
        outcome=outcome,
    )


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

    def come(self, client: int) -> None:
        """Make a client that has come back available again, unless it still has work."""
        if client in self.aside:
            self.aside.remove(client)
            super().add(client)

    def leave(self, client: int) -> None:
        """Set aside a client that has left, unless it has work, for which the server still waits."""
        if client in self:
            super().remove(client)
            self.aside.add(client)


def read_spells(path: Path, clients: Sequence[int]) -> dict[int, Spells]:
    """Read the intervals in which each client is present, and merge overlaps; a client without a row is never present.

    Args:
        path: CSV file with the columns client,from,until; an ``until`` of ``inf`` means that the client stays for good.
            Rows of clients that the run does not have are ignored, as are other columns.
        clients: the clients of the run.

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
            joined[-1] = (joined[-1][0], max(until, joined[-1][1]))
        else:
            joined.append((start, until))
    return joined
