"""Grids that share a folder: a cell is run by the process that has claimed it, and by no other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from asyncfl_lite.base.locks import CLAIM, Elsewhere, claimed, is_left_behind
from asyncfl_reproduction.grid.cells import Cell, expand_grid
from asyncfl_reproduction.grid.workers import BEGUN, FINISHED, outcomes
from conftest import toy_grid, wait_for

ROOT = Path(__file__).parents[2]


@pytest.fixture
def grid(tmp_path):
    """A tier's file; its cells are ``toy/a`` to ``toy/d``."""
    return toy_grid(tmp_path, "toy/a", "toy/b", "toy/c", "toy/d")


LOST = json.dumps({"holder": "other", "host": "node-7", "process": 1, "since": "2026-01-01 00:00 UTC"})
"""A claim's file that a killed process has left behind."""


def left_behind(folder, content=LOST):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CLAIM).write_text(content)


def test_a_claim_says_who_has_it_and_is_given_back(tmp_path):
    with claimed(tmp_path / CLAIM, "one") as mine, claimed(tmp_path / CLAIM, "two") as theirs:
        assert mine is None and f"(process {os.getpid()}) since 20" in theirs
        assert is_left_behind(tmp_path / CLAIM, "one") and not is_left_behind(tmp_path / CLAIM, "two")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["", "[1]", '{"host": 1', LOST])
def test_a_claim_that_is_left_behind_is_in_nobodys_way(tmp_path, content):
    left_behind(tmp_path, content)
    with claimed(tmp_path / CLAIM, "one") as mine:
        assert mine is None
    assert not list(tmp_path.iterdir())


def test_a_claim_ends_with_its_process(tmp_path):
    code = f"from asyncfl_lite.base.locks import *\nwith claimed(Path({str(tmp_path)!r}, CLAIM), 'x'): print(), input()"
    with subprocess.Popen([sys.executable, "-uc", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with claimed(tmp_path / CLAIM, "one") as theirs:
            assert f"(process {process.pid})" in theirs
        process.kill()
    with claimed(tmp_path / CLAIM, "one") as mine:
        assert mine is None


@pytest.mark.parametrize("before", ["free", "left behind", "released meanwhile"])
def test_one_of_many_that_claim_at_once_gets_it(tmp_path, before):
    folders = [tmp_path / str(number) for number in range(20)]
    with ExitStack() as kept, ExitStack() as others, ThreadPoolExecutor(8) as threads:
        for folder in folders:
            if before == "left behind":
                left_behind(folder)
            if before == "released meanwhile":
                others.enter_context(claimed(folder / CLAIM, "other"))

        def ask(folder):
            return kept.enter_context(claimed(folder / CLAIM, "one"))

        asked = [(folder, threads.submit(ask, folder)) for folder in folders for _ in range(8)]
        others.close()
        got = Counter(folder for folder, future in asked if future.result() is None)
    assert got == dict.fromkeys(folders, 1) or (before == "released meanwhile" and set(got.values()) <= {1})


def test_a_grid_leaves_to_others_what_they_have_and_takes_what_they_lost(grid, tmp_path):
    cells, ran = expand_grid(grid), []

    def work(cell, runs):
        ran.append(cell.name)
        return cell.name, None

    with claimed(cells[0].folder(tmp_path) / CLAIM, "other"):
        (cells[0].folder(tmp_path) / BEGUN).write_text("1")
        left_behind(cells[1].folder(tmp_path))
        found = dict(outcomes(work, cells, tmp_path))
        left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert ran == ["toy/b", "toy/c", "toy/d"]
    assert isinstance(found.pop("toy/a"), Elsewhere) and set(found.values()) == {None}
    assert sorted(left) == [BEGUN, CLAIM, "smoke.yaml", "toy.yaml"]  # the other grid's, untouched


def test_a_cell_that_another_grid_completes_or_loses_meanwhile_is_not_run_twice_and_not_forgotten(
    grid, tmp_path, monkeypatch
):
    """Of the two that another grid has, it ends one, and dies in the other."""
    cells, theirs = expand_grid(grid)[:3], ExitStack()
    ran, complete = [], set()
    monkeypatch.setattr(Cell, "is_complete", lambda cell, runs: cell.name in complete)

    def work(cell, runs):
        ran.append(cell.name)
        if cell is cells[2]:
            complete.add("toy/a")
            theirs.close()
            left_behind(cells[1].folder(tmp_path))
        return cell.name, None

    with theirs:
        for cell in cells[:2]:
            theirs.enter_context(claimed(cell.folder(tmp_path) / CLAIM, "x"))
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
    assert not list(runs.rglob(CLAIM)) and not list(runs.rglob(BEGUN))


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
