"""The time machine: a run step by step, with every client's job and model version, arrivals, and accuracy."""

from __future__ import annotations

from textwrap import fill
from typing import NamedTuple

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from asyncfl_course.explore.controls import Explorer, played
from asyncfl_lite.base.errors import how_many
from asyncfl_lite.plots import (
    ACCENT,
    NEUTRAL,
    UNFINISHED,
    colour,
    staleness_bar,
    staleness_scale,
    time_label,
    use_style,
)
from asyncfl_lite.runs.results import Result


class Moment(NamedTuple):
    """The state of a run at one virtual time, after all events at this time.

    Attributes:
        version: the server's version.
        buffered: number of updates in the buffer.
        arrivals: number of updates that have arrived so far.
        training: one row per job in flight: client, start_version, behind (versions since), dispatched_at, arrives_at
            (or when it is called off; NaN if neither happens within the run), staleness (its update's on arrival; NaN
            if it does not arrive within the run).
        reported: the updates that arrived last, all at the same time; empty at the start.
        upcoming: the updates that arrive next, all at the same time; empty at the end.
        accuracy: the global model's accuracy in the last test.
    """

    version: int
    buffered: int
    arrivals: int
    training: pd.DataFrame
    reported: pd.DataFrame
    upcoming: pd.DataFrame
    accuracy: float


def moment(result: Result, time: float) -> Moment:
    """Return a run's state at a virtual time, in the delay law's unit, read from its tables."""
    updates, waiting = result.updates, result.in_flight.rename(columns={"called_off_at": "arrives_at"})
    past, future = updates[updates["arrived_at"] <= time], updates[updates["arrived_at"] > time]
    version = int(past["version"].iloc[-1]) if len(past) else 0
    jobs = pd.concat([future.rename(columns={"arrived_at": "arrives_at"}), waiting], ignore_index=True)
    jobs = jobs[(jobs["dispatched_at"] <= time) & ~(jobs["arrives_at"] <= time)].sort_values("client")
    jobs = jobs.assign(behind=version - jobs["start_version"])
    return Moment(
        version,
        int((past["accepted"] & (past["version"] == version)).sum() - (version > 0)),
        len(past),
        jobs[["client", "start_version", "behind", "dispatched_at", "arrives_at", "staleness"]].reset_index(drop=True),
        past[past["arrived_at"] == past["arrived_at"].max()],
        future[future["arrived_at"] == future["arrived_at"].min()],
        float(result.curve[result.curve["time"] <= time]["accuracy"].iloc[-1]),
    )


def moment_figure(result: Result, time: float) -> Figure:
    """Draw a run at one virtual time: every client's job and model version, arrivals, and accuracy.

    A job's colour is that of its update's staleness on arrival, as in :func:`~asyncfl_lite.plots.plot_gantt`, or grey
    if its update does not arrive within the run. Updates that arrive at exactly this time are marked with their
    staleness: the stalest with a star, the others with a dot.

    Args:
        result: the result of a run, preferably a short one with few clients.
        time: virtual time, in the delay law's unit.
    """
    now = moment(result, time)
    end, many = result.summary["virtual_time"], len(result.clients)
    scale = staleness_scale(max([1, *result.updates["staleness"]]))
    most = max([scale.norm.vmax, *(result.summary["versions"] - result.in_flight["start_version"])])
    use_style()
    figure, grid = plt.subplot_mosaic(
        [["jobs", "jobs"], ["behind", "accuracy"]], figsize=(8.4, 5.6), height_ratios=(3, 2), layout="constrained"
    )
    _draw_jobs(result, time, scale, grid["jobs"])
    for job in now.training.itertuples():
        where = {"xytext": (9, 0), "textcoords": "offset points", "va": "center"}
        grid["jobs"].annotate(f"v{job.start_version}", (time, job.client), **where)
    _mark_reports(now.reported[now.reported["arrived_at"] == time], grid["jobs"])
    grid["jobs"].set(title=_moment_title(now, time), ylabel="client", xlim=(0, 1.04 * end), ylim=(-0.6, many - 0.4))
    grid["behind"].barh(now.training["client"], now.training["behind"], color=NEUTRAL)
    grid["behind"].set(xlabel="versions behind", ylabel="client in flight", xlim=(0, most), ylim=(-0.6, many - 0.4))
    known, shade = result.curve[result.curve["time"] <= time], colour(result.config.algorithm)
    scores = [*known["accuracy"], now.accuracy]
    grid["accuracy"].step(result.curve["time"], result.curve["accuracy"], where="post", color="#d4d4d8")
    grid["accuracy"].step([*known["time"], time], scores, where="post", color=shade, linewidth=2)
    grid["accuracy"].plot(time, now.accuracy, "o", color=shade)
    grid["accuracy"].set(ylabel="test accuracy", xlim=(0, 1.04 * end), ylim=(0, 1))
    for name in ("jobs", "behind"):
        grid[name].yaxis.set_major_locator(MaxNLocator(integer=True))
    grid["behind"].xaxis.set_major_locator(MaxNLocator(integer=True))
    for name in ("jobs", "accuracy"):
        grid[name].set_xlabel(time_label(result.time_unit))
    staleness_bar(scale, grid["jobs"])
    plt.close(figure)
    return figure


def _draw_jobs(result: Result, time: float, scale: ScalarMappable, axes: Axes) -> None:
    sent, never = (table[table["dispatched_at"] <= time] for table in (result.updates, result.in_flight))
    over = sent["arrived_at"] <= time
    for rows, hatch in ((sent[over], ""), (sent[~over], "////")):
        began, shades = rows["dispatched_at"], scale.to_rgba(rows["staleness"])
        lengths = rows["arrived_at"].clip(upper=time) - began
        look = {"color": shades, "edgecolor": "white", "linewidth": 0.6, "hatch": hatch}
        axes.barh(rows["client"], lengths, left=began, **look)
    began, ends = never["dispatched_at"], never["called_off_at"].astype(float).fillna(time).clip(upper=time)
    axes.barh(never["client"], ends - began, left=began, **UNFINISHED)
    axes.axvline(time, color=ACCENT)
    axes.grid(False)


def _mark_reports(reported: pd.DataFrame, axes: Axes) -> None:
    if not len(reported):
        return
    stalest = reported["staleness"].max()
    for row in reported.itertuples():
        look = {"marker": "*", "markersize": 15} if row.staleness == stalest else {"marker": "o", "markersize": 7}
        axes.plot(row.arrived_at, row.client, color=ACCENT, markeredgecolor="white", clip_on=False, zorder=5, **look)
        where = {"xytext": (-11, 0), "textcoords": "offset points", "va": "center", "ha": "right", "zorder": 6}
        box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        axes.annotate(f"τ = {row.staleness}", (row.arrived_at, row.client), bbox=box, fontsize=9, **where)


def _moment_title(now: Moment, time: float) -> str:
    said = f"time {time:.2f}, {how_many(now.arrivals, 'arrival')}: version {now.version}, {now.buffered} in the buffer"
    reports = [f"{row.client} (τ = {row.staleness})" for row in now.reported.itertuples()]
    last = f"reported last: client {', '.join(reports)}" if reports else "no client has reported"
    following = "next: none before the end"
    if len(now.upcoming):
        clients = ", ".join(map(str, now.upcoming["client"]))
        following = f"next: client {clients} at {now.upcoming['arrived_at'].iloc[0]:.2f}"
    return f"{said}, accuracy {now.accuracy:.0%}\n" + fill(f"{last}; {following}", 100)


def explore_run(result: Result) -> Explorer:
    """Return :func:`moment_figure` with a slider that goes from arrival to arrival, and a play button.

    The slider counts arrivals. Updates that arrive at the same time are one step of the slider.
    """
    counts = result.updates["arrived_at"].value_counts().sort_index().cumsum()
    times = [0.0, *counts.index]
    return played("arrivals", [0, *counts], len(counts) // 2, lambda place: moment_figure(result, times[place]))
