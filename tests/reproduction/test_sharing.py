"""Grids that share a folder: a cell is run by the process that has claimed it, and by no other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from asyncfl_lite.base import claims
from asyncfl_lite.base.claims import CLAIM, Elsewhere, claim, held
from asyncfl_reproduction.grid.cells import Cell, expand_grid
from asyncfl_reproduction.grid.workers import BEGUN, FINISHED, outcomes
from conftest import toy_grid, wait_for

ROOT = Path(__file__).parents[2]


@pytest.fixture
def grid(tmp_path):
    """A tier's file; its cells are ``toy/a`` to ``toy/d``."""
    return toy_grid(tmp_path, "toy/a", "toy/b", "toy/c", "toy/d")


@pytest.fixture
def ended():
    """A process of this host that has ended, as a claim names it."""
    process = subprocess.Popen(["true"])
    process.wait()
    return {**claims._this_process(), "holder": "other", "process": process.pid}


def write_claim(folder, holder, number=1):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".claim-{number}"
    path.write_text(json.dumps(holder))
    return path


def make_old(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_claim_says_who_has_it_and_is_given_back(tmp_path):
    first = claim(tmp_path / CLAIM, "one")
    second = claim(tmp_path / CLAIM, "two")
    assert isinstance(second, Elsewhere) and f"(process {os.getpid()}) since 20" in second
    with held(first):
        assert [path.name for path in tmp_path.iterdir()] == [".claim-1"]
    assert not list(tmp_path.iterdir())


def test_a_claim_of_the_same_grid_is_that_of_a_lost_process(tmp_path):
    assert claim(tmp_path / CLAIM, "one").name == ".claim-1"
    with held(claim(tmp_path / CLAIM, "one")):
        assert (tmp_path / ".claim-2").exists() and isinstance(claim(tmp_path / CLAIM, "two"), Elsewhere)
    assert not list(tmp_path.iterdir())


def test_one_of_many_that_claim_at_once_gets_it(tmp_path, ended):
    """Free, and given up by a process that is gone: the moment at which several take it over."""
    for before in (0, 1):
        folders = [tmp_path / f"{before}-{number}" for number in range(20)]
        for folder in folders:
            if before:
                write_claim(folder, ended)
        with ThreadPoolExecutor(8) as threads:
            asked = [
                (folder, threads.submit(claim, folder / CLAIM, f"grid {n}")) for folder in folders for n in range(8)
            ]
        got = Counter(folder for folder, future in asked if isinstance(future.result(), Path))
        assert got == dict.fromkeys(folders, 1)


@pytest.mark.parametrize("change", [{}, {"process": os.getpid(), "started": 1.0}], ids=["gone", "number used again"])
def test_a_claim_whose_process_is_gone_on_this_host_is_taken_over_at_once(tmp_path, ended, change):
    write_claim(tmp_path, {**ended, **change})
    assert claim(tmp_path / CLAIM, "one") == tmp_path / ".claim-2"


@pytest.mark.parametrize("where", [{"host": "other-host"}, {"namespace": 1}], ids=["host", "container"])
def test_a_claim_of_another_host_is_void_when_it_was_not_renewed(tmp_path, ended, where):
    path = write_claim(tmp_path, {**ended, **where})
    make_old(path, claims.VOID - 60)
    assert "runs on" in claim(tmp_path / CLAIM, "one")
    make_old(path, claims.VOID + 60)
    assert isinstance(claim(tmp_path / CLAIM, "one"), Path)


@pytest.mark.parametrize("content", ["", "[1]", '{"host": 1'])
def test_a_claim_that_is_being_written_counts(tmp_path, content):
    path = tmp_path / ".claim-1"
    path.write_text(content)
    assert claim(tmp_path / CLAIM, "one") == "claimed by another process"
    make_old(path, claims.VOID + 60)
    assert isinstance(claim(tmp_path / CLAIM, "one"), Path)


def test_a_claim_is_renewed_while_its_cell_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "RENEWED", 0.01)
    path = claim(tmp_path / CLAIM, "one")
    make_old(path, 1000)
    with held(path):
        wait_for(lambda: time.time() - path.stat().st_mtime < 500, 10)


def test_a_grid_leaves_to_others_what_they_have_and_takes_what_they_lost(grid, tmp_path, ended):
    cells, ran = expand_grid(grid), []
    write_claim(cells[0].folder(tmp_path), {**claims._this_process(), "holder": "other"})
    (cells[0].folder(tmp_path) / BEGUN).write_text("1")
    write_claim(cells[1].folder(tmp_path), ended)

    def work(cell, runs):
        ran.append(cell.name)
        return cell.name, None

    found = dict(outcomes(work, cells, tmp_path))
    assert ran == ["toy/b", "toy/c", "toy/d"]
    assert isinstance(found.pop("toy/a"), Elsewhere) and set(found.values()) == {None}
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(left) == [BEGUN, ".claim-1", "smoke.yaml", "toy.yaml"]  # the other grid's, untouched


def test_a_cell_that_another_grid_completes_or_loses_meanwhile_is_not_run_twice_and_not_forgotten(
    grid, tmp_path, monkeypatch
):
    """Of the two that another grid has, it ends one, and dies in the other."""
    cells = expand_grid(grid)[:3]
    theirs = [write_claim(cell.folder(tmp_path), {**claims._this_process(), "holder": "x"}) for cell in cells[:2]]
    ran, complete = [], set()
    monkeypatch.setattr(Cell, "is_complete", lambda cell, runs: cell.name in complete)

    def work(cell, runs):
        ran.append(cell.name)
        if cell is cells[2]:
            complete.add("toy/a")
            theirs[0].unlink()
            theirs[1].write_text(json.dumps({**claims._this_process(), "holder": "x", "started": 1.0}))
        return cell.name, None

    assert dict(outcomes(work, cells, tmp_path)) == {"toy/a": FINISHED, "toy/b": None, "toy/c": None}
    assert ran == ["toy/c", "toy/b"]


def started(grid, runs, *options):
    command = [sys.executable, "-m", "asyncfl_lite.cli", "grid", str(grid), "--runs", str(runs), "--yes", *options]
    return subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.long
def test_two_grids_share_the_cells_of_a_folder(grid, tmp_path):
    """Real processes and kernels: each cell is run once, by one of the two."""
    runs, cells = tmp_path / "runs", expand_grid(grid)
    both = [started(grid, runs) for _ in range(2)]
    printed = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], printed
    done = [int(out.split(" cells done")[0].splitlines()[-1]) for out, _ in printed]
    assert sum(done) == len(cells) and all(cell.is_complete(runs) for cell in cells)
    assert not list(runs.rglob(".claim-*")) and not list(runs.rglob(BEGUN))


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_grid_leaves_no_process_and_its_cells_to_the_next(grid, tmp_path, workers):
    runs = tmp_path / "runs"
    toy_grid(tmp_path, "toy/a", "toy/b", rounds=1_000_000, eval_every=100_000)
    process = started(grid, runs, "--workers", str(workers))
    wait_for(lambda: len(list(runs.rglob(".experiment.*.part.ipynb"))) == workers)  # each has a kernel
    grid_process, enough = psutil.Process(process.pid), {1: 2, 2: 6}[workers]  # what kernels are forked from, kernels
    wait_for(lambda: len(grid_process.children(recursive=True)) >= enough)
    others = grid_process.children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    _, alive = psutil.wait_procs(others, timeout=20)
    assert [other for other in alive if other.status() != psutil.STATUS_ZOMBIE] == []
    ran = []

    def work(cell, runs):
        ran.append(cell.name)
        return cell.name, None

    assert list(outcomes(work, expand_grid(grid), runs)) == [("toy/a", None), ("toy/b", None)]
    assert ran == ["toy/a", "toy/b"]
