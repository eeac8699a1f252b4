"""The command line, as a process of its own where that matters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from asyncfl_lite import Config, Run, arguments, load_result, run
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.arguments import parse
from asyncfl_lite.cli import main
from asyncfl_lite.reproduction.grid.run import Report
from asyncfl_lite.runs.groups import GROUPS
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.partitions import PARTITIONS

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


def test_a_constant_answer_is_said(capsys, monkeypatch):
    assert main(["run", *SMALL]) == 0
    assert "constant answer" not in capsys.readouterr().out
    monkeypatch.setattr(Run, "_predict", lambda run, inputs: torch.zeros(len(inputs), 10))
    assert main(["run", *SMALL]) == 0
    told = capsys.readouterr().out
    assert "constant answer: the final model answers one class for every test sample" in told


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
        (["grid", "experiments/smoke.yaml", "--backend", "dask"], "scheduler: must be given with backend 'dask'"),
        (["grid", "experiments/smoke.yaml", "--scheduler", "tcp://x:1"], "scheduler: must be given with backend"),
        (["report", "--tier", "medium"], "tier: 'medium' is not known. Allowed: core, laptop"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("asyncfl-lite: ") and message in error and error.count("\n") == 1


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A grid of one cell, of which only what would be run is noted."""
    tier = {"seeds": [0], "settings": {"clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 3}}
    (tmp_path / "toy.yaml").write_text(json.dumps({"paper": "toy", "tiers": {"smoke": tier}, "cells": {"toy/a": {}}}))
    (tmp_path / "smoke.yaml").write_text("tier: smoke\npapers: [toy.yaml]\n")
    started = []
    monkeypatch.setattr(
        "asyncfl_lite.reproduction.grid.run.run_grid", lambda cells, *_, **__: started.extend(cells) or Report()
    )
    return ["grid", str(tmp_path / "smoke.yaml"), "--runs", str(tmp_path / "runs")], started


def test_a_grid_says_what_it_costs_and_starts_if_that_is_little(toy, capsys):
    command, started = toy
    assert main(command) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "1 cells: 0 complete, 1 to run"
    assert told[1].startswith("estimated cost: 1 runs, 9 client updates, ")
    assert len(started) == 1


def test_above_two_hours_it_wants_a_yes(toy, capsys, monkeypatch):
    command, started = toy
    monkeypatch.setattr("asyncfl_lite.reproduction.grid.cost.STARTING", 7201)
    assert main(command) == 2
    told = capsys.readouterr()
    assert "2.0 hours" in told.out and told.err.startswith("asyncfl-lite: yes: needed above 2 hours")
    assert told.err.count("\n") == 1 and not started
    assert main([*command, "--workers", "2"]) == 0  # an hour each
    assert main([*command, "--yes"]) == 0
    assert len(started) == 2


def test_without_the_library_of_dask_it_is_one_line(toy, capsys, monkeypatch):
    command, started = toy
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main([*command, "--backend", "dask", "--scheduler", "tcp://127.0.0.1:9"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "pip install 'asyncfl-lite[dask]'" in error and not started


def test_an_unknown_option_is_one_line_too(capsys):
    assert main(["run", "--alfa", "3"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("asyncfl-lite: run: option: '--alfa' is not known; did you mean '--alpha'?")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    "command", [[sys.executable, "-m", "asyncfl_lite"], [str(Path(sys.executable).parent / "asyncfl-lite")]]
)
def test_the_module_is_the_command(command, tmp_path):
    """As processes: what they print, what they say of a mistake, and their exit codes."""
    done, wrong, usage = (
        subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        for arguments in (["run", *SMALL], ["run", "--clients", "0"], ["--help"])
    )
    assert done.returncode == 0 and "virtual_time" in done.stdout
    assert wrong.returncode == 2 and wrong.stderr.startswith("asyncfl-lite: clients: ")
    assert usage.returncode == 0 and usage.stdout.startswith("usage: asyncfl-lite [-h] run|grid|report|record|list")


def options(*arguments: str) -> dict:
    return vars(parse(list(arguments)))


def test_options_are_taken_with_dashes_and_underscores():
    for name in Config.model_fields:
        value = "a_b=c_d" if name in GROUPS else "x_y"
        for option in ([f"--{name}", value], [f"--{name}={value}"]):
            dashed = [option[0].partition("=")[0].replace("_", "-"), *option[0].partition("=")[2:], *option[1:]]
            told = options("run", *option)
            assert told == options("run", *(text for text in dashed if text))
            assert told[name] == ([value] if name in GROUPS else value)
    for command, option in (("grid", "--paper"), ("report", "--tier"), ("record", "--results")):
        file = ["x_y.yaml"] * (command == "grid")
        assert options(command, *file, option, "a_b")[option[2:]] == "a_b"


def test_a_subcommand_s_option_of_two_words_may_have_an_underscore(monkeypatch):
    """None of theirs has two words today; the rule is the parser's, not that of ``run``."""
    made = arguments._parser

    def with_one_more():
        parser = made()
        parser.commands["report"].add_argument("--two-words")
        return parser

    monkeypatch.setattr(arguments, "_parser", with_one_more)
    assert options("report", "--two_words", "a_b") == options("report", "--two-words=a_b")


def test_an_unknown_option_is_named_as_it_was_written(capsys):
    assert main(["run", "--client_lrr", "1"]) == 2
    assert "'--client_lrr' is not known; did you mean '--client-lr'?" in capsys.readouterr().err
