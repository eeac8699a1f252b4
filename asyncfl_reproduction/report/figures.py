"""Building blocks for the papers' figures, such as panels of curves, lines over a setting, and bars.

A figure's function takes the recorded results and returns a matplotlib figure, or None if none of its cells was run. A
panel without any run says so. A line has one point for each cell that was run. Colours are the methods' own
(:mod:`asyncfl_lite.plots`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from asyncfl_lite import plots
from asyncfl_reproduction.claims.measured import running_average
from asyncfl_reproduction.report.recorded import MISSING, Recorded
from asyncfl_reproduction.statistics import deviation

PER_ROW = 4
Draw = Callable[[Recorded], Figure | None]
"""Function from recorded results to a figure, or None if none of its cells was run."""


class PaperFigure(NamedTuple):
    """A figure of a paper: a caption, which says nothing about our results, and the function that redraws it."""

    caption: str
    draw: Draw


def panels(count: int, *, height: float = 3.0, sharey: bool = True) -> tuple[Figure, list[Axes]]:
    """Return a figure with ``count`` panels, at most four in a row, and the panels."""
    plots.use_style()
    columns = min(count, PER_ROW)
    rows = -(-count // columns)
    width = 6.0 if count == 1 else min(12.0, 1.2 + 3.3 * columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(width, height * rows + 0.5), layout="constrained", sharey=sharey, squeeze=False
    )
    for spare in axes.flat[count:]:
        spare.set_axis_off()
    return figure, list(axes.flat[:count])


def finish(figure: Figure, entries: Mapping[str, Line2D | plt.Artist]) -> Figure:
    """Add one legend below all panels, and close the figure so that the notebook shows it only once."""
    if entries:
        widest = max(4, *map(len, entries)) * 0.085 + 0.8  # width of an entry in inches
        columns = max(1, min(len(entries), int(figure.get_figwidth() / widest)))
        figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)
    plt.close(figure)
    return figure


def legend_of(axes: Axes) -> dict[str, plt.Artist]:
    """Return the legend's labels with their handles."""
    return dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))


def say_not_run(axes: Axes) -> None:
    """Write into a panel that none of its cells was run."""
    axes.text(0.5, 0.5, MISSING, transform=axes.transAxes, ha="center", va="center", color=plots.NEUTRAL)
    axes.set(xticks=[])


def percent(recorded: Recorded, cell: str) -> np.ndarray | None:
    """Return a cell's ``(seeds,)`` final accuracies in percent, or None if it was not run."""
    values = recorded.measured.values(cell)
    return None if values is None else 100 * values


def draw_curves(
    recorded: Recorded,
    shown: Mapping[str, Mapping[str, str]],
    *,
    over: str = "time",
    unit: str = "",
    window: Callable[[str], int] = lambda method: 1,
    target: Callable[[str], float | None] = lambda title: None,
) -> Figure | None:
    """Draw accuracy over time or versions, with a panel per title and a line per method with its range over seeds.

    Args:
        recorded: the recorded results.
        shown: panel's title -> method or variant -> cell.
        over: ``time``, ``version`` or ``updates``.
        unit: unit of virtual time.
        window: method -> number of evaluations in its running average.
        target: panel's title -> accuracy to mark, as a fraction; None for no marks.

    The curve of a method that goes on for more than twice as long as all others, as synchronous rounds may, is cut
    there.
    """
    there = recorded.measured.curves
    if not any(cell in there for cells in shown.values() for cell in cells.values()):
        return None
    figure, axes = panels(len(shown))
    entries = {}
    for axis, (title, cells) in zip(axes, shown.items(), strict=True):
        axis.set_title(title)
        curves = {
            m: [curve.assign(accuracy=running_average(curve, window(m))) for curve in there[cell]]
            for m, cell in cells.items()
            if cell in there
        }
        if not curves:
            say_not_run(axis)
            continue
        alone = len({method.split("-")[0] for method in curves}) == 1
        plots.plot_curves(curves, over=over, unit=unit, shades=alone, axes=axis)
        ends = sorted(max(table[over].iloc[-1] for table in tables) for tables in curves.values())
        if len(ends) > 1 and ends[-1] > 2 * ends[-2]:
            axis.set_xlim(0, 2 * ends[-2])
        entries |= legend_of(axis)
        axis.get_legend().remove()
        if (goal := target(title)) is not None:
            axis.axhline(goal, color="black", linestyle=":", linewidth=1)
    for index, axis in enumerate(axes):
        axis.set_ylabel("" if index % PER_ROW else "test accuracy")
    return finish(figure, entries)


def draw_lines(
    recorded: Recorded,
    shown: Mapping[str, Mapping[str, Mapping[float, str]]],
    *,
    xlabel: str,
    ylabel: str = "test accuracy, %",
    value: Callable[[Recorded, str], np.ndarray | None] | None = None,
    log: bool = False,
    sharey: bool = True,
) -> Figure | None:
    """Draw a number against a setting, with a panel per title, a line per method, and a point per cell that was run.

    Args:
        recorded: the recorded results.
        shown: panel's title -> method or variant -> value of the setting -> cell.
        xlabel: label of the setting.
        ylabel: label of the number.
        value: function from a cell to its numbers, one per seed; by default the final accuracy in percent.
        log: whether the setting is on a logarithmic axis.
        sharey: whether the panels share the number's axis.
    """
    rows = [
        (title, method, x, number)
        for title, methods in shown.items()
        for method, cells in methods.items()
        for x, cell in cells.items()
        if (numbers := (value or percent)(recorded, cell)) is not None and np.isfinite(numbers).all()
        for number in numbers
    ]
    if not rows:
        return None
    table = pd.DataFrame(rows, columns=["panel", "method", "x", "y"])
    figure, axes = panels(len(shown), sharey=sharey)
    entries: dict[str, plt.Artist] = {}
    for axis, (title, methods) in zip(axes, shown.items(), strict=True):
        if len(here := table[table["panel"] == title]):
            entries |= _draw_panel(axis, here, list(methods), sorted({x for m in methods.values() for x in m}), log)
        else:
            say_not_run(axis)
            axis.tick_params(labelleft=sharey and axis is axes[0])
        axis.set(title=title, xlabel=xlabel, ylabel=ylabel if axis is axes[0] else "")
    return finish(figure, entries)


def _draw_panel(
    axis: Axes, rows: pd.DataFrame, methods: Sequence[str], ticks: Sequence[float], log: bool
) -> dict[str, plt.Artist]:
    """Draw a line with deviations for each method that was run, and return the legend's entries."""
    ran = list(rows["method"].unique())
    aside = rows["method"].map(ran.index) - (len(ran) - 1) / 2  # so that bars of deviation do not hide each other
    room = 0.08 * (ticks[-1] - ticks[0]) or 0.1
    moved = rows["x"] * 1.05 ** (0.25 * aside) if log else rows["x"] + 0.125 * aside * room
    variant = {m: [n for n in methods if n.split("-")[0] == m.split("-")[0]].index(m) for m in ran}
    alone = len({method.split("-")[0] for method in methods}) == 1
    axis.set_xscale("log" if log else "linear")
    sns.lineplot(
        x=moved, y=rows["y"], hue=rows["method"], style=rows["method"], ax=axis, errorbar="sd", err_style="bars",
        palette={m: plots.shade(m, n) if alone else plots.colour(m) for m, n in variant.items()},
        dashes={m: ["", (4, 2), (1, 1.5), (5, 2, 1, 2)][n % 4] for m, n in variant.items()},
        markers={m: "o^sDvP"[n % 6] for m, n in variant.items()},
        err_kws={"capsize": 3}, markeredgewidth=0,
    )  # fmt: skip
    axis.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axis.minorticks_off()
    axis.set_xlim((ticks[0] / 1.3, ticks[-1] * 1.3) if log else (ticks[0] - room, ticks[-1] + room))
    entries = {plots.title(method): artist for method, artist in legend_of(axis).items()}
    axis.get_legend().remove()
    return entries


def draw_bars(shown: Mapping[str, Mapping[str, np.ndarray | None]], *, ylabel: str) -> Figure | None:
    """Draw bars of mean and deviation, with a panel per title and a bar per method.

    The ``(seeds,)`` numbers are infinite for a target that was not reached, and None if nothing was run. Words take the
    place of such a bar.
    """
    if not any(values is not None for methods in shown.values() for values in methods.values()):
        return None
    figure, axes = panels(len(shown), sharey=False)
    for axis, (title, methods) in zip(axes, shown.items(), strict=True):
        axis.set_title(title)
        for index, (method, values) in enumerate(methods.items()):
            if values is None or not np.isfinite(values).all():
                word = MISSING if values is None else "not reached"
                axis.text(index, 0.02, word, rotation=90, ha="center", va="bottom", color=plots.NEUTRAL,
                          transform=axis.get_xaxis_transform())  # fmt: skip
            else:
                axis.bar(index, values.mean(), yerr=deviation(values), color=plots.colour(method), capsize=3)
        axis.set_xticks(range(len(methods)), [plots.title(m) for m in methods], rotation=35, ha="right")
        axis.set_xlim(-0.6, len(methods) - 0.4)
        axis.grid(False, axis="x")
        if not axis.patches:
            axis.set_yticks([])
    axes[0].set_ylabel(ylabel)
    return finish(figure, {})
