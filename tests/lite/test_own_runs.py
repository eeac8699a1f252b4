"""Runs on one's own data: in folders, resumed, and never taken for runs on the task that their configuration names."""

from __future__ import annotations

import copy
import pickle
import signal

import numpy as np
import pytest

from asyncfl_lite import Config, Run, Task, load_result, run, run_many, schedule
from asyncfl_lite.base.errors import ConfigError, ResultError
from asyncfl_lite.cli import main

POINTS = np.random.default_rng(0).standard_normal((80, 4)).astype(np.float32)
SIDES = (POINTS.sum(1) > 0).astype(int)
CONFIG = Config(model="mlp", partition="iid", clients=6, concurrency=3, buffer_size=2, rounds=4, eval_every=2)
CONFIGS = [CONFIG, CONFIG.with_seed(1), CONFIG.with_seed(2)]
WORDS = r"^task: this is the configuration of a run on your own data \('mine'\), which it does not contain; pass the data too"


def own(shift: float = 0.0) -> Task:
    return Task.from_tensors(POINTS[:60] + np.float32(shift), SIDES[:60], POINTS[60:], SIDES[60:], name="mine")


@pytest.fixture
def saved(tmp_path):
    return run(CONFIG, task=own()).save(tmp_path / "saved")


def test_the_configuration_of_such_a_run_wants_the_data_again(saved, monkeypatch):
    """It names digits, which nobody asked for."""
    result = run(CONFIG, task=own())
    marked = load_result(saved).config
    for config in (
        result.config,
        marked,
        marked.with_seed(3),
        copy.deepcopy(marked),
        pickle.loads(pickle.dumps(marked)),
    ):
        for call in (run, schedule, lambda config: run_many([config])):
            with pytest.raises(ConfigError, match=WORDS):
                call(config)
    assert marked == CONFIG and marked.hash == CONFIG.hash and hash(marked) == hash(CONFIG)  # it is no other setting
    assert CONFIG.own_task is None and run(CONFIG).config.own_task is None  # nor has the user's own been touched
    assert run(marked, task=own()).summary == result.summary
    assert len(schedule(marked, task=own()).updates) == len(result.updates)


def test_the_command_line_does_not_train_it_on_digits_either(saved, capsys):
    assert main(["run", "--config", str(saved)]) == 2
    told = capsys.readouterr().err
    assert (
        told.count("\n") == 1
        and f"config: {saved}/result.json belongs to a run on your own data ('mine'), which the file does not contain"
        in told
    )
    assert main(["run", "--config", str(saved), "--task", "digits", "--rounds", "1"]) == 0


def test_a_sweep_in_folders_is_read_where_it_is_finished(tmp_path, monkeypatch):
    folders = [tmp_path / str(config.seed) for config in CONFIGS]
    first = run_many(CONFIGS, task=own(), folders=folders)
    assert [load_result(folder).own_task for folder in folders] == ["mine"] * 3
    assert [one.summary for one in first] == [run(config, task=own()).summary for config in CONFIGS]
    with monkeypatch.context() as patch:
        patch.setattr(Run, "train", None)
        again = run_many(CONFIGS, task=own(), folders=folders)
        assert [one.summary for one in again] == [one.summary for one in first]
        for other, words in ((own(0.01), "own data changed since"), (None, r"a run on other data \(mine\)")):
            with pytest.raises(ResultError, match=words):
                run_many(CONFIGS, task=other, folders=folders)
    run_many(CONFIGS, task=own(0.01), folders=folders, force=True)
    assert load_result(folders[0]).summary != first[0].summary


def test_a_sweep_that_was_interrupted_goes_on(tmp_path, monkeypatch, hears_ctrl_c):
    folders = [tmp_path / str(config.seed) for config in CONFIGS]
    wanted, evaluate = run_many(CONFIGS, task=own()), Run.evaluate

    def interrupted(run):
        if run.algorithm.version == 2 and run.config.seed == 1:
            signal.raise_signal(signal.SIGINT)
        return evaluate(run)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Run, "evaluate", interrupted)
        run_many(CONFIGS, task=own(), folders=folders)
    places = [folder / "checkpoint.pt" for folder in folders]
    begun = [Run(config, own(), place) for config, place in zip(CONFIGS, places, strict=True)]
    assert all(run.resume() and run.simulation.arrivals for run in begun)
    found = run_many(CONFIGS, task=own(), folders=folders)
    assert [one.summary for one in found] == [one.summary for one in wanted]
    assert not list(tmp_path.rglob("*.pt"))
