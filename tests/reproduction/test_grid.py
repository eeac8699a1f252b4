"""Grids: YAML to cells, real papermill kernels, failures kept, nothing finished run again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import nbformat
import psutil
import pytest
import yaml

from asyncfl_lite.algorithms.fedecho import FedEcho
from asyncfl_lite.runs.results import load_result
from asyncfl_lite.runs.store import read_record, versions
from asyncfl_reproduction.cli import _said
from asyncfl_reproduction.grid import kernels
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.cost import estimate
from asyncfl_reproduction.grid.interrupts import MESSAGE
from asyncfl_reproduction.grid.record import _row
from asyncfl_reproduction.grid.run import run_grid, run_seeds, summarise_cell
from conftest import toy_grid, wait_for

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "notebooks/experiment.ipynb"
CELLS = {
    "toy/one/fedbuff": {},
    "toy/two/fedecho": {"settings": {"algorithm": "fedecho", "settings": {"distill_samples": 40}}},
    "toy/laptop-only": {"tiers": {"laptop": {}}},
}


def write_experiments(folder):
    toy_grid(folder, cells=CELLS, seeds=(0, 1), task="digits", local_steps=2)


@pytest.fixture
def experiments(tmp_path):
    folder = tmp_path / "cells"
    folder.mkdir()
    write_experiments(folder)
    return folder


def change(experiments, path, value):
    """Change one value of the toy paper's file, ``path`` being keys."""
    content = yaml.safe_load((experiments / "toy.yaml").read_text())
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (experiments / "toy.yaml").write_text(yaml.safe_dump(content))


def test_cells_merge_tier_and_own_settings(experiments):
    cells = expand_grid(experiments / "smoke.yaml")
    assert [cell.name for cell in cells] == ["toy/one/fedbuff", "toy/two/fedecho"]
    assert cells[1].config.clients == 6 and cells[1].config.settings.distill_samples == 40
    assert [config.seed for config in cells[0].configs] == [0, 1]
    assert [c.name for c in expand_grid(experiments / "smoke.yaml", only="toy/two/*")] == ["toy/two/fedecho"]


def test_grid_runs_fails_resumes_and_skips(experiments, tmp_path):
    """With real kernels: one cell breaks, the other finishes; mended, only what is missing runs."""
    runs, broken = tmp_path / "runs", tmp_path / "broken.ipynb"
    book = nbformat.read(TEMPLATE, as_version=4)
    trouble = "if configuration['algorithm'] == 'fedecho':\n    raise RuntimeError('broken on purpose')"
    book.cells.insert(3, nbformat.v4.new_code_cell(trouble))
    nbformat.write(book, broken)
    cells = expand_grid(experiments / "smoke.yaml")

    report = run_grid(cells, runs, workers=1, notebook=broken)
    assert report.done == ["toy/one/fedbuff"]
    assert report.failed == {"toy/two/fedecho": "RuntimeError: broken on purpose (see failed.ipynb)"}
    kept = runs / "smoke/toy/two/fedecho"
    assert "broken on purpose" in (kept / "failed.ipynb").read_text()
    assert not (kept / "result.json").exists()

    done = runs / "smoke/toy/one/fedbuff"
    record = json.loads((done / "result.json").read_text())
    assert record["status"] == "complete" and record["seeds"] == [0, 1]
    assert 0 < record["summary"]["mean"]["final_accuracy"] < 1
    executed = nbformat.read(done / "experiment.ipynb", as_version=4)
    assert all(cell.execution_count for cell in executed.cells if cell.cell_type == "code")
    assert sorted(p.name for p in done.iterdir()) == ["experiment.ipynb", "result.json", "seed-0", "seed-1"]

    report = run_grid(cells, runs, workers=1, notebook=TEMPLATE)
    assert (report.done, report.skipped, report.failed) == (["toy/two/fedecho"], ["toy/one/fedbuff"], {})
    assert not (kept / "failed.ipynb").exists()
    assert run_grid(cells, runs, workers=1, notebook=TEMPLATE).skipped == [cell.name for cell in cells]


def test_a_cell_that_trains_too_long_is_stopped_and_its_runs_are_saved(experiments, tmp_path, monkeypatch):
    """With a real kernel, which trains for half an hour if nobody stops it."""
    monkeypatch.setattr(kernels, "GRACE", 2.0)
    change(experiments, ("cells", "toy/one/fedbuff", "settings"), {"rounds": 1_000_000})
    cells = expand_grid(experiments / "smoke.yaml", only="toy/one/*")
    report = run_grid(cells, tmp_path / "runs", minutes_per_cell=0.03, notebook=TEMPLATE)
    told = "stopped after 0.03 minutes; what it finished is kept, and the same command continues"
    assert (report.done, report.failed) == ([], {"toy/one/fedbuff": told})
    assert _said(report) == 1
    left = {
        path.relative_to(cells[0].folder(tmp_path / "runs")) for path in tmp_path.glob("runs/**/*") if path.is_file()
    }
    assert left == {Path("seed-0/checkpoint.pt"), Path("seed-1/checkpoint.pt")}


def record_without_a_kernel(cell, runs):
    """What the notebook does, in this process."""
    run_seeds(cell.config.as_dict(), cell.seeds, cell.folder(runs))
    summarise_cell(cell, runs)


def states(experiments, runs):
    return [cell.state(runs) for cell in expand_grid(experiments / "smoke.yaml")]


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory):
    """A folder in which both cells are complete."""
    folder = tmp_path_factory.mktemp("recorded")
    write_experiments(folder)
    for cell in expand_grid(folder / "smoke.yaml"):
        record_without_a_kernel(cell, folder)
    return folder


@pytest.fixture
def recorded(recorded_once, tmp_path):
    """A copy of that folder."""
    shutil.copytree(recorded_once, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("cells", "toy/one/fedbuff", "settings"), {"client_lr": 0.07}, ["changed", "complete"]),
        (("cells", "toy/two/fedecho", "tiers"), {"smoke": {"rounds": 4}}, ["complete", "changed"]),
        (("cells", "toy/two/fedecho", "settings", "settings"), {"distill_samples": 41}, ["complete", "changed"]),
        (("tiers", "smoke", "settings", "alpha"), 0.2, ["changed", "changed"]),
        (("tiers", "smoke", "seeds"), [0, 1, 2], ["missing", "missing"]),
        (("tiers", "smoke", "seeds"), [1], ["complete", "complete"]),
        (("cells", "toy/one/fedbuff", "seeds"), {"smoke": [0, 5]}, ["missing", "complete"]),
        (("tiers", "smoke", "about"), "other words", ["complete", "complete"]),
        (("tiers", "smoke", "settings", "threads"), 1, ["complete", "complete"]),
        (("tiers", "smoke", "settings", "threads"), 2, ["changed", "changed"]),  # sums are rounded in another order
        (("tiers", "smoke", "settings", "checkpoint_every"), 2, ["complete", "complete"]),  # how, not what
    ],
)
def test_a_change_touches_exactly_its_cells(experiments, recorded, path, value, expected):
    assert states(experiments, recorded) == ["complete", "complete"]
    change(experiments, path, value)
    assert states(experiments, recorded) == expected


def test_only_what_changed_runs_again(experiments, recorded, monkeypatch):
    change(experiments, ("cells", "toy/one/fedbuff", "settings"), {"client_lr": 0.07})
    cells, ran = expand_grid(experiments / "smoke.yaml"), []
    monkeypatch.setattr("asyncfl_reproduction.grid.run._execute", lambda cell, *_: ran.append(cell.name))
    monkeypatch.setattr("asyncfl_reproduction.grid.run.summarise_cell", lambda *_: None)
    report = run_grid(cells, recorded, notebook=TEMPLATE)
    assert ran == report.done == ["toy/one/fedbuff"] and report.skipped == ["toy/two/fedecho"]


def test_versions_that_are_mixed_within_a_cell_or_differ_from_now_are_told(experiments, recorded, monkeypatch, capsys):
    """A seed of the first cell is run again under another torch, and then all is complete under a third."""
    cells = expand_grid(experiments / "smoke.yaml")
    folder = cells[0].folder(recorded)
    shutil.rmtree(folder / "seed-1")
    now = versions()
    monkeypatch.setattr("asyncfl_lite.runs.store.versions", lambda: {**now, "torch": "9.0"})
    record_without_a_kernel(cells[0], recorded)
    record = read_record(folder / "result.json")
    assert record["versions"] == now and [one["torch"] for one in record["continued_under"]] == ["9.0"]
    assert run_grid(cells, recorded).versions == {f"torch 9.0 and {now['torch']}": 1}
    monkeypatch.setattr("asyncfl_reproduction.grid.run.versions", lambda: {**now, "torch": "9.9"})
    here, mixed = f"torch {now['torch']} and 9.9", f"torch {now['torch']} and 9.9; torch 9.0 and 9.9"
    report = run_grid(cells, recorded)
    assert report.versions == {mixed: 1, here: 1} and len(report.skipped) == 2
    assert _said(report) == 0
    told = "  complete, at least in part under other versions: 1 cell, "
    assert capsys.readouterr().out.splitlines()[1:] == [told + mixed, told + here]
    assert [_row("a", result)["torch"] for result in cells[0].load(recorded)] == [now["torch"], "9.0"]
    result = replace(cells[0].load(recorded)[0], continued_under=[{**now, "torch": "9.9"}])
    assert _row("a", result)["torch"] == f"{now['torch']}, then 9.9"


def test_results_of_another_meaning_are_stale_and_not_mixed(experiments, recorded, monkeypatch):
    monkeypatch.setattr(FedEcho, "revision", 2, raising=False)
    assert states(experiments, recorded) == ["complete", "stale"]
    _, echo = expand_grid(experiments / "smoke.yaml")
    assert echo.load(recorded) == []
    assert load_result(echo.folder(recorded) / "seed-0").outdated == {"algorithm": (1, 2)}
    assert str(estimate([echo], recorded)).startswith("1 cell: 0 complete, 1 to run (1 stale)")
    record_without_a_kernel(echo, recorded)
    assert states(experiments, recorded) == ["complete", "complete"]
    assert json.loads((echo.folder(recorded) / "result.json").read_text())["meaning"]["algorithm"] == 2
    monkeypatch.setattr("asyncfl_lite.runs.store.MEANING", 99)
    assert states(experiments, recorded) == ["stale", "stale"]


def test_a_seed_that_is_finished_is_kept_and_read(experiments, tmp_path):
    """The missing one comes out as if both had run from the start, though only it is written."""
    cell, both = expand_grid(experiments / "smoke.yaml")[0], tmp_path / "both"
    run_seeds(cell.config.as_dict(), [0], tmp_path)
    before = (tmp_path / "seed-0/result.json").read_bytes()
    results = run_seeds(cell.config.as_dict(), [0, 1], tmp_path)
    assert (tmp_path / "seed-0/result.json").read_bytes() == before
    assert results[1].summary == run_seeds(cell.config.as_dict(), [0, 1], both)[1].summary
    assert run_seeds(cell.config.as_dict(), [0, 1], tmp_path)[0].summary == results[0].summary


@pytest.mark.parametrize("tier", ["smoke", "laptop"])
def test_the_projects_own_grids_are_sound(tier):
    cells = expand_grid(ROOT / f"asyncfl_reproduction/cells/{tier}.yaml")
    assert len({cell.name for cell in cells}) == len(cells) >= 18
    assert all(len(cell.seeds) >= 3 for cell in cells)
    vision = [cell for cell in cells if cell.name.startswith(("fedecho/table2/", "fedecho/table6/", "methods/"))]
    assert len(vision) >= 12
    assert all(
        (c.config.clients, c.config.concurrency) == (50, 50 if c.config.scheduling == "burst" else 25) for c in vision
    )


@pytest.mark.long
def test_an_interrupt_is_one_line_and_leaves_nothing_running(experiments, recorded, hears_ctrl_c):
    """A real SIGINT to the whole process group, as Ctrl-C sends it, while two kernels run; they save their runs."""
    runs, cells = recorded, expand_grid(experiments / "smoke.yaml")
    for number in (2, 3):  # too long to end before the interrupt; of a speed that is recorded
        longer = {"algorithm": "fedbuff", "client_lr": 0.01 * number, "rounds": 100_000, "checkpoint_seconds": 3.0}
        change(experiments, ("cells", f"toy/{number}"), {"settings": longer})
    command = [sys.executable, "-m", "asyncfl_lite.cli", "grid", str(experiments / "smoke.yaml")]
    grid = subprocess.Popen(
        [*command, "--runs", str(runs), "--workers", "2", "--yes"], cwd=ROOT, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: len(list(runs.rglob("checkpoint.pt"))) == 4)  # two seeds of each are on their way
    time.sleep(0.5)  # training goes on from there
    others = psutil.Process(grid.pid).children(recursive=True)
    assert len(others) >= 4  # processes, and what kernels are forked from
    sent = time.time()
    os.killpg(grid.pid, signal.SIGINT)
    _, errors = grid.communicate(timeout=60)
    assert grid.returncode == 130
    told = [line for line in errors.replace("\r", "\n").splitlines() if line and not line.startswith("grid:")]
    assert told == [MESSAGE]
    _, alive = psutil.wait_procs(others, timeout=10)
    assert [other for other in alive if other.status() != psutil.STATUS_ZOMBIE] == []
    assert cells[0].is_complete(runs)
    saved = [path.stat().st_mtime for path in runs.rglob("checkpoint.pt")]
    assert len(saved) == 4 and min(saved) > sent  # where they were when they were interrupted
