"""What goes on around a run: a display of its progress, and signals that save it before its process ends.

The signals are Ctrl-C, SIGTERM, which clusters send, SIGHUP, which a terminal sends when it is closed, and SIGXCPU,
which comes at the limit of processor time. One that this process ignores, as under ``nohup``, stays ignored.

Python can handle a signal at any point, but a run can be saved only while it waits for jobs to be trained, which is
most of the time. So an interrupt ends training at once; at any other point, the run stops when the next training would
begin. If Ctrl-C comes again before that, it stops at once and is not saved.

This file imports no torch, as grids need the signals before anything does.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
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


SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU")
"""Names of the signals that end a process after its runs were saved; some systems have only the first two."""


def signals_to_hear() -> list[int]:
    """Return the numbers of the :data:`SIGNALS` that this process does not ignore."""
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


class Interrupted(KeyboardInterrupt):
    """Raised when runs were interrupted and have saved themselves; the message says where."""


class _Stop(KeyboardInterrupt):
    """Raised to stop runs at a point where they can be saved."""


class Stops:
    """The state of interrupts: whether a stop was requested, and whether stopping is allowed now."""

    def __init__(self) -> None:
        self.signal: int | None = None  # which requested a stop
        self._allowed = False

    def ask(self, number: int, frame: FrameType | None) -> None:
        """Request a stop at the next point where it is allowed; if Ctrl-C comes again, stop at once.

        Other signals come again by themselves: SIGXCPU every second, and SIGHUP from the terminal and from the shell.
        """
        if number == self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal is None:  # a program that ends a kernel sends several kinds of signals, one after another
            self.signal = number
            self.check()

    def check(self, at_the_end: bool = False) -> None:
        """Raise :class:`_Stop` if a stop was requested and is allowed now."""
        if self.signal is not None and (self._allowed or at_the_end):
            raise _Stop

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Allow interrupts inside the block, where runs wait and can be saved."""
        self._allowed = True
        try:
            self.check()
            yield
        finally:
            self._allowed = False


@contextmanager
def saved_when_interrupted(runs: Sequence[Run]) -> Iterator[Stops]:
    """Save runs that have a checkpoint path when an interrupt arrives inside the block, and then stop.

    Raises:
        Interrupted: on Ctrl-C. Another signal is raised again for its earlier handler; by default, it ends the process.
    """
    stops = Stops()
    can_handle = threading.current_thread() is threading.main_thread()  # Python allows it only there
    if not can_handle or all(run.checkpoint is None for run in runs):
        yield stops
        return
    before = {number: signal.signal(number, stops.ask) for number in signals_to_hear()}
    told = ""
    try:
        yield stops
        stops.check(at_the_end=True)
    except _Stop:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        unfinished = [run for run in runs if run.checkpoint is not None]
        for run in unfinished:
            run.save()
            run.release()  # now, as the signal may end the process before the run's block ends
        told = _told(unfinished)
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if told and stops.signal is not None and stops.signal != signal.SIGINT:
        print(f"asyncfl-lite: {told}", file=sys.stderr, flush=True)
        signal.raise_signal(stops.signal)
    if told:
        raise Interrupted(told)


def _told(runs: Sequence[Run]) -> str:
    if not runs:
        return "interrupted; everything was finished, and is kept"
    where = f"{runs[0].checkpoint}, from which the same run continues"
    if len(runs) == 1:
        return f"interrupted at version {runs[0].algorithm.version}; saved in {where}"
    return f"interrupted; {len(runs)} runs are saved, the first in {where}"
