"""Curves of a newcomer in one setting, together with FedBuff and the methods that are nearest in accuracy."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from asyncfl_lite import plots
from asyncfl_lite.base.style import ACCENT
from asyncfl_reproduction.league.field import REFERENCE
from asyncfl_reproduction.league.standings import Standings
from asyncfl_reproduction.report.figures import finish, legend_of, panels

NEAREST = 5


def shown_beside(one: Standings, newcomer: str) -> list[str]:
    """Return the newcomer, the five methods whose mean accuracy is nearest to its own, and FedBuff."""
    own = next(row.mean for row in one.rows if row.method == newcomer)
    others = sorted((row for row in one.rows if row.method != newcomer), key=lambda row: abs(row.mean - own))
    names = [row.method for row in others[:NEAREST]]
    with_reference = [*names, REFERENCE] if any(row.method == REFERENCE for row in others[NEAREST:]) else names
    return [*with_reference, newcomer]


def draw_beside(one: Standings, newcomer: str) -> tuple[Figure, list[str]]:
    """Draw accuracy over client updates and over virtual time, and return the figure and the methods shown.

    The time axis ends a fifth after the newcomer, because synchronous rounds may go on for twenty times as long.
    """
    shown = shown_beside(one, newcomer)
    curves = {method: one.measured.curves[method] for method in shown}
    figure, axes = panels(2)
    figure.set_size_inches(11, 4.2)
    for own, over in zip(axes, ("updates", "time"), strict=True):
        plots.plot_curves(curves, over=over, axes=own)
        _mark(own, plots.title(newcomer))
    ends = [curve["time"].iloc[-1] for curve in curves[newcomer]]
    axes[1].set(xlim=(0, 1.2 * max(ends)), ylabel="")
    entries = legend_of(axes[0])
    for own in axes:
        own.get_legend().remove()
    return finish(figure, entries), shown


def _mark(axes: plt.Axes, title: str) -> None:
    """Draw the curve with this title in the accent colour."""
    for line, band in zip(axes.get_lines(), axes.collections, strict=True):
        if line.get_label() == title:
            line.set(color=ACCENT, linewidth=3)
            band.set(facecolor=ACCENT)
