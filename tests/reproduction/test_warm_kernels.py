"""Kernels that are forked: as fresh as others, in their own folder, and gone with their owner."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest
from nbclient import NotebookClient

from asyncfl_lite import Config, run
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.grid.kernels import preloaded, quiet_kernels, warm_kernels
from asyncfl_reproduction.grid.run import PRELOADED, run_cell
from conftest import wait_for

TEMPLATE = Path(__file__).parents[2] / "notebooks/experiment.ipynb"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")


@pytest.fixture(scope="module", autouse=True)
def one_process():
    quiet_kernels()
    yield
    preloaded(os.getpid(), PRELOADED).close()
    preloaded.cache_clear()


def execute(folder, *cells: str) -> list[str]:
    """Run cells in one warm kernel; return what each printed."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with warm_kernels(PRELOADED):
        NotebookClient(book, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    return ["".join(output.get("text", "") for output in cell.outputs).strip() for cell in book.cells]


@pytest.mark.long
def test_a_kernel_is_fresh_and_in_its_own_folder(tmp_path):
    told = "import os, sys; print(os.getcwd(), 'left' in globals(), 'torch' in sys.modules, os.getpid())"
    first, second = (execute(tmp_path, told, "left = 1")[0].split() for _ in range(2))
    assert first[:3] == second[:3] == [str(tmp_path), "False", "True"]
    assert first[3] != second[3]


TOLD = """
import json, os, psutil, sys
from pathlib import Path
ends = [end for end in psutil.Process().net_connections("inet") if end.status == psutil.CONN_LISTEN]
told = {"listens": sorted({end.laddr.ip for end in ends}), "key": Path(sys.argv[2]).stat().st_mode & 0o777}
told |= {"folder": os.getcwd(), "environment": dict(os.environ), "modules": sys.path, "arguments": sys.argv}
Path(folder, "told.json").write_text(json.dumps(told))
"""


def test_nothing_of_a_worker_s_first_cell_reaches_its_second(tmp_path, monkeypatch):
    """The grid's own path: one worker runs cells one after another, and papermill changes the worker's folder."""
    book = nbformat.read(TEMPLATE, as_version=4)
    book.cells.append(nbformat.v4.new_code_cell(TOLD))
    nbformat.write(book, tmp_path / "template.ipynb")
    monkeypatch.chdir(tmp_path)
    told = {}
    for name in ("one", "two"):
        monkeypatch.setenv("WORKER_AT", name)
        monkeypatch.setenv(f"ONLY_{name.upper()}", "yes")
        config = Config(rounds=2, clients=6, concurrency=3)
        cell = Cell(name=f"toy/{name}", tier="smoke", config=config, seeds=(0,))
        assert run_cell(cell, tmp_path / "runs", tmp_path / "template.ipynb") == (cell.name, None)
        monkeypatch.delenv(f"ONLY_{name.upper()}")
        told[name] = json.loads((cell.folder(tmp_path / "runs") / "told.json").read_text())
        assert told[name]["folder"] == str(cell.folder(tmp_path / "runs").resolve())
        assert told[name]["environment"]["WORKER_AT"] == name
        assert told[name]["listens"] == ["127.0.0.1"] and told[name]["key"] == 0o600  # of the file with its key
    assert "ONLY_ONE" in told["one"]["environment"] and "ONLY_ONE" not in told["two"]["environment"]
    assert "ONLY_TWO" in told["two"]["environment"]
    assert not any("toy/one" in text for text in [*told["two"]["modules"], *told["two"]["environment"].values()])
    assert Path.cwd() == tmp_path


def test_kernels_do_not_share_random_streams(tmp_path):
    drawn = {execute(tmp_path, "import uuid; print(uuid.uuid4())")[0] for _ in range(2)}
    assert len(drawn) == 2


def test_a_run_is_the_same_as_in_this_process(tmp_path):
    told = "from asyncfl_lite import Config, run; print(run(Config(rounds=3)).summary['weights_sha256'])"
    assert execute(tmp_path, told)[0] == run(Config(rounds=3)).summary["weights_sha256"]


def test_figures_are_drawn_into_the_notebook(tmp_path):
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("import matplotlib.pyplot as plt\nplt.plot([1, 2]);")]
    )
    with warm_kernels(PRELOADED):
        NotebookClient(book, timeout=60).execute()
    assert "image/png" in book.cells[0].outputs[-1]["data"]


@pytest.mark.long
def test_a_process_that_died_is_an_error_once(tmp_path):
    preloaded(os.getpid(), PRELOADED).process.kill()
    preloaded(os.getpid(), PRELOADED).process.wait()
    with pytest.raises(RuntimeError, match="has died"):
        execute(tmp_path, "print(1)")
    assert execute(tmp_path, "print(1)") == ["1"]


OWNER = """
import os, time
from asyncfl_reproduction.grid.kernels import Preloaded
warm = Preloaded([])
from jupyter_client.manager import AsyncKernelManager
manager = AsyncKernelManager(kernel_name="python3")
manager.write_connection_file()
print(warm.fork(manager.connection_file, os.getcwd(), dict(os.environ)), warm.process.pid, flush=True)
time.sleep(60)
"""


def runs(pid: int) -> bool:
    """Whether a process does anything still; one that nobody has waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.long
def test_kernels_end_when_their_owner_is_killed():
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    kernel, forked_from = map(int, owner.stdout.readline().split())
    assert runs(kernel) and runs(forked_from)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    wait_for(lambda: not runs(kernel) and not runs(forked_from), 20)
