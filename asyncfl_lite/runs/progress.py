"""Progress displays: a bar in a terminal or notebook, or lines of text on stderr."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from asyncfl_lite.base.bars import tqdm
from asyncfl_lite.base.errors import ConfigError, shown


class Run(Protocol):
    """The part of :class:`asyncfl_lite.runs.run.Run` that this module uses but cannot import."""

    config: Any
    algorithm: Any
    simulation: Any
    stopped: str | None
    progress: Any

    @property
    def curve_rows(self) -> Sequence[Mapping[str, float]]:
        """The rows of the run's curve so far."""


Shown = bool | Literal["lines"]
"""Kind of display: False for none, True for a bar of versions with the accuracy, "lines" for lines on stderr after
evaluations, at most one every ``SECONDS_BETWEEN_LINES`` seconds."""

SECONDS_BETWEEN_LINES = 5.0
SECONDS_WITHOUT_VERSION = 60.0
"""Seconds without a new version after which a line says how many jobs have come and gone meanwhile."""


def check_shown(progress: Any) -> None:
    """Raise an error for a value that is not a kind of progress display.

    Raises:
        ConfigError: if ``progress`` is none of the kinds in :data:`Shown`.
    """
    if not (isinstance(progress, bool) or progress == "lines"):
        raise ConfigError(f"progress: must be True (a bar), 'lines' or False, got {shown(progress)}")


@dataclass
class _Wait:
    """The time since a run's last version.

    Attributes:
        version: the version.
        began, said_at: when the wait began, and when a line last spoke of it.
        jobs, spoiled: how many jobs had been sent, and how many had been refused or lost, when the wait began.
    """

    version: int
    began: float
    said_at: float
    jobs: int
    spoiled: int


class Progress:
    """A display of the number of versions and the latest test accuracy; as a context manager, it closes its bar.

    Args:
        shown: the kind of display.
        runs: one run, or several that run at the same time.
    """

    def __init__(self, shown: Shown, runs: Sequence[Run]) -> None:
        check_shown(shown)
        self.runs, self.lines = runs, shown == "lines"
        rounds = [run.config.rounds for run in runs]
        self.total = None if None in rounds else sum(rounds)
        self.bar = tqdm(total=self.total, unit="version", disable=shown is not True)
        self.began, self.said_at = time.monotonic(), -float("inf")
        self.first: tuple[float, float] | None = None
        self.waits: dict[int, _Wait] = {}
        for run in runs:
            run.progress = self
            run.simulation.version_observers.append(lambda _, run=run: self._made_version(run))

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def _made_version(self, run: Run) -> None:
        """Show that a run has made a version, and its accuracy if it was evaluated."""
        versions = sum(run.algorithm.version for run in self.runs)
        self.bar.update(versions - self.bar.n)
        if self.first is None:  # speed is measured from here, since a run may continue from a checkpoint
            self.first = time.monotonic(), self._done()
        row = run.curve_rows[-1]
        if row["version"] != run.algorithm.version:
            return
        self.bar.set_postfix(accuracy=f"{row['accuracy']:.4f}", refresh=False)
        last = versions == self.total
        if self.lines and (last or time.monotonic() - self.said_at >= SECONDS_BETWEEN_LINES):
            self.said_at = time.monotonic()
            print(self._line(run, row, versions), file=sys.stderr, flush=True)

    def waiting(self, run: Run) -> None:
        """Say, once a minute, how many jobs have ended since a run's last version; called when one made no version.

        Without a display, a warning says it once, if jobs were refused or lost.
        """
        now, jobs = time.monotonic(), run.simulation.sequence_no
        spoiled = len(run.algorithm.rejections) + len(run.simulation.ended)
        wait = self.waits.get(id(run))
        if wait is None or wait.version != run.algorithm.version:
            self.waits[id(run)] = _Wait(run.algorithm.version, now, now, jobs, spoiled)
            return
        if now - wait.said_at < SECONDS_WITHOUT_VERSION:
            return
        first, wait.said_at, spoiled = wait.said_at == wait.began, now, spoiled - wait.spoiled
        line = (
            f"{self._of_all(run)}no version since version {wait.version}, for {in_words(now - wait.began)}: "
            f"{jobs - wait.jobs:,} jobs, {spoiled:,} of them refused or lost, time {run.simulation.clock:.1f}"
        )
        if self.lines or not self.bar.disable:
            self.bar.write(line, file=sys.stderr)
        elif first and spoiled:
            warnings.warn(line, stacklevel=2)

    def _of_all(self, run: Run, versions: str = "") -> str:
        """Return the words that say which run a line is about, if there are several."""
        return f"{len(self.runs)} runs, {versions}seed {run.config.seed}: " if len(self.runs) > 1 else ""

    def _line(self, run: Run, row: Mapping[str, float], versions: int) -> str:
        of_all = self._of_all(run, f"{versions}{f' of {self.total}' * bool(self.total)} versions; ")
        version = f"version {row['version']:.0f}" + (f" of {run.config.rounds}" if run.config.rounds else "")
        times = f"time {row['time']:.1f}" + (f" of {run.config.horizon:g}" if run.config.horizon else "")
        spent = f"{time.monotonic() - self.began:.0f} s{self._left()}"
        return f"{of_all}{version}, {times}: accuracy {row['accuracy']:.4f} ({spent})"

    def _left(self) -> str:
        """Return the estimated remaining time as text, from the speed since the first version; empty if unknown."""
        began, done_then = self.first or (self.began, 0.0)
        done, now = self._done(), time.monotonic()
        if done <= done_then or done >= 1:
            return ""
        return f", about {in_words((now - began) * (1 - done) / (done - done_then))} left"

    def _done(self) -> float:
        """Return the fraction of all runs' work that is done, by versions or by clock, whichever is further along."""
        return sum(map(_done, self.runs)) / len(self.runs)


def _done(run: Run) -> float:
    config = run.config
    if run.stopped is not None:
        return 1.0
    by_version = run.algorithm.version / config.rounds if config.rounds else 0.0
    return min(1.0, max(by_version, run.simulation.clock / config.horizon if config.horizon else 0.0))


def in_words(seconds: float) -> str:
    """Return a duration as text in seconds, minutes or hours.

    >>> in_words(8.2), in_words(250), in_words(9000)
    ('8 s', '4 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
