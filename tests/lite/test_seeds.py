"""Several runs at once from a shell, and how far runs are: bars, lines, and how much time is left."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from asyncfl_lite import Config, Run, load_result, run_many
from asyncfl_lite.base.errors import DivergedError
from asyncfl_lite.cli import main
from asyncfl_lite.runs import lockstep
from asyncfl_lite.runs.progress import Progress, in_words

AS_SETTINGS = {"clients": 6, "concurrency": 3, "buffer_size": 2, "local_steps": 2, "rounds": 3}
SMALL = [f"--{name.replace('_', '-')}={value}" for name, value in AS_SETTINGS.items()]


def test_several_seeds_run_in_lockstep_and_are_summed_up(tmp_path, capsys, monkeypatch):
    together, finish = [], lockstep.finish_together
    monkeypatch.setattr(
        lockstep, "finish_together", lambda runs, *a, **b: together.append(len(runs)) or finish(runs, *a, **b)
    )
    assert main(["run", *SMALL, "--eval-every", "1", "--seed", "3", "--seed", "0,1", "--out", str(tmp_path / "x")]) == 0
    told = capsys.readouterr()
    runs = [load_result(tmp_path / f"x/seed-{seed}") for seed in (3, 0, 1)]
    assert [one.config.seed for one in runs] == [3, 0, 1] and together == [3]
    accuracies = [one.summary["final_accuracy"] for one in runs]
    assert f"{np.mean(accuracies):.4f} ± {np.std(accuracies, ddof=1):.4f}" in told.out
    assert re.search(r"^versions +3$", told.out, re.M)
    assert re.search(r"^3 runs, 9 of 9 versions; seed [013]: version 3 of 3, time .*: accuracy 0", told.err, re.M)
    assert main(["run", *SMALL, "--eval-every", "1", "--seed", "3,0-2,4", "--out", str(tmp_path / "x")]) == 0
    assert together == [3, 2]  # the others are there
    assert main(["run", *SMALL, "--seed", "0-1"]) == 0 and together == [3, 2, 2]
    assert main(["run", *SMALL, "--seed", "0,1", "--cohort", "off"]) == 0 and together == [3, 2, 2, 1, 1]


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        (["1", "1"], "must be given once each, got 1, 1"),
        (["0-2", "2"], "must be given once each, got 0, 1, 2, 2"),
        (["0,00,1"], "must be given once each, got 0, 00, 1"),
        (["10", " 1_0"], "must be given once each, got 10,  1_0"),
        (["1", "+1"], "must be given once each, got 1, +1"),
        (["1", "1.0"], "must be given once each, got 1, 1.0"),
        (["4-0"], "must be at most 1000 seeds, such as 0,1,2 or 0-4, got '4-0'"),
        (["0-999999999"], "must be at most 1000 seeds, such as 0,1,2 or 0-4, got '0-999999999'"),
        (["0..4"], "must be a valid integer, unable to parse string as an integer, got '0..4'"),
    ],
)
def test_seeds_that_cannot_be_are_one_line(seeds, words, capsys):
    assert main(["run", *SMALL, *(part for seed in seeds for part in ("--seed", seed))]) == 2
    assert capsys.readouterr().err == f"asyncfl-lite: seed: {words}\n"


def test_a_configuration_that_is_there_twice_is_said(recwarn):
    config = Config(**AS_SETTINGS)
    run_many([config, config.with_seed(1)])
    assert not recwarn
    with pytest.warns(UserWarning, match="^configs: the same configuration is there twice, and its run counts twice$"):
        run_many([config, Config(**AS_SETTINGS, checkpoint_seconds=5)])


def test_a_seed_that_fails_leaves_the_others_saved(tmp_path, capsys, monkeypatch):
    def diverges(run, record=Run._record):
        if (run.config.seed, run.algorithm.version) == (1, 1):
            raise DivergedError("its rates are too large")
        record(run)

    command = ["run", *SMALL, "--eval-every", "1", "--seed", "0-2", "--out", str(tmp_path / "x")]
    with monkeypatch.context() as patch:
        patch.setattr(Run, "_record", diverges)
        assert main(command) == 2
    *_, told = capsys.readouterr().err.splitlines()
    assert told.startswith(
        "asyncfl-lite: its rates are too large; of 3 runs, number 1 from 0 failed, seed 1; 2 other runs are saved"
    )
    for seed in (0, 2):
        config = Config(**AS_SETTINGS, eval_every=1, seed=seed)
        assert Run(config, checkpoint=tmp_path / f"x/seed-{seed}/checkpoint.pt").resume()
    assert main(command) == 0


def test_how_long_it_will_take_still_goes_by_what_was_done_since_it_began(monkeypatch):
    """Half of 100 versions were there when the run went on; ten more took 20 seconds."""
    now, run = [1000.0], SimpleNamespace(config=SimpleNamespace(rounds=100, horizon=None, seed=0), stopped=None)
    run.simulation, run.algorithm = SimpleNamespace(version_observers=[], clock=0.0), SimpleNamespace(version=50)
    run.curve_rows = [{"version": 50, "time": 1.0, "accuracy": 0.5}]
    monkeypatch.setattr("asyncfl_lite.runs.progress.time.monotonic", lambda: now[0])
    with Progress("lines", [run]) as progress:
        (made,) = run.simulation.version_observers
        made(None)
        now[0], run.algorithm.version = 1020.0, 60
        assert progress._left() == ", about 80 s left"
        run.config.horizon, run.simulation.clock = 10.0, 9.0  # which ends it sooner
        assert progress._left() == ", about 5 s left"
    assert [in_words(seconds) for seconds in (99, 100, 5400)] == ["99 s", "2 min", "1.5 h"]


def test_several_runs_have_one_bar(capsys):
    config = Config(clients=6, concurrency=3, buffer_size=2, rounds=3, eval_every=1)
    run_many([config, config.with_seed(1)], progress=True)
    told = capsys.readouterr().err
    assert "6/6" in told and "accuracy=0." in told
    run_many([config, config.with_seed(1)], progress="lines")
    assert re.search(r"^2 runs, 6 of 6 versions; seed [01]: version 3 of 3", capsys.readouterr().err, re.M)
