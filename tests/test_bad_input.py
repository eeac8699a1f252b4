"""Whatever is wrong with an input, it is told in one line that names what, where, and what is allowed.

The tables are in ``tests/bad_input``; here they meet the command line, which prints that line, and exits with 2.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import yaml
from bad_input import check
from bad_input.arguments import ARGUMENTS, SETTINGS
from bad_input.configurations import CONFIGURATIONS, HUGE
from bad_input.data import DATA
from bad_input.grids import GRIDS, PAPER, TIER

from asyncfl_lite import Config, load_result, run
from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.cli import main
from asyncfl_lite.runs.results import load_complete
from asyncfl_lite.runs.store import standing, write_record

ROOT = Path(__file__).parent.parent
SMALL = {"clients": 6, "concurrency": 3, "buffer_size": 2, "local_steps": 2, "rounds": 2}


@pytest.fixture
def refused(capfd):
    """Run the command line in this process; it must refuse its arguments as it should, here for these words."""

    def run_it(arguments: list[str], words: tuple[str, ...]) -> None:
        code = main(arguments)
        told = capfd.readouterr()
        assert code == 2, (code, told)
        assert told.err.startswith("asyncfl-lite: ") and told.err.endswith("\n") and "Traceback" not in told.err
        check(told.err.removesuffix("\n"), words)

    return run_it


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working folder with a sound grid, and a file where a folder might be wanted."""
    write_grid(tmp_path)
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")  # nobody writes into it, so reading would wait for ever
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASYNCFL_DATA", str(tmp_path / "nothing"))
    return tmp_path


def write_grid(folder: Path, tier: str | bytes = TIER, paper: str | bytes = PAPER) -> Path:
    (folder / "cells").mkdir(exist_ok=True)
    for name, text in (("smoke", tier), ("toy", paper)):
        (folder / f"cells/{name}.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder / "cells/smoke.yaml"


def table(rows: list, *ids: str):
    return pytest.mark.parametrize(ids, [row[1:] for row in rows], ids=[row[0] for row in rows])


YAML_HOLDS = [
    row for row in CONFIGURATIONS if all(isinstance(key, str) and key and row[1][key] != HUGE for key in row[1])
]


@table(YAML_HOLDS, "given", "words")
def test_a_configuration_in_a_grid_is_told_with_file_and_cell(given, words, place, refused):
    content = {**yaml.safe_load(PAPER), "cells": {"toy/a": {"settings": given}}}
    write_grid(place, paper=yaml.safe_dump(content))
    refused(["grid", "cells/smoke.yaml"], ("cells/toy.yaml: cell toy/a: ", *words))


@table(ARGUMENTS, "arguments", "words")
def test_a_command_line(arguments, words, place, refused):
    known = {"{grid}": "cells/smoke.yaml", "{file}": str(place / "file")}
    refused(
        [known.get(text, text).replace("{pipe}", "pipe") for text in arguments],
        tuple(known.get(text, text) for text in words),
    )
    assert (place / "file").read_text() == "x"


@pytest.mark.parametrize(("name", "text", "words"), SETTINGS)
def test_a_file_of_settings(name, text, words, place, refused):
    (place / name).write_text(text)
    refused(["run", "--config", name], words)


@table(GRIDS, "tier", "paper", "words")
def test_a_grid(tier, paper, words, place, refused):
    write_grid(place, tier, paper)
    refused(["grid", "cells/smoke.yaml"], ("cells/", *words))


@table(DATA, "asked", "write", "words")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_data_file(asked, write, words, place, refused):
    (place / "data").mkdir()
    write(place / "data")
    if isinstance(asked, str):
        arguments = ["--task", asked, "--task-settings", f"folder={place / 'data'}", "--model", "mlp"]
    else:
        arguments = asked(place / "data")
    refused(["run", "--rounds", "1", *arguments], words)
    assert not (place / "exploded").exists()


@pytest.fixture(scope="module")
def finished():
    """A result, and the bytes of its files."""
    return run(Config(**SMALL))


def changed(**parts: object):
    """Put another ``result.json`` there, as other code would write it."""

    def change(folder: Path) -> None:
        path = folder / "result.json"
        write_record(path, {**json.loads(path.read_text()), **parts})

    return change


def edited(written: str, instead: str):
    """Edit a ``result.json`` by hand."""

    def edit(folder: Path) -> None:
        path = folder / "result.json"
        text = re.sub(written, instead, path.read_text(), count=1)
        assert text != path.read_text()
        path.write_text(text)

    return edit


def cut(name: str):
    def change(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:-20])

    return change


RESULTS = [
    ("cut-off", cut("result.json"), "missing", ("result.json: cut off or not JSON; run the cell again",)),
    ("removed", lambda f: (f / "result.json").unlink(), "missing", ("result.json: cannot be read (No such file",)),
    ("deep", lambda f: (f / "result.json").write_text("[" * 99999), "missing", ("result.json: cut off or not JSON",)),
    ("other-format", changed(format=99), "missing", ("result.json: not a result of format 1; run the cell again",)),
    ("no-configuration", changed(config=None), "missing", ("result.json: must have config, summary, timing and files",)),
    ("a-digest-less", changed(files={}), "missing", ("result.json: has no digest of curve.csv",)),
    ("odd-meaning", changed(meaning=3), "missing", ("result.json: meaning must be a mapping; run the cell again",)),
    ("odd-versions", changed(continued_under={}), "missing", ("result.json: continued_under must be a list; run the",)),
    ("accuracy-edited", edited('"final_accuracy": [0-9.]+', '"final_accuracy": 0.99'), "missing", ("result.json: changed since it was written; run the cell again",)),
    ("undigested", edited('"digest": "[^"]*"', '"old": ""'), "missing", ("result.json: changed since it was written",)),
    ("other-code", changed(config={"tasks": "x"}), "changed", ("result.json: its configuration needs other code; a module of your own must be imported first (setting: 'tasks' is not known",)),
    ("table-cut-off", cut("curve.csv"), "missing", ("curve.csv: cut off or changed since it was written",)),
    ("table-changed", lambda f: (f / "updates.csv").write_text("client\n1\n"), "missing", ("updates.csv: cut off or changed",)),
    ("table-removed", lambda f: (f / "clients.csv").unlink(), "missing", ("clients.csv: cannot be read (No such file",)),
]  # fmt: skip


@table(RESULTS, "damage", "stands", "words")
def test_a_result(damage, stands, words, finished, tmp_path):
    finished.save(tmp_path)
    assert load_complete(tmp_path, finished.config).summary == finished.summary
    damage(tmp_path)
    assert standing(tmp_path, finished.config) == stands and load_complete(tmp_path, finished.config) is None
    with pytest.raises(ResultError) as caught:
        load_result(tmp_path)
    check(str(caught.value), words)


@pytest.mark.long
def test_cells_that_fail_exit_with_1_and_those_that_do_not_with_0(place, capfd):
    """A cell that is sound and fails when it runs: its partition cannot give everyone a sample."""
    settings = {**SMALL, "partition_settings": {"min_size": 1000}}
    write_grid(place, paper=yaml.safe_dump({**yaml.safe_load(PAPER), "cells": {"toy/a": {"settings": settings}}}))
    command = ["grid", "cells/smoke.yaml", "--yes"]
    (place / "notebooks").symlink_to(ROOT / "notebooks")
    assert main(command) == 1
    told = capfd.readouterr()
    assert "1 failed" in told.out and "  failed: toy/a: ConfigError: " in told.out and "Traceback" not in told.err
    write_grid(place, paper=PAPER.replace("toy/a: {}", f"toy/a: {{settings: {json.dumps(SMALL)}}}"))
    assert main(command) == 0 and "1 cell done" in capfd.readouterr().out
