"""The same configuration gives the same bits: in a fresh process beside other work, and with any workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asyncfl_lite import Config, run
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.runs.store import read_record
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.grid.run import run_grid

pytestmark = pytest.mark.long

NOTEBOOK = Path(__file__).parents[2] / "notebooks/experiment.ipynb"
SMALL = {
    "clients": 8, "concurrency": 4, "local_steps": 2, "eval_every": 2, "rounds": 6, "seed": 3, "delay": "fedecho_mild"
}  # fmt: skip
BUSY = "while True: pass"
ELSEWHERE = """
import json
from asyncfl_lite import Config, run
print(json.dumps({name: run(Config(**given)).summary for name, given in json.loads(CONFIGS).items()}))
"""


def configs() -> dict[str, Config]:
    """One small run a method, kept from working alone by nobody."""
    more = {"fedecho": {"settings": {"distill_samples": 60}}}
    return {name: Config(**SMALL, algorithm=name, **more.get(name, {})) for name in ALGORITHMS}


@pytest.fixture(scope="module")
def here() -> dict[str, dict]:
    """Every method's summary, with the digest of its final weights, from this process."""
    return {name: json.loads(json.dumps(run(config).summary)) for name, config in configs().items()}


@pytest.fixture(scope="module")
def in_a_fresh_process() -> dict[str, dict]:
    """The same in the opposite order and a process of its own, beside others on all cores, which torch may use all of."""
    given = {name: config.as_dict() for name, config in reversed(configs().items())}
    code = ELSEWHERE.replace("CONFIGS", repr(json.dumps(given)))
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True, env=environment
        )
    finally:
        for process in busy:
            process.kill()
    return json.loads(done.stdout)


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_a_fresh_process_beside_others_repeats_it(algorithm, here, in_a_fresh_process):
    assert in_a_fresh_process[algorithm] == here[algorithm]


def test_any_number_of_workers_repeats_it(tmp_path):
    """Two cells of two seeds, which run in lockstep, by one worker and by two; then each run alone.

    That a kernel has the bits of this process is in test_warm_kernels.py.
    """
    tiny = {**SMALL, "rounds": 3}
    cells = [
        Cell(f"repeat/{name}", "smoke", Config(**{**tiny, "algorithm": name}), (3, 4)) for name in ("fedbuff", "fedac")
    ]
    digests = []
    for workers in (1, 2):
        runs = tmp_path / f"{workers}"
        assert not run_grid(cells, runs, workers=workers, notebook=NOTEBOOK).failed
        digests.append(
            [
                read_record(cell.folder(runs) / f"seed-{seed}/result.json")["summary"]
                for cell in cells
                for seed in (3, 4)
            ]
        )
    assert digests[0] == digests[1]
    alone = [run(config).summary for cell in cells for config in cell.configs]
    assert [one["weights_sha256"] for one in digests[0]] == [one["weights_sha256"] for one in alone]
