"""Clients that come and go, at random or as a file says."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from pathlib import Path

from asyncfl_lite.base.errors import ConfigError, DataError
from asyncfl_lite.base.files import regular
from asyncfl_lite.base.streams import stream
from asyncfl_lite.simulator.selection import IdleClients
from asyncfl_lite.simulator.trouble.settings import Trouble

Spells = list[tuple[float, float]]
"""Intervals (from, until) in which a client is present; sorted and disjoint."""


class Presence:
    """The clients that are present now; :meth:`advance` moves the time forward.

    At the time of a change itself, a client that leaves is already absent, and one that comes is already present.

    Args:
        trouble: the settings, which say how clients come and go.
        clients: all clients of the run.
        seed: the run's seed. The stream ``trouble: presence`` is drawn from only in the order of changes, so that it
            does not depend on the clients' jobs.

    Attributes:
        there: the clients that are present now.
        reached: the time up to which changes have been processed.
    """

    def __init__(self, trouble: Trouble, clients: Sequence[int], seed: int) -> None:
        self._restart: Callable[[], None]
        available, away = trouble.available, trouble.away
        if trouble.trace is not None:
            spells = read_spells(trouble.trace, clients)
            self._restart = lambda: self._read_first(spells)
        elif available is not None and away is not None:
            self._restart = lambda: self._draw_first(available, away, clients, seed)
        else:
            raise ConfigError("trouble: clients that come and go need a trace, or available and away")
        self.go_back_to(0.0)

    def go_back_to(self, time: float) -> None:
        """Restore the state at a given time, by starting again and advancing to it."""
        self.there: set[int] = set()
        self.leaves: dict[int, float] = {}
        self._changes: list[tuple[float, int]] = []
        self._restart()
        heapify(self._changes)
        self.reached = 0.0
        self.advance(time)

    def _draw_first(self, available: float, away: float, clients: Sequence[int], seed: int) -> None:
        """Draw, from the steady state, which clients are present at time 0 and when each one next comes or leaves."""
        rng = stream(seed, "trouble: presence")
        for client in clients:
            there = rng.random() < available / (available + away)
            until = (available if there else away) * rng.standard_exponential()
            self._begin(client, there, until)
        means = {True: available, False: away}
        self._next = lambda client, time, there: time + means[there] * rng.standard_exponential()

    def _read_first(self, spells: dict[int, Spells]) -> None:
        """Read from ``spells`` which clients are present at time 0, and when each one next comes or leaves."""
        changes = {client: iter([*(time for spell in rows for time in spell)]) for client, rows in spells.items()}
        for client, times in changes.items():
            first = next(times, math.inf)
            there = first == 0.0
            self._begin(client, there, next(times) if there else first)
        self._next = lambda client, time, there: next(changes[client], math.inf)

    def _begin(self, client: int, there: bool, until: float) -> None:
        self._changes.append((until, client))
        if there:
            self.there.add(client)
            self.leaves[client] = until

    @property
    def next_change(self) -> float:
        """Time at which the next client comes or leaves; infinite if none ever does."""
        return self._changes[0][0]

    def advance(self, until: float) -> list[tuple[int, bool]]:
        """Advance to a given time; return which clients came (True) and left (False) on the way, in order."""
        happened = []
        while self._changes[0][0] <= until < math.inf:
            time, client = heappop(self._changes)
            comes = client not in self.there
            change = self._next(client, time, comes)
            heappush(self._changes, (change, client))
            if comes:
                self.there.add(client)
                self.leaves[client] = change
            else:
                self.there.remove(client)
            happened.append((client, comes))
        self.reached = max(self.reached, until)
        return happened


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
    try:
        with regular(path).open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            if not {"client", "from", "until"} <= set(table.fieldnames or ()):
                raise DataError(f"{path}, line 1: the header must name the columns client,from,until")
            for row in table:
                client, start, until = _row(row, f"{path}, line {table.line_num}")
                if client in rows:
                    rows[client].append((start, until))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not any(rows.values()):
        raise DataError(f"{path}: none of the run's {len(clients)} clients is ever there")
    return {client: _joined(sorted(spells)) for client, spells in rows.items()}


def _row(row: dict[str, str | None], where: str) -> tuple[int, float, float]:
    client = int(_number(row["client"], int, f"{where}: client must be a whole number of at least 0"))
    start = _number(row["from"], float, f"{where}: from must be a time of at least 0")
    until = _number(row["until"], float, f"{where}: until must be a time later than from, or inf")
    if not start < until or start == math.inf:
        raise DataError(f"{where}: until must be a time later than from, got {row['from']!r} and {row['until']!r}")
    return client, start, until


def _number(text: str | None, kind: Callable[[str], float], message: str) -> float:
    try:
        number = kind(text or "")
    except ValueError:
        number = -1
    if not number >= 0:
        raise DataError(f"{message}, got {text!r}")
    return number


def _joined(spells: Spells) -> Spells:
    joined: Spells = []
    for start, until in spells:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(until, joined[-1][1]))
        else:
            joined.append((start, until))
    return joined
