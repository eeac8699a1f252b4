"""Several runs at once from a shell, and how far runs are: bars, lines, and how much time is left."""

from __future__ import annotations

import re

import numpy as np
import pytest

from asyncfl_lite import Config, Run, load_result, run_many
from asyncfl_lite.base.errors import DivergedError
from asyncfl_lite.cli import main
from asyncfl_lite.runs import lockstep

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
    assert main(["run", *SMALL, "--seed", "0,1", "--vectorize", "off"]) == 0 and together == [3, 2, 2, 1, 1]


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
