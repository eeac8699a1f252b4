"""A run that continues under other versions of its libraries says so, and its result names all of them."""

from __future__ import annotations

import json
import warnings

import pytest

from asyncfl_lite import Config, load_result, run_many
from asyncfl_lite.cli import main
from asyncfl_lite.runs.run import run_in
from asyncfl_lite.runs.store import read_record, write_record

SETTINGS = {"clients": 4, "concurrency": 2, "buffer_size": 1, "rounds": 3, "local_steps": 1, "checkpoint_every": 1}
CONFIG = Config(**SETTINGS)
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]
THEN = {"asyncfl_lite": "0", "python": "3.11", "torch": "2.14.0", "numpy": "2.4.0", "instructions": "AVX2"}


@pytest.fixture
def under(monkeypatch):
    """Have other versions installed."""

    def now(**changes):
        monkeypatch.setattr("asyncfl_lite.runs.run.versions", lambda: {**THEN, **changes})

    now()
    return now


def stop(folder, at):
    """Run until a version, and fail."""
    with pytest.raises(ZeroDivisionError):
        run_many([CONFIG], folders=[folder], on_version=lambda run: 1 / (at - run.algorithm.version))


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
def test_a_run_that_continues_under_other_versions_says_so(tmp_path, under, changes, told):
    stop(tmp_path, 1)
    under(**changes)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = run_in(tmp_path, CONFIG)
    lines = [str(one.message) for one in said if "versions" in str(one.message)]
    assert len(lines) == bool(told) and all(f"other versions ({told}), so" in line for line in lines)
    for one in (result, load_result(tmp_path)):
        assert one.versions == THEN and one.continued_under == [{**THEN, **changes}]
    assert read_record(tmp_path / "result.json")["continued_under"] == [{**THEN, **changes}]


def test_it_names_each_and_warns_only_where_they_changed(tmp_path, under):
    stop(tmp_path, 1)
    under(torch="2.15.0")
    with pytest.warns(UserWarning, match="torch 2.14.0 and 2.15.0"):
        stop(tmp_path, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run_in(tmp_path, CONFIG)
    assert [one["torch"] for one in (result.versions, *result.continued_under)] == ["2.14.0", "2.15.0"]


def test_seeds_of_different_versions_are_told(tmp_path, under, capsys):
    folders = [tmp_path / "seed-0", tmp_path / "seed-1"]
    run_in(folders[0], CONFIG)
    under(torch="2.15.0")
    with pytest.warns(UserWarning, match=r"under different versions \(torch 2.14.0 and 2.15.0\)$"):
        run_many([CONFIG, CONFIG.with_seed(1)], folders=folders)
    assert main(["run", "--out", str(tmp_path), "--seed=0,1", *OPTIONS]) == 0
    assert "computed under different ones: torch 2.14.0 and 2.15.0\n" in capsys.readouterr().out


def test_a_result_of_another_device_is_told(tmp_path):
    run_in(tmp_path, CONFIG)
    record = json.loads((tmp_path / "result.json").read_text())
    record["config"]["device"] = "cuda"
    write_record(tmp_path / "result.json", record)
    with pytest.warns(UserWarning, match="the finished result was computed on cuda, not on cpu$"):
        run_in(tmp_path, CONFIG)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_in(tmp_path, Config(**SETTINGS, device="auto"))
