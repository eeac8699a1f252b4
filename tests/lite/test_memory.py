"""What a process holds does not grow over 20,000 updates."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from asyncfl_lite import Config

pytestmark = pytest.mark.long

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
        | {"nz": 64, "ngf": 32, "pool_size": 2000},  # a small generator, and a pool that is soon full
    },
}
MEASURE = """
import json, resource
from asyncfl_lite import Config
from asyncfl_lite.runs.run import Run

page, seen = resource.getpagesize(), {}
one = Run(Config(**json.loads(CONFIG)))

def measure(simulation, arrival):
    count = len(simulation.arrivals)
    if count % 2000 == 0:
        seen[count] = int(open("/proc/self/statm").read().split()[1]) * page

one.simulation.observers.append(measure)
one.finish()
print(json.dumps(seen))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell a process its memory")
@pytest.mark.parametrize("algorithm", RUNS)
def test_memory_grows_by_no_more_than_the_table_of_updates(algorithm):
    config = Config(**LIGHT, algorithm=algorithm, **RUNS[algorithm])
    code = MEASURE.replace("CONFIG", repr(json.dumps(config.as_dict())))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seen = {int(count): size for count, size in json.loads(done.stdout).items()}
    print(algorithm, {count: round(size / 2**20, 1) for count, size in seen.items()}, "MiB")
    assert max(seen) == UPDATES
    assert seen[UPDATES] - seen[4000] < A_ROW * (UPDATES - 4000)
