"""Over 20,000 updates a process holds no more than the growing table of updates."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from asyncfl_lite import Config

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell a process its memory"),
]

UPDATES = 20_000
A_ROW = 640
"""Bytes that an update may add to memory: its row in the table of updates, which is part of the result."""
LIGHT = {
    "clients": 20,
    "concurrency": 10,
    "batch_size": 32,
    "local_epochs": None,
    "local_steps": 1,
    "eval_every": 10_000,
}
RUNS = {
    "fedbuff": {"buffer_size": 5, "rounds": UPDATES // 5},
    "fedecho": {"buffer_size": 5, "rounds": UPDATES // 5, "settings": {"distill_samples": 20, "distill_q": 1}},
    "fedadt": {"rounds": UPDATES, "settings": {"kd_batch_size": 128}},  # the labelled set in one step
    "fedrevive": {
        "rounds": UPDATES,
        "settings": {"freeze_rounds": 10, "synthesis_only_rounds": 10, "num_teachers": 2, "k_kd": 1, "k_synth": 1}
        | {"nz": 64, "ngf": 32},  # a small generator
    },
}
MEASURE = """
import ctypes, gc, json, resource, sys
from asyncfl_lite import Config
from asyncfl_lite.runs.run import Run

page, seen, held = resource.getpagesize(), {}, []
give_back = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)  # glibc keeps what is freed, unless asked
one = Run(Config(**json.loads(CONFIG)))

def measure(simulation, arrival):
    held.append(bytes(LEAK))
    count = len(simulation.arrivals)
    if count % 500 == 0:
        gc.collect()
        give_back(0)
        seen[count] = int(open("/proc/self/statm").read().split()[1]) * page

one.simulation.observers.append(measure)
one.finish()
print(json.dumps(seen))
"""
EARLY, LATE = (4000, 8000), (16_000, UPDATES)


def growth(algorithm: str, leak: int = 0) -> float:
    """Return how many bytes a run holds more after each update, if it also keeps `leak` bytes of each.

    The allocator adds some MiB to a measurement, at random, but takes none away. So the least of several early
    measurements is compared with the least of several late ones.
    """
    config = Config(**LIGHT, algorithm=algorithm, **RUNS[algorithm])
    code = MEASURE.replace("CONFIG", repr(json.dumps(config.as_dict()))).replace("LEAK", str(leak))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seen = {int(count): size for count, size in json.loads(done.stdout).items()}
    print(algorithm, {count: round(size / 2**20, 1) for count, size in seen.items() if count % 2000 == 0}, "MiB")
    assert max(seen) == UPDATES
    early, late = (min(seen[count] for count in seen if first <= count <= last) for first, last in (EARLY, LATE))
    return (late - early) / (LATE[0] - EARLY[0])


@pytest.mark.parametrize("algorithm", RUNS)
def test_memory_grows_by_no_more_than_the_table_of_updates(algorithm):
    assert growth(algorithm) < A_ROW


def test_growth_shows_what_a_run_keeps():
    assert growth("fedbuff", leak=2 * A_ROW) > A_ROW
