"""Signals that interrupt runs, and save them before their process ends.

The signals are Ctrl-C, SIGTERM, which clusters send, SIGHUP, which a terminal sends when it is closed, and SIGXCPU,
which comes at the limit of processor time. One that this process ignores, as under ``nohup``, stays ignored.

Python can handle a signal at any point, but a run can be saved only while it waits for jobs to be trained, which is
most of the time. So an interrupt ends training at once; at any other point, the run stops when the next training would
begin. If Ctrl-C comes again before that, it stops at once and is not saved.

This file imports no torch, as grids need the signals before anything does.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

Run = Any
"""A :class:`asyncfl_lite.runs.run.Run`, whose module imports this one."""

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
