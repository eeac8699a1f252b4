"""An interrupt that a library swallows ends the command all the same."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from asyncfl_lite.reproduction.grid.interrupts import INTERRUPTED, MESSAGE, ends_when_interrupted

SWALLOWS = """
import subprocess, sys, time
from asyncfl_lite.reproduction.grid.interrupts import ends_when_interrupted
with ends_when_interrupted(patience=1.0):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        print(child.pid, flush=True)  # from here on it may be interrupted
        time.sleep(60)
    except KeyboardInterrupt:
        pass
    time.sleep(60)
"""


def test_a_swallowed_interrupt_ends_the_process_and_its_children():
    process = subprocess.Popen(
        [sys.executable, "-c", SWALLOWS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    child = psutil.Process(int(process.stdout.readline()))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == INTERRUPTED and errors.split("\n")[-2] == MESSAGE
    psutil.wait_procs([child], timeout=5)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_without_an_interrupt_nothing_is_left_behind():
    before = signal.getsignal(signal.SIGINT)
    with ends_when_interrupted(patience=0.01):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_the_interrupt_is_still_raised():
    with pytest.raises(KeyboardInterrupt), ends_when_interrupted(patience=3600):
        signal.raise_signal(signal.SIGINT)
