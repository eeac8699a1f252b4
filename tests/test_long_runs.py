"""Long runs and hard luck: memory over 20,000 updates, a grid whose workers die, a disk that is really full."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from asyncfl_lite import Config
from asyncfl_lite.reproduction.grid.cells import Cell
from asyncfl_lite.reproduction.grid.run import run_grid

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
UPDATES = 20_000
A_ROW = 640
"""Bytes that an update may add to memory: its row in the table of updates, which is part of the result."""
DEATHS = 10
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
    "fedadt": {"rounds": UPDATES},
    "fedrevive": {
        "rounds": UPDATES,
        "settings": {"freeze_rounds": 10, "synthesis_only_rounds": 10, "num_teachers": 2, "k_kd": 1, "k_synth": 1},
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


def workers_of(process: int) -> list[int]:
    """Return the process numbers of the grid's workers among the children of a process."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) == process:
                command = (folder / "cmdline").read_text()
                found += [int(folder.name)] * ("popen_loky" in command)
        except (OSError, IndexError):  # it has ended
            continue
    return found


def begun_since(runs: Path, moment: float) -> bool:
    """Whether a process has begun a cell, and claimed it, after a moment."""
    for path in runs.rglob(".claim-*"):
        with suppress(FileNotFoundError):  # it has just ended
            if path.stat().st_mtime > moment:
                return True
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not list processes in /proc")
def test_a_grid_of_200_cells_whose_workers_die_ends_complete(tmp_path):
    tiny = {"clients": 4, "concurrency": 2, "buffer_size": 2, "rounds": 2, "partition": "iid"}
    cells = [Cell(f"luck/{seed:03d}", "smoke", Config(**tiny, seed=seed), (seed,)) for seed in range(200)]
    rng, over, killed = random.Random(1), threading.Event(), []

    def reap() -> None:
        last = 0.0
        while len(killed) < DEATHS and not over.wait(rng.uniform(6, 18)):
            workers = workers_of(os.getpid())
            if workers and begun_since(tmp_path, last):  # a busy machine may need longer to start a process
                killed.append(rng.choice(workers))
                os.kill(killed[-1], signal.SIGKILL)
                last = time.time()

    reaper = threading.Thread(target=reap)
    reaper.start()
    began = time.monotonic()
    try:
        report = run_grid(cells, tmp_path, workers=2, notebook=ROOT / "notebooks/experiment.ipynb")
    finally:
        over.set()
        reaper.join()
    print(f"200 cells in {time.monotonic() - began:.0f} s, {len(killed)} workers killed")
    assert len(killed) == DEATHS and not report.failed and len(report.done) == 200
    assert all(cell.is_complete(tmp_path) for cell in cells)
    assert not list(tmp_path.rglob("*.part*"))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 300 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can only be mounted by root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("what", ["checkpoint", "result", "grid"])
def test_a_full_disk_ends_with_one_line_and_no_half_result(what, small_disk):
    (small_disk / "ballast").write_bytes(bytes({"checkpoint": 0, "result": 297_000, "grid": 250_000}[what]))
    arguments = {
        "checkpoint": ["run", "--rounds", "300", "--checkpoint-every", "1", "--out", str(small_disk / "run")],
        "result": ["run", "--rounds", "60", "--out", str(small_disk / "run")],
        "grid": ["grid", str(ROOT / "experiments/smoke.yaml"), "--only", "fedecho/table2/large-dir0.1/fedbuff",
                 "--runs", str(small_disk / "runs")],
    }[what]  # fmt: skip
    code = "import sys; from asyncfl_lite.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=ROOT)
    assert "Traceback" not in done.stderr and "No space left on device" in done.stdout + done.stderr
    if what == "grid":
        assert done.returncode == 1 and "1 failed" in done.stdout
    else:
        assert done.returncode == 2
        told = [line for line in done.stderr.splitlines() if not line.startswith("version ")]  # how far it is
        assert len(told) == 1 and told[0].startswith("asyncfl-lite: ")
    assert not list(small_disk.rglob("*.part*")) and not list(small_disk.rglob("result.json"))
