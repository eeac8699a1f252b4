"""The server's step: its numbers are those of the table, its picture shows them, its controls move it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from asyncfl_course.explore import explore_server_step, server_step_figure, step_summary, swing
from asyncfl_lite.base.errors import ConfigError


def curves() -> pd.DataFrame:
    """Two workloads, two rates each way, two seeds: the larger the server rate, the wider the zigzag."""
    rows = []
    for index, workload in enumerate(("digits", "shapes")):
        for client_lr in (0.1, 0.3):
            for server_lr in (0.1, 1.0):
                for seed in (0, 1):
                    level = 0.5 + 0.1 * index + client_lr * (1 if server_lr < 1 else -1)
                    tests = level + 0.05 * server_lr * np.array([1, -1] * 4)
                    rows += [(workload, client_lr, server_lr, seed, 5 * at, one) for at, one in enumerate(tests)]
    return pd.DataFrame(rows, columns=["workload", "client_lr", "server_lr", "seed", "version", "accuracy"])


@pytest.mark.parametrize(
    ("tests", "last", "expected"), [((50, 60, 50), 3, 10), ((0, 90, 80, 82), 3, 6), ((1, 1), 20, 0)]
)
def test_swing_is_the_mean_jump_of_the_last_tests(tests, last, expected):
    assert swing(tests, last) == expected


def test_one_test_does_not_swing():
    with pytest.raises(ConfigError, match=r"^accuracy: swing needs two tests or more, got 1$"):
        swing([0.5])


def test_scores_and_swings_of_runs():
    summary = step_summary(curves()).set_index(["workload", "client_lr", "server_lr", "seed"])
    assert len(summary) == 16
    assert summary.loc[("digits", 0.3, 1.0, 0), "score"] == pytest.approx(20 - 1)  # three of five tests are the lower
    assert summary.loc[("digits", 0.3, 1.0, 0), "swing"] == pytest.approx(10)
    assert summary.loc[("shapes", 0.1, 0.1, 1), "swing"] == pytest.approx(1)


def test_a_missing_column_is_named():
    with pytest.raises(ConfigError, match="^curves: must have the columns workload, .*; seed not there$"):
        step_summary(curves().drop(columns="seed"))


def test_the_figure_takes_the_best_clients_rate_and_says_its_numbers():
    left, right = server_step_figure(curves(), 0.1).axes
    assert left.get_title("left") == "server rate 0.1, client rate 0.3: 79.9%, swing 1.0 points"
    assert right.get_title("left") == "digits, one line per client rate"
    drawn = curves().query("workload == 'digits' and server_lr == 0.1 and client_lr == 0.3 and seed == 0")
    assert left.lines[0].get_ydata() == pytest.approx(100 * drawn["accuracy"].to_numpy())
    assert len(left.lines) == 2
    assert (
        server_step_figure(curves(), 1.0).axes[0].get_title("left").startswith("server rate 1, client rate 0.1: 39.0%")
    )


def test_other_methods_are_lines_with_their_numbers():
    right = server_step_figure(curves(), workload="shapes", levels={"kuiper-tuned": 0.72, "kuiper": 0.7}).axes[1]
    assert {text.get_text() for text in right.get_legend().texts} == {"KUIPER (tuned) 72.0%", "KUIPER 70.0%"}
    assert {72.0, 70.0} <= {float(line.get_ydata()[0]) for line in right.lines if len(set(line.get_ydata())) == 1}


@pytest.mark.parametrize(
    ("rates", "more", "message"),
    [
        ((0.2,), {}, r"^server_lr: nothing is recorded at 0.2; there are 0.1, 1$"),
        ((0.1, 0.5), {}, r"^client_lr: nothing is recorded at 0.5; there are 0.1, 0.3$"),
        ((0.1,), {"workload": "faces"}, r"^workload: nothing is recorded at 'faces'; there are digits, shapes$"),
    ],
)
def test_what_is_not_recorded_is_one_line(rates, more, message):
    with pytest.raises(ConfigError, match=message):
        server_step_figure(curves(), *rates, **more)


def test_no_label_is_cut_off():
    figure = server_step_figure(curves(), levels={"fedecho-as printed": 0.7})
    figure.draw_without_rendering()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        box = axis.label.get_window_extent()
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, axis.label.get_text()
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, axis.label.get_text()


def test_controls_move_the_figure():
    table = curves()
    table = table[(table["workload"] == "digits") | (table["client_lr"] == 0.1)]
    box = explore_server_step(table, {"shapes": {"kuiper": 0.7}})
    controls = {one.description: one for one in _all(box) if hasattr(one, "description")}
    picture = next(one for one in _all(box) if type(one).__name__ == "HTML")
    assert controls["server rate"].value == 1.0 and "client rate 0.1: 39.0%" in picture.value
    controls["server rate"].value = 0.1
    assert "client rate 0.3: 79.9%" in picture.value
    controls["client rate"].value = 0.1
    assert "client rate 0.1: 59.9%" in picture.value
    controls["workload"].value = "shapes"  # which has one client rate only
    assert [label for label, _ in controls["client rate"].options] == ["best", "0.1"]
    assert "shapes, one line" in picture.value and "69.9%" in picture.value


def _all(widget) -> list:
    """A widget and all within it."""
    return [widget, *(inner for child in getattr(widget, "children", ()) for inner in _all(child))]
