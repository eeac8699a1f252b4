"""A run from configuration to result, repeated, saved, read back, and what goes wrong."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from asyncfl_lite import Config, load_result, run
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, ResultError, SimulationError
from asyncfl_lite.base.streams import stream
from asyncfl_lite.runs.results import class_summary, class_table, is_constant_answer, load_complete
from asyncfl_lite.runs.run import Run
from asyncfl_lite.runs.store import TABLES
from asyncfl_lite.tasks import Task

SMALL = {"clients": 8, "concurrency": 4, "buffer_size": 2, "local_steps": 4, "rounds": 8, "eval_every": 2}


@pytest.fixture(scope="module")
def result():
    return run(Config(algorithm="fedecho", **SMALL))


def test_the_call_that_a_newcomer_makes(result):
    assert {"final_accuracy", "virtual_time", "client_updates", "max_staleness"} <= set(result.summary)
    assert list(result.curve) == ["version", "time", "updates", "accuracy", "loss"]
    assert list(result.updates)[:8] == [
        "client", "dispatched_at", "arrived_at", "start_version", "staleness", "num_samples", "train_loss", "train_accuracy",
    ]  # fmt: skip
    assert result.curve["version"].tolist() == [0, 2, 4, 6, 8]
    assert result.summary["client_updates"] == len(result.updates) == 16
    assert result.summary["final_accuracy"] == result.curve["accuracy"].iloc[-1]
    assert result.curve["time"].is_monotonic_increasing
    assert len(result.plot().axes) == 2
    assert "fedecho on digits" in repr(result)


def test_tables_agree_with_each_other(result):
    assert len(result.in_flight) <= 4 and len(result.clients) == 8
    assert result.clients["num_samples"].sum() == 1437
    assert set(result.clients["category"]) <= {"short", "medium", "long"}
    sizes = result.clients["num_samples"]
    assert (result.updates["num_samples"] == result.updates["client"].map(sizes)).all()
    updates = result.updates
    assert (updates["staleness"] <= updates["version"]).all()
    before = updates["version"].shift(fill_value=0)
    assert (updates["staleness"] == before - updates["start_version"]).all()
    assert updates["num_samples"].ge(10).all() and updates["train_accuracy"].between(0, 1).all()


def test_every_class_has_its_accuracy(result):
    classes, updates = result.classes, result.updates
    assert classes["class"].tolist() == list(range(10)) and classes["test_samples"].sum() == 360
    assert classes["train_samples"].sum() == 1437
    assert classes["seen"].sum() == updates["num_samples"].sum()
    mean = np.average(classes["accuracy"], weights=classes["test_samples"])
    assert mean == pytest.approx(result.summary["final_accuracy"], abs=1e-6)
    assert result.summary["worst_class_accuracy"] == classes["accuracy"].min()
    least = classes.nsmallest(2, "seen", keep="first")
    assert result.summary["least_seen_accuracy"] == pytest.approx(least["accuracy"].mean())


def test_the_class_table_by_hand():
    """Client 0 holds classes 0, 0, 1 and reports twice, client 1 holds class 2 and is refused once."""
    updates = pd.DataFrame({"client": [0, 1, 0, 1], "accepted": [True, True, True, False]})
    parts = [np.array([0, 1, 2]), np.array([3])]
    tested, right, predicted = np.array([4, 2, 5, 0]), np.array([3.0, 2.0, 1.0, 0.0]), np.array([4, 6, 1, 0])
    table = class_table(np.array([0, 0, 1, 2]), parts, updates, tested, right, predicted)
    assert table["train_samples"].tolist() == [2, 1, 1, 0] and table["seen"].tolist() == [4, 2, 1, 0]
    assert table["accuracy"].tolist()[:3] == [0.75, 1.0, 0.2] and np.isnan(table["accuracy"].iloc[3])
    assert table["predicted"].tolist() == [4, 6, 1, 0]
    assert class_summary(table) == {
        "worst_class_accuracy": 0.2,
        "least_seen_accuracy": 0.2,
        "largest_prediction_share": 6 / 11,
    }


def test_a_run_that_answers_one_class_is_marked_and_one_that_misses_a_class_is_not():
    """Inputs that are all the same get one answer; of inputs that name their class, one class is never trained on."""
    labels = np.arange(60) % 3
    same, telling = np.zeros((60, 3)), np.eye(3)[labels]
    small = Config(clients=3, concurrency=2, buffer_size=1, rounds=30, partition="iid", batch_size=5)
    blind = run(small, task=Task.from_tensors(same, labels, same, labels))
    assert blind.summary["largest_prediction_share"] == 1 and blind.summary["worst_class_accuracy"] == 0
    assert blind.is_constant_answer and "accuracy 0.3333 (constant answer)" in repr(blind)
    seen = labels != 2
    partial = run(small, task=Task.from_tensors(telling[seen], labels[seen], telling, labels))
    assert partial.summary["worst_class_accuracy"] == 0 and partial.summary["largest_prediction_share"] < 1
    assert not partial.is_constant_answer and "constant" not in repr(partial)
    assert partial.classes["predicted"].sum() == 60
    assert not is_constant_answer({"worst_class_accuracy": 0.0})  # recorded before predictions were counted


def test_batch_norm_trains_and_keeps_its_variances_positive():
    started = Run(Config(model="cnn", model_settings={"norm": "batch"}, **SMALL))
    started.finish()
    mask = started.model.variance_mask
    assert (started.algorithm.buffers[mask] > 0).all()
    with pytest.raises(ConfigError, match="^vectorize: a model with running statistics"):
        run(Config(model="cnn", model_settings={"norm": "batch"}, vectorize="on", **SMALL))


def test_no_two_parts_of_a_run_share_a_stream(monkeypatch):
    """Each has the stream that is documented under its name, of the run's seed."""
    asked = []

    def spied(seed, *names):
        asked.append((seed, names))
        return stream(seed, *names)

    for name, module in list(sys.modules.items()):
        if name.startswith("asyncfl_lite.") and getattr(module, "stream", None) is stream:
            monkeypatch.setattr(module, "stream", spied)
    chances = dict.fromkeys(("dropout", "crash", "partial", "duplicate", "damage"), 0.1)
    faults = {**chances, **dict.fromkeys(("late", "time_out", "available", "away"), 9.0)}
    chain = {"initial": "teacher_chain", "initial_settings": {"epochs": 1}}
    run(Config(algorithm="fedecho", seed=11, faults=faults, **chain, **{**SMALL, "rounds": 3}))
    names = Counter(" ".join(names) for _, names in asked if names[0] != "batches")
    struck = {
        f"trouble: {'drop-out' if kind == 'dropout' else kind}" for kind in (*chances, "presence", "duplicate delay")
    }
    own = {"partition", "model", "initial", "delays setup", "delays", "client choice"}
    own |= {"server", "labelled set", "unlabelled"}
    assert names == {**dict.fromkeys(own | struck, 1), "labelled set": 2}  # where it is dealt out, and where it is read
    assert all(f"``{name}``" in " ".join(stream.__doc__.split()) for name in own)
    jobs = [names[1:] for _, names in asked if names[0] == "batches"]
    assert {seed for seed, _ in asked} == {11} and len(set(jobs)) == len(jobs) > 4


def test_save_and_load(result, tmp_path):
    folder = result.save(tmp_path / "a/b")
    loaded = load_result(folder)
    assert loaded.config == result.config and loaded.summary == result.summary
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(loaded, table), getattr(result, table))
    record = json.loads((folder / "result.json").read_text())
    assert record["config_hash"] == result.config.hash and record["status"] == "complete"
    assert {"asyncfl_lite", "torch", "python"} <= set(record["versions"])
    assert load_complete(folder, result.config).summary == result.summary
    assert load_complete(folder, result.config.with_seed(9)) is None
    assert {path.name for path in folder.iterdir()} == {
        "result.json", "weights.safetensors", *(f"{table}.csv" for table in TABLES),
    }  # fmt: skip


def test_a_full_disk_leaves_what_was_there(result, tmp_path, monkeypatch):
    result.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResultError, match="curve.csv: cannot be written .No space left on device"):
        run(Config(**SMALL)).save(tmp_path, force=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_rate_that_blows_up_is_an_error_that_says_what_to_do():
    with pytest.raises(SimulationError, match="lower client_lr or server_lr"):
        run(Config(client_lr=1e30, **{**SMALL, "rounds": 400}))


def test_empty_clients_are_left_out_and_reported():
    config = Config(clients=200, concurrency=4, buffer_size=2, rounds=4, alpha=0.01, partition_settings={"min_size": 0})
    result = run(config)
    assert result.summary["empty_clients"] > 0
    assert result.updates["num_samples"].min() >= 1
    crowded = Config(clients=200, concurrency=200, rounds=4, alpha=0.01, partition_settings={"min_size": 0})
    with pytest.raises(AsyncFLError, match="^concurrency: 200 clients at a time were asked for, and only"):
        run(crowded)


def test_jobs_that_no_version_needs_are_not_trained():
    settings = {"clients": 8, "concurrency": 6, "buffer_size": 2, "delay": "constant", "rounds": 2, "local_steps": 1}
    begun = Run(Config(task="digits", **settings))
    begun.finish()
    assert begun.simulation.jobs and all(job.outcome is None for job in begun.simulation.jobs)
