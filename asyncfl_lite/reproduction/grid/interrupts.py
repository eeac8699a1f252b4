"""Ctrl-C ends a grid, whatever it is doing at that moment; and a grid that is killed takes its workers with it.

Python raises ``KeyboardInterrupt`` wherever it happens to be. Inside a callback of a library it is printed or swallowed
there, and the libraries that run a grid have many; or they wait for workers that do not end. So an interrupt also
starts a clock: what has not ended by itself when it strikes is ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

INTERRUPTED = 130
"""Exit code of a command that was interrupted."""
MESSAGE = "asyncfl-lite: interrupted; what is finished is kept, the same command goes on"
GRACE = 8.0
"""Seconds that workers get to end by themselves."""


@contextmanager
def ends_when_interrupted(patience: float = GRACE) -> Iterator[None]:
    """See to it that this process, and all that it started, are gone soon after an interrupt inside."""
    if threading.current_thread() is not threading.main_thread():  # only there can signals be handled
        yield
        return
    clock = threading.Timer(patience, _end)
    clock.daemon = True

    def interrupted(number: int, frame: FrameType | None) -> None:
        if not clock.is_alive():
            clock.start()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
        # the clock goes on: what is still to end after this line are the libraries' own threads and processes


def end_with(parent: int) -> None:
    """Let this process, and all that it started, end soon after its parent has ended or was killed.

    Args:
        parent: the parent's number; nothing happens where it is this process.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        _end_descendants()
        os._exit(INTERRUPTED)

    if os.getpid() != parent:
        threading.Thread(target=watch, daemon=True).start()


def _end() -> None:
    """End the processes that this one started, and this one, at once."""
    _end_descendants()
    print(f"\n{MESSAGE}", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)


def _end_descendants() -> None:
    import psutil  # which the extra of grids brings

    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()
