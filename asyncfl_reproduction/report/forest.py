"""The twelve headlines as a forest plot: one row per headline, one interval per column of verdicts."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from asyncfl_lite import plots
from asyncfl_reproduction.claims.measured import AT_FIXED_RATE, TUNED
from asyncfl_reproduction.grid.columns import FIXED

PAPERS = {"FE": "fedecho", "FR": "fedrevive", "KU": "kuiper", "FA": "fedadt"}
"""Prefix of a headline's name -> the paper's method, which gives the colour."""
COLUMNS = {TUNED: ("o", 0.16), AT_FIXED_RATE: ("s", -0.16)}
"""Column -> its marker and its offset above the row's middle."""
WIDEST = {"points": 30.0, "log ratio": math.log(4.0)}
"""Unit -> limit of its axis; a longer interval is cut there, with an arrow."""


def draw_forest(headlines: pd.DataFrame) -> Figure | None:
    """Draw the headlines' accuracy differences (left) and time ratios (right); return None if no headline was run.

    A filled mark means that the verdict survives Holm's correction over the twelve headlines, and a hollow one that it
    does not.
    """
    if headlines["mean"].isna().all():
        return None
    order = list(dict.fromkeys(headlines["id"]))
    figure = Figure(figsize=(12, 0.52 * len(order) + 1.6), layout="constrained")  # which no notebook shows by itself
    axes = figure.subplots(1, 2, width_ratios=[3, 1.6], sharey=True)
    for axis, unit in zip(axes, ("points", "log ratio"), strict=True):
        axis.axvline(0, color="0.3", linewidth=1)
        axis.grid(axis="y", visible=False)
        axis.set_xlim(-WIDEST[unit], WIDEST[unit])
        for row in headlines[headlines["unit"] == unit].itertuples():
            _interval(axis, row, len(order) - 1 - order.index(row.id), 100.0 if unit == "points" else 1.0, WIDEST[unit])
    named = headlines.drop_duplicates("id").set_index("id")
    for index, name in enumerate(reversed(order)):
        if headlines.loc[headlines["id"] == name, "mean"].isna().all():
            axes[0].text(0, index, "  not run", color="0.5", va="center", fontsize=9)
    labels = [f"{named['sentence'][name]}\n(paper: {named['paper'][name]})" for name in reversed(order)]
    axes[0].set_yticks(range(len(order)), labels, fontsize=9)
    axes[0].set_ylim(-0.6, len(order) - 0.4)
    axes[0].set_xlabel("difference in accuracy, points")
    axes[1].set_xlabel("time to target,\nother method / this one")
    axes[1].set_xticks(np.log([0.25, 0.5, 1, 2, 4]))
    axes[1].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{math.exp(value):g}"))
    marks = [axes[0].plot([], [], mark, color="0.3", label=column)[0] for column, (mark, _) in COLUMNS.items()]
    figure.legend(marks, ["every method tuned", FIXED], loc="outside upper right", ncols=2, frameon=False)
    return figure


def _interval(axis: Axes, row: tuple, index: int, scale: float, widest: float) -> None:
    if math.isnan(row.mean):
        return
    mark, aside = COLUMNS[row.column]
    colour, y = plots.colour(PAPERS[row.id.split("-")[0]]), index + aside
    low, high = (float(np.clip(scale * end, -widest, widest)) for end in (row.low, row.high))
    axis.plot([low, high], [y, y], color=colour, linewidth=2, solid_capstyle="butt")
    for end, arrow in ((low, "<"), (high, ">")):
        if abs(end) >= widest:
            axis.plot(end, y, arrow, color=colour, clip_on=False)
    mean = float(np.clip(scale * row.mean, -widest, widest))
    axis.plot(mean, y, mark, color=colour, markerfacecolor=colour if row.survives else "white", markersize=7)
