"""What the scripts of this folder share: a signal ends them, their programs and their temporary folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

SIGNALS = [getattr(signal, f"SIG{name}") for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "XCPU")]


def leave_nothing_behind() -> None:
    """Have every signal end this process like an error, so that ``with`` blocks remove what they made.

    Signals that are ignored, as under nohup, stay ignored.
    """

    def end(number: int, frame: FrameType | None) -> None:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)  # the removal takes seconds, and must not be ended in turn
        sys.exit(128 + number)

    for one in SIGNALS:
        if signal.getsignal(one) != signal.SIG_IGN:
            signal.signal(one, end)


def call(command: Sequence[str], *, timeout: float | None = None, **options: Any) -> str:
    """Run a program, and return what it prints if ``stdout=PIPE``; where this fails, end all that it has started.

    Raises:
        CalledProcessError, TimeoutExpired: as of :func:`subprocess.run` with ``check=True``.
    """
    process = subprocess.Popen(command, text=True, start_new_session=True, **options)
    try:
        told, _ = process.communicate(timeout=timeout)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, told)
    return told or ""
