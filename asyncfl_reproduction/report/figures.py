"""Building blocks of the papers' figures: panels of curves, lines over a setting, bars.

A figure's function takes what was recorded and returns a matplotlib figure, or None where nothing of it was run.
A panel says so if nothing of it was run; a line has one point for each cell that was run. Colours are the methods' own
(:mod:`asyncfl_lite.plots`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from asyncfl_lite import plots
from asyncfl_reproduction.report.recorded import MISSING, Recorded
from asyncfl_reproduction.statistics import deviation

PER_ROW = 4


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper.

    Attributes:
        paper: ``FedRevive``.
        name: ``Fig. 2``.
        caption: what it shows and where to look; nothing about how ours came out.
        draw: from what was recorded to a figure, or None where nothing of it was run.
    """

    paper: str
    name: str
    caption: str
    draw: Callable[[Recorded], Figure | None]


def panels(count: int, *, height: float = 3.0, sharey: bool = True) -> tuple[Figure, list[Axes]]:
    """Make a figure of ``count`` panels, at most four in a row."""
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
    """Add one legend below all panels, outside the data, and close the figure, which the notebook shows once."""
    if entries:
        widest = max(4, *map(len, entries)) * 0.085 + 0.8  # inches that an entry takes
        columns = max(1, min(len(entries), int(figure.get_figwidth() / widest)))
        figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)
    plt.close(figure)
    return figure


def legend_of(axes: Axes) -> dict[str, plt.Artist]:
    """Return the legend's labels with their handles."""
    return dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))


def say_not_run(axes: Axes) -> None:
    """Write in the middle of a panel that nothing in it was run."""
    axes.text(0.5, 0.5, MISSING, transform=axes.transAxes, ha="center", va="center", color=plots.NEUTRAL)
    axes.set(xticks=[])


def percent(recorded: Recorded, cell: str) -> np.ndarray | None:
    """Return the ``(seeds,)`` final accuracies of a cell, in percent as on axes; None if it was not run."""
    values = recorded.measured.values(cell)
    return None if values is None else 100 * values


def smoothed(curves: Sequence[pd.DataFrame], window: int) -> list[pd.DataFrame]:
    """Return curves with the running average of this many last evaluations, fewer at the start."""
    return [curve.assign(accuracy=curve["accuracy"].rolling(window, min_periods=1).mean()) for curve in curves]


def draw_curves(
    recorded: Recorded,
    shown: Mapping[str, Mapping[str, str]],
    *,
    over: str = "time",
    unit: str = "",
    window: Callable[[str], int] = lambda method: 1,
    target: Callable[[str], float | None] = lambda title: None,
) -> Figure | None:
    """Draw accuracy over virtual time or versions: one panel per title, one line per method, with the range of seeds.

    Args:
        recorded: what was recorded.
        shown: panel's title -> method or variant -> cell.
        over: ``time``, ``version`` or ``updates``.
        unit: of virtual time.
        window: method -> evaluations in its running average.
        target: title -> accuracy to mark, a fraction, if any.

    A method that goes on for more than twice as long as all others, as rounds do, is cut there.
    """
    there = recorded.measured.curves
    if not any(cell in there for cells in shown.values() for cell in cells.values()):
        return None
    figure, axes = panels(len(shown))
    entries = {}
    for axis, (title, cells) in zip(axes, shown.items(), strict=True):
        axis.set_title(title)
        curves = {m: smoothed(there[cell], window(m)) for m, cell in cells.items() if cell in there}
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
    """Draw a number against a setting: one panel per title, one line per method, one point per cell that was run.

    Args:
        recorded: what was recorded.
        shown: panel's title -> method or variant -> value of the setting -> cell.
        xlabel: the setting.
        ylabel: the number.
        value: from a cell to the number, one per seed; final accuracy in percent where left out.
        log: whether the setting is on a logarithmic axis.
        sharey: whether the panels share the number's axis.
    """
    found = {
        title: {method: _points(recorded, cells, value or percent) for method, cells in methods.items()}
        for title, methods in shown.items()
    }
    if not any(points for methods in found.values() for points in methods.values()):
        return None
    figure, axes = panels(len(shown), sharey=sharey)
    entries: dict[str, plt.Artist] = {}
    for axis, (title, methods) in zip(axes, found.items(), strict=True):
        axis.set(title=title, xlabel=xlabel)
        if any(methods.values()):
            entries |= _draw_panel(axis, methods, sorted({x for cells in shown[title].values() for x in cells}), log)
        else:
            say_not_run(axis)
            axis.tick_params(labelleft=sharey and axis is axes[0])
    axes[0].set_ylabel(ylabel)
    return finish(figure, entries)


def _points(
    recorded: Recorded, cells: Mapping[float, str], value: Callable[[Recorded, str], np.ndarray | None]
) -> dict[float, np.ndarray]:
    numbers = {x: value(recorded, cell) for x, cell in cells.items()}
    return {x: values for x, values in numbers.items() if values is not None and np.isfinite(values).all()}


def _draw_panel(
    axis: Axes, methods: Mapping[str, Mapping[float, np.ndarray]], ticks: Sequence[float], log: bool
) -> dict[str, plt.Artist]:
    """Draw one line per method that has points; return the legend's entries."""
    room = 0.08 * (ticks[-1] - ticks[0]) or 0.1
    drawn, entries = {method: points for method, points in methods.items() if points}, {}
    for number, (method, points) in enumerate(drawn.items()):
        aside = 0.25 * (number - (len(drawn) - 1) / 2)  # so that bars of deviation do not hide each other
        moved = {x * 1.05**aside if log else x + aside * room / 2: y for x, y in points.items()}
        entries[plots.title(method)] = _line(axis, method, moved, number, methods)
    axis.set_xscale("log" if log else "linear")
    axis.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axis.minorticks_off()
    axis.set_xlim((ticks[0] / 1.3, ticks[-1] * 1.3) if log else (ticks[0] - room, ticks[-1] + room))
    return entries


def _line(axis: Axes, method: str, points: Mapping[float, np.ndarray], number: int, family: Mapping) -> plt.Artist:
    same = [name for name in family if name.split("-")[0] == method.split("-")[0]]
    return axis.errorbar(
        list(points),
        [values.mean() for values in points.values()],
        [deviation(values) for values in points.values()],
        color=plots.shade(method, same.index(method)) if len(same) == len(family) else plots.colour(method),
        linestyle=["-", "--", ":", "-."][same.index(method) % 4],
        marker="o^sDvP"[same.index(method) % 6],
        capsize=3,
        zorder=3 + number,
    )


def draw_bars(
    shown: Mapping[str, Mapping[str, np.ndarray | None]], *, ylabel: str, missing: str = MISSING
) -> Figure | None:
    """Draw one panel per title and one bar per method: mean and deviation, or a word if there are none.

    Args:
        shown: panel's title -> method or variant -> ``(seeds,)`` numbers, infinite for a target that was not reached,
            or None where nothing was run.
        ylabel: the number.
        missing: what to say in place of a bar for None.
    """
    if not any(values is not None for methods in shown.values() for values in methods.values()):
        return None
    figure, axes = panels(len(shown), sharey=False)
    for axis, (title, methods) in zip(axes, shown.items(), strict=True):
        axis.set_title(title)
        for index, (method, values) in enumerate(methods.items()):
            if values is None or not np.isfinite(values).all():
                word = missing if values is None else "not reached"
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
