"""The headlines' forest plot: every interval, cut where the axis ends, and what was not run."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from asyncfl_lite import plots
from asyncfl_reproduction.report.forest import draw_forest


def headlines_like(**changed) -> pd.DataFrame:
    """Two headlines in two columns, as they are checked."""
    rows = [
        ("FE-2", "points", "tuned", 0.01, -0.02, 0.04, False),
        ("FE-2", "points", "server_rate", 0.60, 0.50, 0.70, True),
        ("FR-2", "log ratio", "tuned", 0.2, 0.1, 0.3, True),
        ("KU-1", math.nan, "tuned", math.nan, math.nan, math.nan, False),
    ]
    table = pd.DataFrame(rows, columns=["id", "unit", "column", "mean", "low", "high", "survives"])
    table = table.assign(verdict="holds", sentence=table["id"].map("headline {}".format), paper="+1 points")
    return table.assign(**changed)


def test_a_forest_has_an_interval_per_column_and_says_what_was_not_run():
    before = plt.get_fignums()  # another test of this process may have left a figure open
    figure = draw_forest(headlines_like())
    points, ratios = figure.axes
    assert [label.get_text() for label in points.get_yticklabels()][::-1] == [
        f"headline {name}\n(paper: +1 points)" for name in ("FE-2", "FR-2", "KU-1")
    ]
    assert [text.get_text().strip() for text in points.texts] == ["not run"] and points.texts[0].get_position()[1] == 0
    lines = {tuple(line.get_xdata()): line for line in points.lines if len(line.get_xdata()) == 2}
    assert (-2.0, 4.0) in lines and (30.0, 30.0) in lines  # cut at the axis' end, with an arrow
    assert any(line.get_marker() == ">" for line in points.lines)
    filled = {line.get_xdata()[0]: line.get_markerfacecolor() for line in points.lines if line.get_marker() in "os"
              and len(line.get_xdata())}  # fmt: skip
    assert filled[1.0] == "white" and filled[30.0] == plots.colour("fedecho")
    (interval,) = [line for line in ratios.lines if np.allclose(line.get_xdata(), (0.1, 0.3))]
    assert interval.get_color() == plots.colour("fedrevive")
    assert plt.get_fignums() == before  # else a notebook would show it a second time


def test_there_is_no_forest_of_nothing():
    assert draw_forest(headlines_like(mean=math.nan)) is None
