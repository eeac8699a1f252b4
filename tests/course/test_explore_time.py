"""The staleness laboratory and the time machine: what they draw is what the clock did."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.colors import to_hex

from asyncfl_course.explore import (
    READY_LAWS,
    explore_run,
    jobs_that_age,
    moment,
    moment_figure,
    predicted_staleness,
    run_clock,
    staleness_figure,
)
from asyncfl_course.explore.controls import pictured
from asyncfl_lite import Config, Task, run, schedule
from asyncfl_lite.plots import UNFINISHED
from asyncfl_lite.simulator.scheduling import SCHEDULING


def test_the_clock_is_that_of_a_run():
    """On a partition of equal sizes the clock without data is `schedule`'s."""
    sizes = {"clients": 10, "concurrency": 6, "seed": 3}
    config = Config(task="digits", partition="dirichlet_wrap", alpha=1.0, buffer_size=2, rounds=40, **sizes)
    ours = run_clock(config.delay, buffer_size=2, versions=40, **sizes).updates
    theirs = schedule(config).updates
    timing = ["client", "dispatched_at", "arrived_at", "start_version", "staleness", "version"]
    pd.testing.assert_frame_equal(ours[timing], theirs[timing])


CASES = [
    (policy, in_flight, buffer)
    for policy in SCHEDULING
    for in_flight in (1, 2, 5, 12, 13)
    for buffer in (1, 2, 3, 5)
    if buffer <= in_flight or policy not in ("burst", "rounds")  # Config refuses buffers that never fill
]


@pytest.mark.parametrize(("policy", "in_flight", "buffer"), CASES)
def test_the_prediction_is_the_number_of_jobs_that_age(policy, in_flight, buffer):
    """Counted in the clock's own tables; a run's first versions may differ, and are left out."""
    planned = run_clock(
        "exponential", clients=20, concurrency=in_flight, buffer_size=buffer, scheduling=policy, versions=360
    )
    ages, updates = jobs_that_age(planned), planned.updates
    if policy == "rounds":  # some of its versions are smaller than M: count whole rounds
        whole = 360 // math.ceil(in_flight / buffer) * math.ceil(in_flight / buffer)
        measured = ages[:whole].sum() / (whole / math.ceil(in_flight / buffer) * in_flight)
    else:
        measured = ages[-240:].mean() / buffer
    assert measured == pytest.approx(predicted_staleness(policy, in_flight, buffer), rel=1e-9)
    aged = updates["staleness"].sum() + (360 - planned.in_flight["start_version"]).sum()
    assert ages.sum() == aged


def test_long_runs_meet_the_prediction_and_short_ones_stay_below():
    short, long = (run_clock("fedecho_large", versions=count).updates["staleness"].mean() for count in (100, 8000))
    assert short < 4.2 and long == pytest.approx(5.0, abs=0.06)


@pytest.mark.parametrize("law", READY_LAWS)
def test_the_histogram_holds_every_update(law):
    planned = run_clock(law, clients=20, concurrency=10, buffer_size=2, versions=100)
    figure = staleness_figure(law, clients=20, concurrency=10, buffer_size=2, versions=100)
    left, right = figure.axes
    assert sum(bar.get_height() for bar in left.patches) == len(planned.updates) == 200
    mean = planned.updates["staleness"].mean()
    assert right.get_title("left") == f"mean {mean:.2f}, predicted 5.00;\n10 jobs in flight at the end"
    with_waiting, arrived, predicted = (line.get_ydata() for line in right.lines)
    assert np.allclose(with_waiting, 5.0) and arrived[-1] == pytest.approx(mean) and list(predicted) == [5.0, 5.0]


def short_run(**settings):
    x = torch.arange(60.0).remainder(7)[:, None]
    task = Task.from_tensors(x, (x[:, 0] > 3).long(), x, (x[:, 0] > 3).long())
    common = {"clients": 3, "concurrency": 3, "partition": "iid", "client_lr": 0.05, "eval_every": 1}
    delays = {"delay": "per_client", "delay_settings": {"durations": (1, 2, 5)}, "selection": "same_client"}
    return run(Config(**{**common, **delays, "buffer_size": 2, "rounds": 5, **settings}), task=task)


@pytest.fixture(scope="module")
def by_hand():
    """By hand, before_agg: v1 and the third arrival at 2, v2 at 3, v3 at 4, v4 at 5, v5 at 6."""
    return short_run()


def test_a_moment_of_the_worked_timeline(by_hand):
    now = moment(by_hand, 4.5)
    assert (now.version, now.buffered) == (3, 0)
    columns = ["client", "start_version", "behind", "dispatched_at", "arrives_at", "staleness"]
    assert now.training[columns].to_numpy().tolist() == [[0, 2, 1, 4, 5, 1], [1, 2, 1, 4, 6, 2], [2, 0, 3, 0, 5, 3]]
    timing = ["client", "arrived_at", "staleness"]
    assert now.arrivals == 6 and now.reported[timing].to_numpy().tolist() == [[1, 4, 2], [0, 4, 1]]
    assert now.upcoming[timing].to_numpy().tolist() == [[2, 5, 3], [0, 5, 1]]
    assert now.accuracy == by_hand.curve.set_index("version")["accuracy"][3]


def test_ties_and_the_buffer(by_hand):
    assert [moment(by_hand, time)[:2] for time in (0, 1, 2, 3, 5, 6)] == [
        (0, 0),
        (0, 1),
        (1, 1),
        (2, 0),
        (4, 0),
        (5, 0),
    ]
    first = moment(by_hand, 0)
    assert first.arrivals == 0 and first.reported.empty and first.training["start_version"].tolist() == [0, 0, 0]
    last = moment(by_hand, by_hand.summary["virtual_time"])
    assert last.upcoming.empty and last.arrivals == len(by_hand.updates)
    assert last.accuracy == by_hand.summary["final_accuracy"]


def drawn_bars(figure) -> dict[tuple[float, float], tuple]:
    """Return the timeline's jobs: (client, dispatched at) -> (end, colour, hatch)."""
    bars = figure.axes[0].patches
    starts = [(round(bar.get_y() + bar.get_height() / 2), bar.get_x()) for bar in bars]
    looks = [(bar.get_x() + bar.get_width(), bar.get_facecolor(), bar.get_hatch() or "") for bar in bars]
    return dict(zip(starts, looks, strict=True))


def test_the_report_to_watch_is_marked(by_hand):
    """At 5, client 2's first report, three versions late, shares its instant with client 0's."""

    def marks(time):
        axes = moment_figure(by_hand, time).axes[0]
        dots = [line for line in axes.lines if line.get_marker() in ("*", "o")]
        said = [text.get_text() for text in axes.texts if text.get_text().startswith("τ")]
        return [(int(dot.get_ydata()[0]), dot.get_xdata()[0], dot.get_marker()) for dot in dots], said

    assert marks(5.0) == ([(2, 5.0, "*"), (0, 5.0, "o")], ["τ = 3", "τ = 1"])
    assert marks(3.0) == ([(0, 3.0, "*")], ["τ = 0"]) and marks(4.5) == marks(0.0) == ([], [])


def test_a_job_that_was_called_off_stays_where_it_ended():
    """Oort's rounds invite more than they need; the last ones' work is thrown away."""
    x = torch.arange(60.0).remainder(7)[:, None]
    task = Task.from_tensors(x, (x[:, 0] > 3).long(), x, (x[:, 0] > 3).long())
    delays = {"delay": "per_client", "delay_settings": {"durations": (1, 2, 3, 9)}, "selection": "oort"}
    sizes = {"clients": 4, "concurrency": 3, "partition": "iid", "algorithm": "fedavg", "rounds": 2}
    result = run(Config(**sizes, **delays), task=task)
    called_off = result.in_flight.dropna(subset="called_off_at")
    assert len(called_off) > 0
    bars = drawn_bars(moment_figure(result, result.summary["virtual_time"]))
    for job in called_off.itertuples():
        end, colour, _ = bars[job.client, job.dispatched_at]
        assert (end, to_hex(colour)) == (job.called_off_at, UNFINISHED["facecolor"])


def test_the_time_machine_counts_arrivals(by_hand):
    box = explore_run(by_hand)
    play, slider, _, picture = box.children
    assert slider.description == "arrivals" and slider.options == (0, 1, 3, 4, 6, 8, 10)
    assert slider.options[-1] == len(by_hand.updates)
    assert play.max == len(slider.options) - 1 == by_hand.updates["arrived_at"].nunique()
    assert slider.index == play.value == play.max // 2  # something is to be seen at once
    slider.value = 0
    assert picture.value == pictured(moment_figure(by_hand, 0.0)).tag()
    slider.value = 6
    assert picture.value == pictured(moment_figure(by_hand, 4.0)).tag()


def test_a_run_with_client_failures_is_shown_and_one_recorded_before_there_were_any():
    faults = {"dropout": 0.1, "crash": 0.2, "late": 2.5, "partial": 0.3, "duplicate": 0.3, "time_out": 4.0}
    sizes = {"clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 6, "local_steps": 3, "batch_size": 8}
    result = run(Config(**sizes, delay="fedecho_mild", seed=1, faults=faults))
    end = result.summary["virtual_time"]
    for time in (0.0, end / 2, end):
        assert moment_figure(result, time).get_axes()
    before = {"updates": result.updates.drop(columns=["refused", "faults"])}
    before["in_flight"] = result.in_flight.drop(columns="why")
    assert moment_figure(replace(result, **before), end / 2).get_axes()
