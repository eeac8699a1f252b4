"""Hard luck: a grid of 60 cells whose workers die, a disk that is really full."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import nbformat
import psutil
import pytest

from asyncfl_lite import Config
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.grid.run import run_grid

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
EXPERIMENT = ROOT / "notebooks/experiment.ipynb"
DEATHS = 4
BETWEEN = (4, 12)
"""How many cells end between two deaths, at least and at most: after four deaths some have not been begun."""


def without_pictures(folder: Path) -> Path:
    """Write the grid's template but for the cells that draw, which take as long as all others together."""
    book = nbformat.read(EXPERIMENT, as_version=4)
    book.cells = [cell for cell in book.cells if "plots.plot_" not in cell.source]
    nbformat.write(book, folder / "template.ipynb")
    return folder / "template.ipynb"


def workers() -> list[psutil.Process]:
    """Return the grid's workers among the children of this process."""
    found = []
    for process in psutil.Process().children():
        with suppress(psutil.Error):  # it has ended
            found += [process] * ("popen_loky" in " ".join(process.cmdline()))
    return found


def begun_since(runs: Path, moment: float) -> bool:
    """Whether a process has begun a cell, and claimed it, after a moment."""
    begun = []
    for path in runs.rglob(".claim-*"):
        with suppress(FileNotFoundError):  # it has just ended
            begun.append(path.stat().st_mtime)
    return max(begun, default=0.0) > moment


def test_a_grid_of_60_cells_whose_workers_die_ends_complete(tmp_path):
    tiny = {"clients": 4, "concurrency": 2, "buffer_size": 2, "rounds": 2, "partition": "iid"}
    cells = [Cell(f"luck/{seed:03d}", "smoke", Config(**tiny, seed=seed), (seed,)) for seed in range(60)]
    rng, over, killed = random.Random(1), threading.Event(), []

    def reap() -> None:
        last, at = 0.0, 0
        while len(killed) < DEATHS and not over.wait(rng.uniform(0.2, 1.2)):
            ended, there = len(list(tmp_path.glob("smoke/luck/*/result.json"))), workers()
            if ended >= at and there and begun_since(tmp_path, last):  # those that start are not killed
                killed.append(rng.choice(there))
                killed[-1].kill()
                last, at = time.time(), ended + rng.randint(*BETWEEN)

    reaper = threading.Thread(target=reap)
    reaper.start()
    began = time.monotonic()
    try:
        report = run_grid(cells, tmp_path, workers=2, notebook=without_pictures(tmp_path))
    finally:
        over.set()
        reaper.join()
    print(f"60 cells in {time.monotonic() - began:.0f} s, {len(killed)} workers killed")
    assert len(killed) == DEATHS and not report.failed and not report.elsewhere
    # a cell may have been complete when its worker was killed, who had not said so yet: it is skipped
    assert sorted(report.done + report.skipped) == [cell.name for cell in cells] and len(report.skipped) <= 2 * DEATHS
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
        "grid": ["grid", str(ROOT / "asyncfl_reproduction/cells/smoke.yaml"), "--only", "fedecho/table2/large-dir0.1/fedbuff",
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
