"""A run has its folder or checkpoint for itself until it has ended, and says where it continued under other versions."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import warnings

import pytest

from asyncfl_lite import Config, load_result, run, run_many
from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.cli import main
from asyncfl_lite.runs.run import Run, run_in
from asyncfl_lite.runs.store import read_record, write_record
from conftest import line, wait_for

SETTINGS = {"clients": 4, "concurrency": 2, "buffer_size": 1, "rounds": 3, "local_steps": 1}
CONFIG, OTHER = Config(**SETTINGS), Config(**SETTINGS, client_lr=0.07)
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]
LATER = {
    "the same run": lambda folder, result: run_in(folder, CONFIG),
    "another run": lambda folder, result: run_in(folder, OTHER),
    "another run by force": lambda folder, result: run_in(folder, OTHER, force=True),
    "several runs": lambda folder, result: run_many([OTHER, CONFIG], folders=[f"{folder}-free", folder], force=True),
    "a checkpoint of the same name": lambda folder, result: run(CONFIG, checkpoint=folder / "checkpoint.pt"),
    "a result that is saved": lambda folder, result: result.save(folder),
    "a result that is saved by force": lambda folder, result: result.save(folder, force=True),
}


@pytest.fixture(scope="module")
def finished():
    return run(OTHER)


@pytest.fixture
def during(monkeypatch):
    """Call a function once, after the first version of the next run."""

    def call(function):
        made, left = Run._made_version, [function]

        def called(self, simulation):
            made(self, simulation)
            if left:
                left.pop()()

        monkeypatch.setattr(Run, "_made_version", called)

    return call


@pytest.mark.parametrize("later", LATER)
def test_nothing_else_begins_where_a_run_goes_on_and_the_run_is_kept(later, tmp_path, finished, during):
    folder, refused = tmp_path / "run", []
    during(lambda: refused.append(line(lambda: LATER[later](folder, finished), ResultError)))
    kept = run_in(folder, CONFIG)
    (told,) = refused
    assert str(folder) in told and re.search(f"checkpoint.pt is in use by another run .*process {os.getpid()}", told)
    assert load_result(folder).summary == kept.summary == run(CONFIG).summary
    assert not list(tmp_path.rglob(".*")) and not list(tmp_path.rglob("*.pt"))


def test_checkpoints_of_other_names_in_one_folder_are_free(tmp_path, during):
    during(lambda: run(OTHER, checkpoint=tmp_path / "b.pt"))
    assert run(CONFIG, checkpoint=tmp_path / "a.pt").summary == run(CONFIG).summary
    assert not list(tmp_path.iterdir())


def test_a_folder_is_free_again_when_a_run_has_failed_or_another_could_not_begin(tmp_path, finished):
    with pytest.raises(ZeroDivisionError):
        run(CONFIG, checkpoint=tmp_path / "run.pt", on_version=lambda run: 1 / 0)
    finished.save(tmp_path / "b")
    with pytest.raises(ResultError, match="b: holds the finished result"):
        run_many([CONFIG, CONFIG.with_seed(1)], folders=[tmp_path / "a", tmp_path / "b"])
    assert not list(tmp_path.rglob(".*"))


def test_a_claim_that_is_left_behind_locks_nobody_out(tmp_path):
    (tmp_path / ".checkpoint.pt.claim").write_text("{}")
    assert run_in(tmp_path, CONFIG).summary["versions"] == 3
    assert not list(tmp_path.glob(".*"))


def test_a_result_that_cannot_be_kept_is_saved_as_a_checkpoint(tmp_path, finished, during, monkeypatch):
    """Such as by an earlier version of this package, which claims no folder."""
    during(lambda: finished.write(tmp_path, force=False, weights=True))
    with pytest.raises(ResultError, match="holds the finished result of another configuration") as told:
        run_in(tmp_path, CONFIG)
    assert told.value.__notes__ == [
        f"the run is saved in {tmp_path / 'checkpoint.pt'}, from which the same run continues"
    ]
    monkeypatch.setattr(Run, "train", None)
    assert run_in(tmp_path, CONFIG, force=True).summary["versions"] == 3
    assert not list(tmp_path.glob("*.pt"))


@pytest.mark.long
def test_of_several_commands_one_runs_and_the_others_say_so(tmp_path):
    """Real processes: the first is asked to end, saves itself, and leaves the folder free."""
    command = [sys.executable, "-m", "asyncfl_lite.cli", "run", "--out", str(tmp_path), *OPTIONS, "--rounds=1000000"]
    first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: list(tmp_path.glob(".checkpoint.pt.claim")) or first.poll() is not None, 100)
    assert first.poll() is None
    for options in ([], ["--force", "--client-lr=0.07"]):
        other = subprocess.run([*command, *options], capture_output=True, text=True, timeout=100)
        assert other.returncode == 2 and other.stderr.count("\n") == 1
        assert f"in use by another run (runs on {platform.node()} (process {first.pid})" in other.stderr
    first.send_signal(signal.SIGTERM)
    told = first.communicate(timeout=100)[1]
    assert first.returncode == -signal.SIGTERM and "saved in" in told
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]


SAVED = Config(**SETTINGS, checkpoint_every=1)
THEN = {"asyncfl_lite": "0", "python": "3.11", "torch": "2.14.0", "numpy": "2.4.0", "instructions": "AVX2"}


@pytest.fixture
def under(monkeypatch):
    """Have other versions installed."""

    def now(**changes):
        monkeypatch.setattr("asyncfl_lite.runs.store.versions", lambda: {**THEN, **changes})

    now()
    return now


def stop(folder, at):
    """Run until a version, and fail."""
    with pytest.raises(ZeroDivisionError):
        run_many([SAVED], folders=[folder], on_version=lambda run: 1 / (at - run.algorithm.version))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"torch": "2.15.0"}, "torch 2.14.0 and 2.15.0"),
        ({"numpy": "2.5.0", "instructions": "AVX512"}, "numpy 2.4.0 and 2.5.0, instructions AVX2 and AVX512"),
        ({"MKL_CBWR": "COMPATIBLE"}, "MKL_CBWR none and COMPATIBLE"),
        ({"gpu": "H100"}, "gpu none and H100"),
        ({"python": "3.12", "asyncfl_lite": "1", "scipy": "1.17"}, ""),
    ],
)
def test_a_run_that_continues_under_other_versions_says_so_once(tmp_path, under, changes, told):
    stop(tmp_path, 1)
    under(**changes)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        stop(tmp_path, 2)
        result = run_in(tmp_path, SAVED)  # under the same ones again
    lines = [str(one.message) for one in said if "versions" in str(one.message)]
    assert len(lines) == bool(told) and all(f"other versions ({told}), so" in line for line in lines)
    for one in (result, load_result(tmp_path)):
        assert one.versions == THEN and one.continued_under == [{**THEN, **changes}]
    assert read_record(tmp_path / "result.json")["continued_under"] == [{**THEN, **changes}]


def test_seeds_of_different_versions_are_told(tmp_path, under, capsys):
    folders = [tmp_path / "seed-0", tmp_path / "seed-1"]
    run_in(folders[0], SAVED)
    under(torch="2.15.0")
    with pytest.warns(UserWarning, match=r"under different versions \(torch 2.14.0 and 2.15.0\)$"):
        run_many([SAVED, SAVED.with_seed(1)], folders=folders)
    assert main(["run", "--out", str(tmp_path), "--seed=0,1", *OPTIONS]) == 0
    assert "computed under different ones: torch 2.14.0 and 2.15.0\n" in capsys.readouterr().out


def test_a_result_of_another_device_is_told(tmp_path):
    run_in(tmp_path, SAVED)
    record = json.loads((tmp_path / "result.json").read_text())
    record["config"]["device"] = "cuda"
    write_record(tmp_path / "result.json", record)
    with pytest.warns(UserWarning, match="the finished result was computed on cuda, not on cpu$"):
        run_in(tmp_path, SAVED)
    with warnings.catch_warnings(action="error"):
        run_in(tmp_path, Config(**SETTINGS, device="auto"))
