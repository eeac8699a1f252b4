"""Handling of interrupts, so that Ctrl-C ends a grid at any moment, and a killed grid's workers end with it.

Python raises ``KeyboardInterrupt`` in whatever code is running. The libraries that run a grid have many callbacks, in
which it is only printed or swallowed, or they wait for workers that do not end. So an interrupt also starts a timer,
which ends every process that has not ended by itself. SIGTERM, SIGHUP and SIGXCPU, which come before a process is
killed, count as interrupts like Ctrl-C, and a signal that is ignored stays ignored. The kernels in which cells run are
asked to end first, and get time to save their runs, because joblib, once interrupted, kills its workers and all
processes that these have started.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import psutil

from asyncfl_lite.cli import INTERRUPTED
from asyncfl_lite.runs.interrupts import signals_to_hear

MESSAGE = "asyncfl-lite: interrupted; finished and saved work is kept, and the same command continues"
GRACE = 8.0
"""Seconds that workers get to end by themselves, and kernels to save their runs."""


@contextmanager
def ends_when_interrupted(patience: float = GRACE) -> Iterator[None]:
    """Make an interrupt inside the block end this process, and every process that it started, within seconds."""
    if threading.current_thread() is not threading.main_thread():  # signals can be handled only there
        yield
        return
    clock = threading.Timer(patience, _end)
    clock.daemon = True
    interrupts = 0

    def interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts == 1:  # a second interrupt ends this wait
            try:
                wait_for(ask_kernels())
            finally:
                clock.start()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupted) for number in signals_to_hear()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        # the timer goes on, because the libraries' own threads and processes may still be running


def end_with(parent: int) -> None:
    """End this process, and every process that it started, soon after its parent has ended, unless it is the parent."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        wait_for(ask_kernels())
        _end_descendants()
        os._exit(INTERRUPTED)

    if os.getpid() != parent:
        threading.Thread(target=watch, daemon=True).start()


def ask_kernels() -> list[psutil.Process]:
    """Ask all kernels below this process to end; a run in a kernel saves itself first."""
    asked = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == process.pid and not process.children():  # each kernel has its own session
                process.terminate()
                asked.append(process)
    return asked


def wait_for(processes: Iterable[psutil.Process]) -> None:
    """Wait up to :data:`GRACE` seconds for processes that were asked to end."""
    psutil.wait_procs(list(processes), timeout=GRACE)


def _end() -> None:
    _end_descendants()
    print(f"\n{MESSAGE}", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)


def _end_descendants() -> None:
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()
