"""The head-to-head browser: what it draws are the recorded numbers, seed by seed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from asyncfl_lite.base.errors import ConfigError, ResultError
from asyncfl_lite.explore.controls import as_image
from asyncfl_lite.plots import colour
from asyncfl_lite.reproduction.claims import Measured
from asyncfl_lite.reproduction.report.explorer import (
    MEASURES,
    explore_head_to_head,
    head_to_head_figure,
    seeds_of,
    target,
)
from asyncfl_lite.runs.config import Config

FINALS = {
    "digits/large/fedbuff": (0.70, 0.72, 0.74),
    "digits/large/fedadt": (0.85, 0.89, 0.90),
    "digits/large/kuiper": (0.55, 0.50, 0.60),
    "pairdigits/uniform/fedbuff": (0.30, 0.34, 0.35),
    "pairdigits/uniform/fedecho": (0.30, 0.31, 0.32),
}
TIMES = {"fedbuff": (30.0, 40.0, 50.0), "fedadt": (5.0, 6.0, 10.0), "kuiper": (np.inf, np.inf, 70.0)}


@pytest.fixture(scope="module")
def recorded():
    """Recorded results of two places: curves reach any target at the given times, or never."""
    summaries, curves, cells = {}, {}, {}
    for place, finals in FINALS.items():
        cell, method = f"head_to_head/{place}", place.split("/")[-1]
        final = np.array(finals)
        numbers = {"final_accuracy": final, "last5_accuracy": final - 0.02, "best_accuracy": final + 0.03}
        summaries[cell] = pd.DataFrame(numbers)
        times = TIMES.get(method, (20.0, 20.0, 20.0))
        curves[cell] = [
            pd.DataFrame({"time": [0.0, min(time, 99.0), 100.0], "accuracy": [0.1, 1.0 if time < 99 else 0.1, 0.2]})
            for time in times
        ]
        cells[cell] = SimpleNamespace(config=Config(delay="fedecho_large"))
    measured = Measured(summaries, curves)
    accuracies = lambda cell: np.array([]) if cell not in summaries else measured.values(cell)  # noqa: E731
    return SimpleNamespace(measured=measured, cells=cells, accuracies=accuracies)


def drawn(figure):
    """Rows of the left panel: label -> sorted places of its dots."""
    left = figure.axes[0]
    labels = [tick.get_text().split("\n")[0] for tick in left.get_yticklabels()]
    dots = [line for line in left.lines if line.get_marker() == "o"]
    return {label: sorted(line.get_xdata()) for label, line in zip(labels, dots, strict=True)}


@pytest.mark.parametrize(
    ("measure", "added"), [("final accuracy", 0.0), ("mean of last five", -2.0), ("best", 3.0)]
)  # fmt: skip
def test_every_seed_is_drawn_best_method_first(recorded, measure, added):
    rows = drawn(head_to_head_figure(recorded, "digits", "large", measure))
    assert list(rows) == ["FedADT", "FedBuff", "KUIPER"]
    assert rows["FedADT"] == pytest.approx([85 + added, 89 + added, 90 + added])
    assert rows["KUIPER"] == pytest.approx([50 + added, 55 + added, 60 + added])


def test_mean_spread_and_the_reference(recorded):
    left = head_to_head_figure(recorded).axes[0]
    texts = [tick.get_text() for tick in left.get_yticklabels()]
    assert texts == ["FedADT\n88.0 ± 2.6", "FedBuff\n72.0 ± 2.0", "KUIPER\n55.0 ± 5.0"]
    (bar,) = left.containers[1].lines[2]  # FedBuff's
    assert bar.get_segments()[0][:, 0] == pytest.approx([70, 74])
    dashed = [line for line in left.lines if line.get_linestyle() == "--"]
    assert [line.get_xdata() for line in dashed] == [pytest.approx([72, 72])]
    assert left.containers[0].lines[0].get_color() == colour("fedadt")


def test_time_to_target_orders_by_time_and_marks_what_never_came(recorded):
    assert target(recorded, "digits", "large") == pytest.approx(0.612)
    found = seeds_of(recorded, "digits", "large", "time to target")
    assert {m: times.tolist() for m, times in found.items()} == {
        "fedadt": [5, 6, 10], "fedbuff": [30, 40, 50], "kuiper": [np.inf, np.inf, 70],
    }  # fmt: skip
    figure = head_to_head_figure(recorded, measure="time to target")
    assert drawn(figure) == {"FedADT": [5, 6, 10], "FedBuff": [30, 40, 50], "KUIPER": [70]}
    left, right = figure.axes
    crosses = {line.get_ydata()[0].round(): len(line.get_xdata()) for line in left.lines
               if line.get_marker() == "x" and len(line.get_xdata())}  # fmt: skip
    assert crosses == {2: 2}
    assert left.get_yticklabels()[2].get_text() == "KUIPER\nnot reached with 2 of 3 seeds"
    assert left.get_xlabel() == "virtual time (units of 10 s) to 61.2% accuracy"
    assert [line.get_ydata()[0] for line in right.lines if line.get_linestyle() == ":"] == [pytest.approx(0.612)]


def test_the_curves_beside_are_means_over_seeds(recorded):
    lines = {line.get_label(): line for line in head_to_head_figure(recorded).axes[1].lines}
    assert set(lines) == {"FedADT", "FedBuff", "KUIPER"}
    middle = np.searchsorted(lines["FedBuff"].get_xdata(), 35)
    assert lines["FedBuff"].get_ydata()[middle] == pytest.approx((1 + 0.1 + 0.1) / 3)


def test_a_choice_of_methods(recorded):
    assert list(drawn(head_to_head_figure(recorded, methods=["kuiper", "fedadt"]))) == ["FedADT", "KUIPER"]
    assert not [line for line in head_to_head_figure(recorded, methods=["kuiper"]).axes[0].lines
                if line.get_linestyle() == "--"]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"regime": "mild"}, "workload, regime: must be among digits, large; pairdigits, uniform, got digits, mild"),
        ({"measure": "loss"}, "measure: 'loss' is not known"),
        ({"methods": ["fedecho"]}, "methods: 'fedecho' is not known"),
        ({"methods": []}, "methods: must name at least one"),
    ],
)
def test_what_is_not_there_is_one_line(recorded, asked, message):
    with pytest.raises(ConfigError, match=message):
        head_to_head_figure(recorded, **asked)


def test_without_fedbuff_there_is_no_target(recorded):
    summaries = {cell: table for cell, table in recorded.measured.summaries.items() if "fedbuff" not in cell}
    alone = SimpleNamespace(measured=Measured(summaries, recorded.measured.curves), cells=recorded.cells,
                            accuracies=lambda cell: np.array([]))  # fmt: skip
    with pytest.raises(ResultError, match="FedBuff was not run"):
        seeds_of(alone, "digits", "large", "time to target")
    assert list(seeds_of(alone, "digits", "large")) == ["fedadt", "kuiper"]


def test_the_explorer_draws_what_the_controls_say(recorded):
    box = explore_head_to_head(recorded)
    workload, regime, measure, methods, message, picture = box.children
    assert workload.options == ("digits", "pairdigits") and regime.options == ("large", "uniform")
    assert measure.options == MEASURES
    assert picture.value == as_image(head_to_head_figure(recorded))
    measure.value, methods.value = "time to target", ("fedbuff", "fedadt")
    expected = head_to_head_figure(recorded, measure="time to target", methods=("fedbuff", "fedadt"))
    assert picture.value == as_image(expected)
    regime.value = "uniform"  # digits were not run there
    assert picture.layout.display == "none" and "must be among" in message.value
    workload.value, methods.value = "pairdigits", ("fedecho", "kuiper")  # the second was not run there
    assert picture.value == as_image(
        head_to_head_figure(recorded, "pairdigits", "uniform", "time to target", ["fedecho"])
    )
    methods.value = ("kuiper",)
    assert "at least one" in message.value


def test_nothing_to_browse():
    empty = SimpleNamespace(measured=Measured({}), cells={})
    with pytest.raises(ResultError, match="two methods in one workload"):
        explore_head_to_head(empty)
