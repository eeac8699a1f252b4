"""The schedule explorer: the weights that it draws are those that the methods use."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfl_course.explore import schedule_figure, schedules, staleness_weight
from asyncfl_lite.algorithms import make_algorithm
from asyncfl_lite.algorithms.afl_dw import AFLDW
from asyncfl_lite.algorithms.mixing import poly

UPDATES = pd.DataFrame({"staleness": [0, 1, 1, 2, 4, 4, 4, 8, 30, 150], "version": range(1, 11)})


@pytest.mark.parametrize(
    ("method", "settings", "tau", "expected"),
    [
        ("fedrevive", {}, 50, 0.25), ("fedrevive", {}, 150, 1.0), ("dd_fedrevive", {}, 50, 0.5),
        ("fedrevive-linear", {"beta_family": "linear"}, 100, 0.5),
        ("afl_dw", {}, 50, 0.75), ("afl_dw", {}, 150, 0.0),
        ("fedasync", {}, 3, 0.3), ("fedasync-hinge", {"staleness_function": "hinge"}, 5, 0.6 / 11),
        ("fedasync-constant", {"staleness_function": "constant"}, 5, 0.6),
        ("fedbuff", {}, 8, 1.0), ("fedbuff-poly", {"staleness_weight": "poly"}, 8, 1 / 3),
        ("kuiper", {}, 3, 0.35), ("fedadt", {}, 3, 0.5), ("fedadt", {}, 0, 1.0),
    ],
)  # fmt: skip
def test_worked_weights(method, settings, tau, expected):
    assert staleness_weight(method, **settings)(tau) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.integers(0, 400), st.floats(0, 2), st.floats(1, 200))
def test_what_is_measured_is_what_the_methods_say(tau, power, half):
    mixing = make_algorithm("fedasync", poly_a=power, mixing=0.7)
    assert staleness_weight("fedasync", poly_a=power, mixing=0.7)(tau) == pytest.approx(mixing.mixing_weight(tau))
    assert staleness_weight("kuiper", poly_a=power)(tau) == pytest.approx(mixing.mixing_weight(tau))
    assert staleness_weight("afl_dw", s_max=half)(tau) == pytest.approx(1 - AFLDW(s_max=half).beta(tau), abs=1e-12)
    assert staleness_weight("fedadt")(tau) == pytest.approx(poly(tau))


def test_the_figure_draws_the_weights_of_these_updates():
    lines = {"fedrevive": {"s_max": 4.0}, "fedasync": {}, "fedasync-hinge": {"staleness_function": "hinge"}}
    weights, used, histogram, version = schedule_figure(UPDATES, lines).axes
    thin, thick = weights.lines[0::2], weights.lines[1::2]
    for (method, settings), line, part in zip(lines.items(), thin, thick, strict=True):
        expected = [staleness_weight(method, **settings)(tau) for tau in range(151)]
        assert line.get_ydata() == pytest.approx(expected)
        assert part.get_xdata()[0] == 0 and part.get_xdata()[-1] == 150
    dots = [line.get_xdata()[0] for line in used.lines[1::2]]
    tau = UPDATES["staleness"]
    means = [np.mean([staleness_weight(m, **s)(t) for t in tau]) for m, s in lines.items()]
    assert dots == pytest.approx(means)
    assert [text.get_text() for text in used.texts] == [f"{mean:.2f}" for mean in means]
    assert sum(bar.get_height() for bar in histogram.patches) == 10
    assert not version.axison  # FedADT is not among the methods
    assert len({line.get_color() for line in thin}) == 3


def test_what_is_drawn_has_the_mean_staleness_of_a_long_run():
    """One below the number in flight, as lesson 10 says above the explorer; the first jobs alone would lower it."""
    assert schedules._updates("fedrevive", 100)["staleness"].mean() == pytest.approx(99, abs=2)
