"""What a grid will cost: counted against real runs, against what was recorded, and against another's count."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from asyncfl_lite import Config, run
from asyncfl_lite.algorithms import multi_teacher
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.causal_lm import CausalLM
from asyncfl_lite.models.lstm import LSTM
from asyncfl_lite.models.stacked import outputs_of_all
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.reproduction.grid.cells import expand_grid
from asyncfl_lite.reproduction.grid.cost import Estimate, duration, estimate, measured_seconds, recorded_speeds
from asyncfl_lite.reproduction.grid.sizes import SIZES, forward_of, size_of
from asyncfl_lite.reproduction.grid.workload import TRAINED, workload
from asyncfl_lite.runs.results import read_record
from asyncfl_lite.runs.run import Run
from asyncfl_lite.tasks import TASKS

ROOT = Path(__file__).parent.parent
SMALL = {"clients": 10, "concurrency": 5, "buffer_size": 2, "rounds": 20}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rounds": None, "horizon": 20.0},
        {"rounds": None, "horizon": 2000.0},
        {"algorithm": "fedasync", "buffer_size": 1},
        {"algorithm": "fedavg", "buffer_size": 5},
        {"algorithm": "fedavg", "buffer_size": 3},
        {"algorithm": "kuiper", "settings": {"t0": 0}},  # without asking for accuracies
        {"redispatch": "after_agg", "rounds": None, "horizon": 30.0},
    ],
)
def test_client_updates_are_those_of_the_clock(settings):
    """Beyond the window (the longest is 3,000 updates) it goes on as before."""
    config = Config(**{**SMALL, **settings})
    simulation, trained = Run(config).simulation, 0
    zero = simulation.algorithm.x * 0

    def train(jobs):
        nonlocal trained
        trained += len(jobs)
        return [outcome_of(zero) for _ in jobs]

    simulation.run(train)
    assert workload(config).updates == pytest.approx(trained, rel=0.1, abs=SMALL["concurrency"])


def outcome_of(delta):
    from asyncfl_lite.simulator.jobs import Outcome

    return Outcome(delta, 10, train_loss=1.0, train_accuracy=0.5)


def test_operations_of_training_are_counted_by_hand():
    work = workload(Config(**SMALL, algorithm="fedbuff", local_epochs=2))
    assert work.forward == 2 * (64 * 64 + 64 * 10)
    assert work.clients == pytest.approx(3 * work.forward * work.updates * 2 * 1437 / 10)
    assert work.evaluation == work.forward * (1 + 20 / 10) * 360
    by_steps = workload(Config(**SMALL, algorithm="fedbuff", local_steps=7, batch_size=4))
    assert by_steps.clients == pytest.approx(3 * work.forward * by_steps.updates * 7 * 4)


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("fedecho", {"distill_samples": 60}),
        ("fedecho", {"distill_samples": 60, "distill_unit": "steps", "distill_batch_size": 20, "distill_q": 3}),
        ("fedadt", {"kd_fraction": 0.05, "kd_rounds": 2}),
        ("dd_fedrevive", {"num_teachers": 4, "k_kd": 3, "kd_batch_size": 8}),
    ],
)
def test_the_servers_work_is_that_of_a_real_run(algorithm, settings, monkeypatch):
    """Every sample that goes through the model outside the clients' training is counted."""
    config = Config(clients=20, concurrency=20, rounds=40, algorithm=algorithm, settings=settings, cohort="on")
    work, passes = workload(config), 0
    outputs, gradient = VectorModel.outputs, VectorModel.gradient

    def counted(method, factor):
        def call(self, x, inputs, *more, **options):
            nonlocal passes
            passes += factor * len(inputs)
            return method(self, x, inputs, *more, **options)

        return call

    def of_all(model, xs, buffers, inputs):
        nonlocal passes
        passes += inputs.shape[0] * inputs.shape[1]
        return outputs_of_all(model, xs, buffers, inputs)

    monkeypatch.setattr(multi_teacher, "outputs_of_all", of_all)
    monkeypatch.setattr(VectorModel, "outputs", counted(outputs, 1))
    monkeypatch.setattr(VectorModel, "gradient", counted(gradient, TRAINED))
    run(config)
    assert passes == pytest.approx((work.server + work.evaluation) / work.forward, rel=0.2)


def test_a_chain_of_teachers_is_counted():
    plain = Config(**SMALL, algorithm="kuiper")
    chain = {"initial": "teacher_chain", "initial_settings": {"fraction": 0.1, "epochs": 5}}
    work = workload(Config(**SMALL, algorithm="kuiper", **chain))
    assert workload(plain).initial == 0
    forwards = [2 * (64 + 10) * width for width in (128, 96, 64)]  # twice as wide, halfway down, the clients' own
    assert work.initial == 144 * (3 * 5 * sum(forwards) + sum(forwards[:2]))  # and two teachers' answers


def test_checkpoints_and_recurrent_networks_are_reckoned_without_weights():
    text = InputSpec((320,), 150_000, vocabulary=150_000)
    assert forward_of(CausalLM(checkpoint="Qwen/Qwen2.5-1.5B-Instruct"), text) == pytest.approx(2 * 1.54e9 * 320)
    with pytest.raises(ConfigError, match="checkpoint: the size of 'mine' is not known"):
        forward_of(CausalLM(checkpoint="mine"), text)
    by_hand = 2 * 40 * (4 * 64 * (8 + 64) + 4 * 64 * (64 + 64) + 64 * 50)  # gates of two layers, and the head
    assert forward_of(LSTM(), InputSpec((40,), 50, vocabulary=50)) == pytest.approx(by_hand, rel=0.01)


@pytest.mark.parametrize("name", ["mnist5k", "writers"])
def test_sizes_that_are_written_down_are_those_of_the_data(name):
    source, written = TASKS.get(name)(), size_of(TASKS.get(name)())
    task = source.load()
    assert (written.samples, written.test_samples) == (len(task.labels), len(task.test_labels))
    assert (written.inputs.shape, written.inputs.num_classes) == (task.input_shape, task.num_classes)
    assert written.owners == (0 if task.owners is None else task.owners.max() + 1)


def test_every_task_that_is_in_the_table_exists():
    assert set(SIZES) <= set(TASKS)


def test_time_is_measured_within_an_order_of_magnitude():
    config = Config(algorithm="fedbuff", rounds=100)
    began = time.process_time()
    run(config)
    assert 1 / 6 < measured_seconds(workload(config), "cpu") / (time.process_time() - began) < 6


def test_a_device_that_is_not_here_has_no_speed():
    assert math.isnan(measured_seconds(workload(Config(**SMALL)), "meta:7"))


def write_grid(folder, **settings):
    tier = {"seeds": [0, 1], "settings": {"task": "digits", **SMALL, **settings}}
    (folder / "toy.yaml").write_text(json.dumps({"paper": "toy", "tiers": {"smoke": tier}, "cells": {"toy/a": {}}}))
    (folder / "smoke.yaml").write_text("tier: smoke\npapers: [toy.yaml]\n")
    return expand_grid(folder / "smoke.yaml")


def test_recorded_seconds_are_preferred_and_scaled_by_operations(tmp_path):
    (cell,) = write_grid(tmp_path)
    result = run(cell.config)
    result.timing["cpu_seconds"] = 1000.0
    result.save(tmp_path / "runs/other/x/seed-0")
    plan = estimate(write_grid(tmp_path, rounds=200), tmp_path / "runs")
    ratio = workload(Config(**{**SMALL, "rounds": 200})).flop / workload(cell.config).flop
    assert 8 < ratio < 11
    assert plan.rows["recorded"].all()
    assert plan.rows["seconds"].sum() == pytest.approx(2 * 1000 * ratio, rel=0.01)
    assert plan.hours == pytest.approx(plan.rows["seconds"].sum() / 3600) and plan.asks
    assert estimate(write_grid(tmp_path, rounds=200), tmp_path / "runs", workers=4).hours == plan.hours / 4
    assert recorded_speeds(tmp_path / "runs", {("digits", "mlp", "fedecho", "cpu")}) == {}


def test_what_cannot_be_estimated_is_said_and_asked_for(tmp_path):
    plan = estimate(write_grid(tmp_path, clients=5000, concurrency=5), tmp_path)  # more clients than samples
    assert list(plan.unknown) == ["toy/a"] and "num_clients" in plan.unknown["toy/a"]
    assert plan.asks and "not estimated: 1 cells, such as toy/a" in str(plan)


def test_what_is_told_names_states_updates_operations_and_time():
    rows = [("p/a", "p", 3, 300.0, 2e15, 3600.0, True), ("q/a", "q", 1, 1200.0, 1e15, 5400.0, False)]
    columns = ["cell", "paper", "runs", "updates", "flop", "seconds", "recorded"]
    states = {"p/a": "stale", "q/a": "missing", "q/b": "complete"}
    plan = Estimate(states, pd.DataFrame(rows, columns=columns), workers=2)
    assert str(plan).splitlines() == [
        "3 cells: 1 complete, 2 to run (1 stale)",
        "  p             3 runs, 300 client updates, 2.0e+15 FLOP, 30 minutes",
        "  q             1 runs, 1,200 client updates, 1.0e+15 FLOP, 45 minutes",
        "estimated cost: 4 runs, 1,500 client updates, 3.0e+15 FLOP, 75 minutes, with 2 workers "
        "(speed of 1 cells as recorded, else measured now)",
    ]
    assert plan.hours == 1.25 and not plan.asks
    done = Estimate({"q/b": "complete"}, pd.DataFrame(columns=columns))
    assert str(done) == "1 cells: 1 complete, 0 to run" and done.hours == 0 and not done.asks


def test_durations_are_in_fitting_units():
    assert [duration(s) for s in (30, 600, 3 * 3600, 5e4, 1e9)] == [
        "30 seconds", "10.0 minutes", "3.0 hours", "13.9 hours", "32 years",
    ]  # fmt: skip


def test_measured_time_is_of_the_size_of_what_is_recorded_here():
    """Of finished smoke cells; the median is within a factor of 3."""
    folders = sorted({path.parent.parent for path in (ROOT / "runs/smoke").rglob("seed-*/result.json")})
    if len(folders) < 5:
        pytest.skip("fewer than 5 smoke cells are recorded in runs/")
    ratios = []
    for folder in folders:
        record = read_record(next(iter(folder.glob("seed-*/result.json"))))
        try:
            work = workload(Config(**record["config"]))
        except ConfigError:  # of settings that no longer exist
            continue
        ratios.append(measured_seconds(work, "cpu") / record["timing"]["cpu_seconds"])
    assert 1 / 3 < np.median(ratios) < 3


def test_the_paper_tiers_operations_agree_with_another_count():
    """FLOP of all cells and seeds, training and server, that were counted by hand from the papers' settings."""
    by_hand = {"fedecho": 1.1e19, "fedrevive": 1.9e19, "kuiper": 3.0e19, "fedadt": 2.2e17}
    ours = dict.fromkeys(by_hand, 0.0)
    for cell in expand_grid(ROOT / "experiments/paper.yaml"):
        work = workload(cell.config)
        ours[cell.name.split("/")[0]] += len(cell.seeds) * (work.clients + work.server)
    for paper, flop in by_hand.items():
        assert 1 / 3 < ours[paper] / flop < 3, paper
