"""Who runs cells: processes of this machine that are killed, and what a killed grid leaves behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.workers import BEGUN, outcomes


@pytest.fixture
def cells(tmp_path):
    from conftest import toy_grid  # not above: the processes that import this file find another conftest

    return expand_grid(toy_grid(tmp_path, "toy/kills-always", "toy/killed-once", "toy/harmless"))


def deadly(cell, runs):
    """Stands for cells whose process is killed: one for the third time, one for the first time only."""
    begun = cell.folder(runs) / BEGUN
    if cell.name == "toy/kills-always":
        begun.write_text("3")
        os.kill(os.getpid(), signal.SIGKILL)
    if cell.name == "toy/killed-once" and begun.read_text() == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return cell.name, None


@pytest.mark.long
def test_a_killed_process_takes_no_other_cell_with_it(cells, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # where the processes find this file
    assert dict(outcomes(deadly, cells, tmp_path, workers=2)) == {
        "toy/kills-always": "its worker was lost 3 times, killed or out of memory",
        "toy/killed-once": None,
        "toy/harmless": None,
    }
    assert not list(tmp_path.rglob(BEGUN))


def test_what_a_killed_grid_left_is_tidied_up_and_not_counted(cells, tmp_path):
    folder = cells[0].folder(tmp_path)
    folder.mkdir(parents=True)
    (folder / BEGUN).write_text("3")
    (folder / ".experiment.ipynb.99.part.ipynb").write_text("")
    assert list(outcomes(lambda cell, runs: (cell.name, None), cells[:1], tmp_path)) == [(cells[0].name, None)]
    assert not list(folder.iterdir())


def test_a_cell_whose_folder_cannot_be_written_fails_alone(cells, tmp_path):
    (tmp_path / "smoke").mkdir()
    (tmp_path / "smoke/toy").mkdir()
    (tmp_path / "smoke/toy/killed-once").write_text("a file in the folder's place")
    ended = dict(outcomes(lambda cell, runs: (cell.name, None), cells, tmp_path))
    assert ended.pop("toy/killed-once").startswith(("ResultError", "NotADirectoryError"))
    assert set(ended.values()) == {None}
