"""The command line, as a process of its own where that matters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from asyncfl_lite import Config, Run, load_result, run
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.cli import main
from asyncfl_lite.delays import DELAYS
from asyncfl_lite.partitions import PARTITIONS
from asyncfl_lite.tasks import TASKS

ROOT = Path(__file__).parent.parent
SMALL = ["--clients", "6", "--concurrency", "3", "--buffer-size", "2", "--rounds", "3"]


def test_run_prints_a_summary_and_writes_the_result(tmp_path, capsys):
    code = main(["run", "--algorithm", "fedecho", *SMALL, "--settings", "distill_samples=40", "--settings", "clip=none",
                 "--model-settings", "hidden=8,8", "--out", str(tmp_path / "x")])  # fmt: skip
    assert code == 0
    assert "final_accuracy" in capsys.readouterr().out
    config = load_result(tmp_path / "x").config
    assert (config.settings.distill_samples, config.settings.clip, config.model_settings.hidden) == (40, None, (8, 8))


def test_what_is_finished_is_not_run_again_and_what_was_interrupted_goes_on(tmp_path, capsys, monkeypatch):
    command = ["run", *SMALL, "--checkpoint-every", "1", "--out", str(tmp_path)]
    config = Config(clients=6, concurrency=3, buffer_size=2, rounds=3, checkpoint_every=1)
    started = Run(config, checkpoint=tmp_path / "checkpoint.pt")

    def interrupt(simulation, arrival):
        if len(simulation.arrivals) == 4:
            raise KeyboardInterrupt

    started.simulation.observers.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        started.finish()
    assert main(command) == 0
    first = load_result(tmp_path)
    assert first.summary == run(config.with_seed(0), checkpoint=tmp_path / "other.pt").summary
    assert not (tmp_path / "checkpoint.pt").exists()
    monkeypatch.setattr(Run, "finish", None)  # would fail if it were run again
    assert main(command) == 0
    assert capsys.readouterr().out.count("final_accuracy") == 2


def test_every_setting_is_an_option(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    shown = capsys.readouterr().out
    assert all(f"--{name.replace('_', '-')}" in shown for name in Config.model_fields)


def test_list_names_everything_with_a_line(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for registry in (ALGORITHMS, TASKS, DELAYS, PARTITIONS):
        for name in registry:
            assert any(line.split()[0] == name and len(line.split()) > 3 for line in lines if line.startswith("  "))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--algorithm", "fedbuf"], "algorithm: 'fedbuf' is not known; did you mean 'fedbuff'?"),
        (["run", "--alpha", "0"], "alpha: must be greater than 0, got '0'"),
        (["run", "--settings", "clip"], "settings: must be NAME=VALUE, got 'clip'"),
        (["grid", "experiments/none.yaml"], "none.yaml: No such file or directory"),
        (["grid", "experiments/smoke.yaml", "--only", "x"], "matches 'x'"),
        (["grid", "experiments/smoke.yaml", "--workers", "0"], "workers: must be at least 1, got 0"),
        (["report", "--tier", "paper"], "tier: experiments/paper.yaml does not exist; there are:"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("asyncfl-lite: ") and message in error and error.count("\n") == 1


def test_an_unknown_option_is_argparses_own_error():
    with pytest.raises(SystemExit) as caught:
        main(["run", "--alfa", "3"])
    assert caught.value.code == 2


def test_as_a_process():
    done = subprocess.run(
        [sys.executable, "-m", "asyncfl_lite.cli", "run", *SMALL], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0 and "virtual_time" in done.stdout
