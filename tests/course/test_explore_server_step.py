"""The server's step: its numbers are those of the table, its picture shows them, its controls move it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from asyncfl_course.explore import explore_server_step, server_step_figure, step_summary, swing


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


def test_scores_and_swings_of_runs():
    summary = step_summary(curves()).set_index(["workload", "client_lr", "server_lr", "seed"])
    assert len(summary) == 16
    assert summary.loc[("digits", 0.3, 1.0, 0), "score"] == pytest.approx(20 - 1)  # three of five tests are the lower
    assert summary.loc[("digits", 0.3, 1.0, 0), "swing"] == pytest.approx(10)
    assert summary.loc[("shapes", 0.1, 0.1, 1), "swing"] == pytest.approx(1)


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
