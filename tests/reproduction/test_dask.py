"""A grid on a Dask cluster: a real scheduler, two workers as processes of their own, one of them killed."""

from __future__ import annotations

import importlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from test_workers import deadly

from asyncfl_lite.base.errors import SimulationError
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.workers import BEGUN, connected, outcomes
from conftest import toy_grid, wait_for

dask = pytest.importorskip("dask")
pytest.importorskip("distributed", reason="dask.distributed is not installed: pip install 'asyncfl-lite[dask]'")

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.fixture
def grid(tmp_path):
    return toy_grid(tmp_path, "toy/a", "toy/b", "toy/c")


@pytest.fixture
def cluster(tmp_path):
    """A scheduler's address, and a function that starts a worker; all are gone afterwards."""
    file, started = tmp_path / "scheduler.json", []
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(ROOT / "tests"), str(ROOT)]),
    }

    def start(kind, *options):
        command = [sys.executable, "-m", "dask", kind, *options]
        started.append(subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.DEVNULL))
        return started[-1]

    own = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
    start("scheduler", *own, "--port", "0", "--scheduler-file", str(file))
    wait_for(lambda: file.exists() and file.read_text())  # it is written after it is made
    address = json.loads(file.read_text())["address"]
    yield address, lambda *more: start("worker", address, *own, "--nthreads", "1", "--no-nanny", *more)
    for process in reversed(started):
        process.kill()
        process.wait()


def listening(pids):
    """Addresses on which processes, and those that they started, wait for connections."""
    family = [one for pid in pids for one in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True))]
    found = [end for one in family for end in one.net_connections(kind="inet") if end.status == psutil.CONN_LISTEN]
    return {end.laddr.ip for end in found}


def test_the_pages_cluster_on_one_machine_listens_on_loopback_alone(tmp_path):
    """As docs/cluster.md starts it, but for the port."""
    page = (ROOT / "docs/cluster.md").read_text()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    commands = re.findall(r"^dask ((?:scheduler|worker tcp).*?)(?: +#.*)?$", page.replace("8786", port), re.M)[:2]
    assert [command.split()[0] for command in commands] == ["scheduler", "worker"]
    started = []
    try:
        for command in commands:
            dask = [sys.executable, "-m", "dask", *command.split()]
            started.append(subprocess.Popen(dask, cwd=tmp_path, stderr=subprocess.DEVNULL))
            wait_for(lambda: not socket.socket().connect_ex(("127.0.0.1", int(port))))
        with connected(f"tcp://127.0.0.1:{port}") as client:
            assert len(client.nthreads()) == 1
            assert listening([process.pid for process in started]) == {"127.0.0.1"}
    finally:
        for process in reversed(started):
            for one in (*psutil.Process(process.pid).children(recursive=True), process):
                one.kill()
            process.wait()


def test_a_worker_that_is_killed_in_a_cell_costs_nothing_but_time(grid, cluster, tmp_path):
    """The command line, papermill, kernels, all real; the killed worker's cell is done by the other one."""
    address, start_worker = cluster
    workers, runs = [start_worker(), start_worker()], tmp_path / "runs"
    with connected(address) as client:
        client.wait_for_workers(2, timeout=30)
    command = [sys.executable, "-m", "asyncfl_lite.cli", "grid", str(grid), "--runs", str(runs)]
    command += ["--backend", "dask", "--scheduler", address]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(list(runs.rglob(BEGUN))) == 2)  # each of the two is in a cell
    kernels = psutil.Process(workers[0].pid).children(recursive=True)
    workers[0].kill()
    told, errors = running.communicate(timeout=150)
    assert running.returncode == 0, errors
    assert "3 cells done, 0 complete before, 0 failed" in told
    assert all(cell.is_complete(runs) for cell in expand_grid(grid))
    assert not list(runs.rglob(BEGUN))
    wait_for(lambda: not any(kernel.is_running() for kernel in kernels), 10)  # nor does its kernel live on


def who(cell, runs):
    """Stands for a cell, and says which process ran it."""
    return cell.name, str(os.getpid())


def test_cells_for_a_gpu_run_on_workers_that_offer_one_and_the_grid_says_if_none_does(grid, cluster, tmp_path, capfd):
    address, start_worker = cluster
    start_worker()
    cells = {"toy/a": {}, "toy/b": {}, "toy/c": {"settings": {"device": "cpu"}}}
    toy_grid(tmp_path, cells=cells, device="auto")
    list(outcomes(who, expand_grid(grid), tmp_path / "none", scheduler=address))
    assert "no worker offers a GPU (dask worker … --resources GPU=1)" in capfd.readouterr().err
    tagged = start_worker("--resources", "GPU=1")
    with connected(address) as client:
        client.wait_for_workers(2, timeout=30)
    ended = dict(outcomes(who, expand_grid(grid), tmp_path / "one", scheduler=address))
    assert ended["toy/a"] == ended["toy/b"] == str(tagged.pid)
    assert capfd.readouterr().err == ""


def test_a_cell_that_kills_every_worker_fails_and_the_others_are_done(cluster, tmp_path):
    address, start_worker = cluster
    start_worker(), start_worker()
    with connected(address) as client:
        client.wait_for_workers(2, timeout=30)
    cells = expand_grid(toy_grid(tmp_path, "toy/kills-always", "toy/harmless"))
    ended = dict(outcomes(deadly, cells, tmp_path, scheduler=address))
    assert ended == {"toy/kills-always": "its worker was lost 3 times, killed or out of memory", "toy/harmless": None}


def test_code_that_the_cluster_does_not_have_is_the_cells_error(grid, cluster, tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "own/only_here.py").write_text("def work(cell, runs):\n    return cell.name, None\n")
    monkeypatch.syspath_prepend(str(tmp_path / "own"))
    address, start_worker = cluster
    start_worker()
    ended = dict(outcomes(importlib.import_module("only_here").work, expand_grid(grid), tmp_path, scheduler=address))
    assert list(ended) == ["toy/a", "toy/b", "toy/c"]
    assert all(
        error.startswith("RuntimeError: Error during deserial") and "\n" not in error for error in ended.values()
    )


def sleepy(cell, runs):
    """Stands for a cell that runs when the scheduler is lost."""
    (runs / "runs").touch()
    time.sleep(60)


def test_a_lost_scheduler_is_one_line_with_the_whole_advice(grid, cluster, tmp_path, capfd):
    address, start_worker = cluster
    start_worker()
    (lost,) = [one for one in psutil.Process().children() if "scheduler" in one.cmdline()]
    ends = threading.Thread(target=lambda: (wait_for((tmp_path / "runs").exists), lost.kill()))
    with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
        ends.start()
        with pytest.raises(SimulationError) as caught:
            list(outcomes(sleepy, expand_grid(grid), tmp_path, scheduler=address))
    advice = "is gone, and its workers end with it; start a scheduler and workers again, and the same command continues"
    assert str(caught.value) == f"scheduler: {address} {advice}"
    assert capfd.readouterr().err == ""
