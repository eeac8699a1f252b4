"""A display of the progress of runs: a bar of versions, or lines, with the test accuracy and the time that is left."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from asyncfl_lite.base.errors import ConfigError, shown
from asyncfl_lite.runs.callbacks import LOG

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # in a notebook without ipywidgets, this import warns
    from tqdm.auto import tqdm

Run = Any
"""A :class:`asyncfl_lite.runs.run.Run`, whose module imports this one."""

Shown = bool | Literal["lines"]
"""Kind of display: False for none, True for a bar of versions with the accuracy, "lines" for lines on stderr after
evaluations, at most one every ``SECONDS_BETWEEN_LINES`` seconds."""

SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """A display of what one or several runs have done: versions and test accuracy; as a context, it closes its bar."""

    def __init__(self, progress: Shown, runs: Sequence[Run]) -> None:
        if not (isinstance(progress, bool) or progress == "lines"):
            raise ConfigError(f"progress: must be True (a bar), 'lines' or False, got {shown(progress)}")
        self.runs, self.lines, self.logged = runs, progress == "lines", LOG.isEnabledFor(logging.INFO)
        rounds = [run.config.rounds for run in runs]
        self.total = None if None in rounds else sum(rounds)
        self.bar = tqdm(total=self.total, unit="version", disable=progress is not True)
        self.began, self.said_at = time.monotonic(), -float("inf")
        self.first: tuple[float, float] | None = None
        for run in runs:
            run.simulation.version_observers.append(lambda _, run=run: self._made_version(run))

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def _made_version(self, run: Run) -> None:
        """Show that a run has made a version, and its accuracy if it was evaluated."""
        if self.bar.disable and not (self.lines or self.logged):
            return
        versions = sum(run.algorithm.version for run in self.runs)
        self.bar.update(versions - self.bar.n)
        if self.first is None:  # speed is measured from here, since a run may continue from a checkpoint
            self.first = time.monotonic(), self._done()
        row = run.curve_rows[-1]
        if row["version"] != run.algorithm.version:
            return
        self.bar.set_postfix(accuracy=f"{row['accuracy']:.4f}", refresh=False)
        last = versions == self.total
        if (self.lines or self.logged) and (last or time.monotonic() - self.said_at >= SECONDS_BETWEEN_LINES):
            self.said_at, line = time.monotonic(), self._line(run, row, versions)
            LOG.info(line)
            if self.lines:
                print(line, file=sys.stderr, flush=True)

    def _line(self, run: Run, row: Mapping[str, float], versions: int) -> str:
        of_all = f"{len(self.runs)} runs, {versions}{f' of {self.total}' * bool(self.total)} versions; "
        of_all = f"{of_all}seed {run.config.seed}: " if len(self.runs) > 1 else ""
        version = f"version {row['version']:.0f}" + (f" of {run.config.rounds}" if run.config.rounds else "")
        times = f"time {row['time']:.1f}" + (f" of {run.config.horizon:g}" if run.config.horizon else "")
        spent = f"{time.monotonic() - self.began:.0f} s{self._left()}"
        return f"{of_all}{version}, {times}: accuracy {row['accuracy']:.4f} ({spent})"

    def _left(self) -> str:
        began, done_then = self.first or (self.began, 0.0)
        done, now = self._done(), time.monotonic()
        if done <= done_then or done >= 1:
            return ""
        return f", about {in_words((now - began) * (1 - done) / (done - done_then))} left"

    def _done(self) -> float:
        return sum(map(_done, self.runs)) / len(self.runs)


def _done(run: Run) -> float:
    config = run.config
    if run.stopped is not None:
        return 1.0
    by_version = run.algorithm.version / config.rounds if config.rounds else 0.0
    return min(1.0, max(by_version, run.simulation.clock / config.horizon if config.horizon else 0.0))


def in_words(seconds: float) -> str:
    """Return a duration as text: ``8 s``, ``4 min`` or ``2.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
