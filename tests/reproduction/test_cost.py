"""What a grid will cost: client updates against real runs, time against what was recorded and what is timed."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import replace

import pandas as pd
import pytest

from asyncfl_lite import Config, run
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.jobs import Outcome
from asyncfl_reproduction import home
from asyncfl_reproduction.grid import cost
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.cost import client_updates, estimate, timed_speed
from asyncfl_reproduction.grid.record import RUNS, write_tidy
from asyncfl_reproduction.parquet import read_table
from conftest import ROOT, toy_grid

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
        {"scheduling": "after_agg", "rounds": None, "horizon": 30.0},
    ],
)
def test_client_updates_are_those_of_the_clock(settings):
    """Beyond the window (the longest is 3,000 updates) it goes on as before."""
    config = Config(**{**SMALL, **settings})
    simulation = Run(config).simulation
    outcome = Outcome(simulation.algorithm.x * 0, num_samples=10, train_loss=1.0, train_accuracy=0.5)
    simulation.run(lambda jobs: [outcome] * len(jobs))
    assert client_updates(config) == pytest.approx(simulation.received, rel=0.1)


@pytest.fixture
def shortened(monkeypatch):
    """Runs that take 3 seconds and half a second per update, ten updates per version; returns the lengths asked for."""
    clock, asked = [0.0], []

    def take(config, versions):
        asked.append(versions)
        updates = 10 * min(versions, config.rounds or 3)  # a horizon ends the others
        clock[0] += 3.0 + 0.5 * updates
        return updates

    monkeypatch.setattr(cost, "_shortened", take)
    monkeypatch.setattr(cost.time, "process_time", lambda: clock[0])
    return asked


def test_time_goes_along_the_line_through_two_shortened_runs(shortened, monkeypatch):
    assert timed_speed(Config(**SMALL)) == (3.0, 0.5, False) and shortened == [1, 1, 2]  # the first warms up
    shortened.clear()
    monkeypatch.setattr(cost, "LONG_ENOUGH", 30.0)
    assert timed_speed(Config(**SMALL)) == (3.0, 0.5, False) and shortened == [1, 1, 2, 4, 8]
    shortened.clear()
    monkeypatch.setattr(cost, "LONG_ENOUGH", math.inf)
    assert timed_speed(Config(**{**SMALL, "rounds": None, "horizon": 9.0})) == (3.0, 0.5, False)
    assert shortened == [1, 1, 2, 4, 8]  # the last two end alike
    assert timed_speed(Config(**{**SMALL, "rounds": 1})).an_update == pytest.approx(0.8)  # all that there is


def test_what_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(cost, "LIMIT", 0.2)
    monkeypatch.setattr(cost, "PATIENCE", 4)
    monkeypatch.setattr(cost, "_shortened", lambda config, versions: time.sleep(60))
    began = time.monotonic()
    with pytest.raises(ConfigError, match="two server versions take longer than 0.2 seconds here"):
        timed_speed(Config(**SMALL))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("reads", "runs", "waits", "refused"),
    [
        (0, 0.01, 0.3, None),  # for other programs, on a busy machine
        (0.3, 0.01, 0, None),
        (0, 0.01, 1, "its data take longer than 0.8 seconds to read here"),
        (0, 0.3, 0, "two server versions take longer than 0.2 seconds here"),
    ],
)
def test_the_limit_is_of_the_estimates_own_processor_time(monkeypatch, reads, runs, waits, refused):
    def work(seconds):
        end = time.process_time() + seconds
        time.sleep(waits)
        while time.process_time() < end:
            pass

    updates = iter((2, 2, 4))
    monkeypatch.setattr(cost, "LIMIT", 0.2)
    monkeypatch.setattr(cost, "PATIENCE", 4 if waits == 1 else 20)
    monkeypatch.setattr(cost, "LONG_ENOUGH", 0.0)
    monkeypatch.setattr(cost, "load_task", lambda source: work(reads))
    monkeypatch.setattr(cost, "_shortened", lambda config, versions: work(runs) or next(updates))
    with pytest.raises(ConfigError, match=refused) if refused else nullcontext():
        timed_speed(Config(**SMALL))


def write_grid(folder, cells=("toy/a",), **settings):
    return expand_grid(toy_grid(folder, *cells, seeds=(0, 1), **{"task": "digits", **SMALL, **settings}))


def record(cell, seconds, folder):
    for config in cell.configs:
        result = run(config)
        result.timing["cpu_seconds"] = seconds
        result.save(cell.folder(folder) / f"seed-{config.seed}")


def test_data_that_take_too_long_are_tried_once_for_all_methods(tmp_path, monkeypatch):
    tried = []

    def slow(source):
        tried.append(source)
        raise TimeoutError

    monkeypatch.setattr(cost, "load_task", slow)
    (one,), (other,) = (write_grid(tmp_path, algorithm=name) for name in ("fedbuff", "fedavg"))
    found = estimate([one, replace(other, name="toy/b")], tmp_path / "runs")
    assert len(found.unknown) == 2 and len(tried) == 1


def test_tables_that_are_kept_count_where_nothing_else_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "timed_speed", lambda config: pytest.fail("timed all the same"))
    (cell,) = write_grid(tmp_path)
    record(cell, 1000.0, tmp_path / "runs")
    write_tidy([cell], tmp_path / "runs", tmp_path / "results/smoke")
    longer = write_grid(tmp_path, rounds=200)
    kept = estimate(longer, tmp_path / "none", kept=tmp_path / "results")
    assert kept.rows["seconds"].sum() == pytest.approx(2 * 1000 * 400 / 40, rel=0.01) and kept.rows["recorded"].all()
    record(cell, 10.0, tmp_path / "runs")
    own = estimate(longer, tmp_path / "runs", kept=tmp_path / "results")
    assert own.rows["seconds"].sum() == pytest.approx(2 * 10 * 400 / 40, rel=0.05)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"clients": 5000}, "at most the 1437 samples"), ({"device": "cuda:7"}, "this machine has no 'cuda:7'"),
     ({"task": "cifar10", "task_settings": {"folder": "nowhere"}}, "nowhere")],
)  # fmt: skip
def test_what_cannot_be_estimated_is_listed_and_asked_for(tmp_path, settings, reason):
    plan = estimate(write_grid(tmp_path, ("toy/a", "toy/b"), **settings), tmp_path)
    assert list(plan.unknown) == ["toy/a", "toy/b"] and all(reason in text for text in plan.unknown.values())
    assert plan.asks and str(plan).splitlines()[1].startswith("not estimated: 2 cells, such as toy/a: ")


def test_the_smoke_tier_is_estimated_from_what_is_kept():
    cells = expand_grid(ROOT / "asyncfl_reproduction/cells/smoke.yaml")
    plan = estimate(cells, "nowhere", kept=ROOT / "asyncfl_reproduction/results")
    assert plan.rows["recorded"].all() and not plan.unknown and len(plan.rows) == len(cells)
    table = pd.concat(map(read_table, (home.RESULTS / "smoke").glob(f"*/{RUNS}")))
    assert plan.hours * 3600 == pytest.approx(table["cpu_seconds"].sum() + cost.STARTING * len(cells), rel=0.5)


def test_client_updates_of_the_paper_tier_are_counted_without_its_data():
    """One cell of each paper and method."""
    cells = expand_grid(ROOT / "asyncfl_reproduction/cells/paper.yaml")
    chosen = {(cell.name.split("/")[0], cell.config.algorithm): cell for cell in reversed(cells)}
    counts = {cell.name: client_updates(cell.config) for cell in chosen.values()}
    assert counts["fedecho/table2/large-dir0.1/fedbuff"] == 500 * 5
    assert len(counts) > 15 and all(1 <= count < 1e7 for count in counts.values())
