"""Long runs: really killed, a dozen times each, they end the same; over 20,000 updates their memory hardly grows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asyncfl_lite import Config, load_result, run
from asyncfl_lite.runs.store import TABLES
from conftest import same

KILLS = 12
SCRIPT = Path(__file__).parents[1] / "killed.py"
COMMON = {"clients": 20, "concurrency": 10, "eval_every": 20, "checkpoint_every": 1, "delay": "fedecho_large"}
RUNS = {
    "fedecho": {"buffer_size": 3, "rounds": 60, "settings": {"distill_samples": 100}},
    "fedrevive": {
        "rounds": 120,
        "settings": {"freeze_rounds": 10, "synthesis_only_rounds": 10, "num_teachers": 3, "k_kd": 2, "k_synth": 2},
    },
    "fedadt": {"rounds": 250},
}

pytestmark = pytest.mark.long


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
@pytest.mark.parametrize("algorithm", RUNS)
def test_a_dozen_kills_change_nothing(algorithm, tmp_path):
    config = Config(**COMMON, algorithm=algorithm, **RUNS[algorithm])
    (tmp_path / "configuration.json").write_text(json.dumps(config.as_dict()))
    arguments = [str(tmp_path / "configuration.json"), str(tmp_path / "run"), str(KILLS), "1"]
    done = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    print(algorithm, told)
    assert told["killed"] == KILLS and told["cut_off"] == told["unnamed"] == KILLS // 4
    survived, whole = load_result(tmp_path / "run"), run(config, checkpoint=tmp_path / "alone.pt")
    same(survived, load_result(whole.save(tmp_path / "whole")))
    left = {"result.json", "weights.safetensors", *(f"{name}.csv" for name in TABLES)}
    assert {path.name for path in (tmp_path / "run").iterdir()} == left


UPDATES = 20_000
A_ROW = 640
"""Bytes that an update may add to memory: its row in the table of updates, which is part of the result."""
LIGHT = {
    "clients": 20, "concurrency": 10, "batch_size": 32, "local_epochs": None, "local_steps": 1, "eval_every": 10_000
}  # fmt: skip
REVIVED = {
    "freeze_rounds": 10, "synthesis_only_rounds": 10, "num_teachers": 2, "k_kd": 1, "k_synth": 1,
    "nz": 64, "ngf": 32,  # a small generator
}  # fmt: skip
UPDATING = {
    "fedbuff": {"buffer_size": 5, "rounds": UPDATES // 5},
    "fedecho": {"buffer_size": 5, "rounds": UPDATES // 5, "settings": {"distill_samples": 20, "distill_q": 1}},
    "fedadt": {"rounds": UPDATES, "settings": {"kd_batch_size": 128}},  # the labelled set in one step
    "fedrevive": {"rounds": UPDATES, "settings": REVIVED},
}
MEASURE = """
import ctypes, gc, json, resource, sys
from asyncfl_lite import Config
from asyncfl_lite.runs.run import Run

page, seen = resource.getpagesize(), {}
give_back = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)  # glibc keeps what is freed, unless asked
one = Run(Config(**json.loads(CONFIG)))

def measure(simulation, arrival):
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


def growth(algorithm: str) -> float:
    """Return how many bytes a run holds more after each update.

    The allocator adds some MiB to a measurement, at random, but takes none away. So the least of several early
    measurements is compared with the least of several late ones.
    """
    config = Config(**LIGHT, algorithm=algorithm, **UPDATING[algorithm])
    code = MEASURE.replace("CONFIG", repr(json.dumps(config.as_dict())))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seen = {int(count): size for count, size in json.loads(done.stdout).items()}
    print(algorithm, {count: round(size / 2**20, 1) for count, size in seen.items() if count % 2000 == 0}, "MiB")
    assert max(seen) == UPDATES
    early, late = (min(seen[count] for count in seen if first <= count <= last) for first, last in (EARLY, LATE))
    return (late - early) / (LATE[0] - EARLY[0])


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell a process its memory")
@pytest.mark.parametrize("algorithm", UPDATING)
def test_memory_grows_by_no_more_than_the_table_of_updates(algorithm):
    assert growth(algorithm) < A_ROW
