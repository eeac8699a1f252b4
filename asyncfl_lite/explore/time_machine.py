"""The time machine: scrubs through a run; who trains on which version now, what arrives, how accuracy moves."""

from __future__ import annotations

from typing import NamedTuple

import ipywidgets as widgets
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from asyncfl_lite.explore.controls import played
from asyncfl_lite.plots import ACCENT, NEUTRAL, colour, time_label, use_style
from asyncfl_lite.results import Result


class Moment(NamedTuple):
    """A run at one virtual time, all that happens at this time done.

    Attributes:
        version: of the server.
        buffered: updates that wait in the buffer.
        training: a row a job in flight: client, start_version, behind (versions since), dispatched_at, arrives_at
            (or is called off; NaN if not within the run).
        reported: the row of ``updates`` that arrived last, or None.
        upcoming: the row that arrives next, or None.
        accuracy: of the last test of the global model.
    """

    version: int
    buffered: int
    training: pd.DataFrame
    reported: pd.Series | None
    upcoming: pd.Series | None
    accuracy: float


def moment(result: Result, time: float) -> Moment:
    """Return a run's state at a virtual time, read from its tables.

    Args:
        result: of a run.
        time: virtual time, in the delay law's unit.
    """
    updates, waiting = result.updates, result.in_flight.rename(columns={"called_off_at": "arrives_at"})
    past, future = updates[updates["arrived_at"] <= time], updates[updates["arrived_at"] > time]
    version = int(past["version"].iloc[-1]) if len(past) else 0
    jobs = pd.concat([future.rename(columns={"arrived_at": "arrives_at"}), waiting], ignore_index=True)
    jobs = jobs[(jobs["dispatched_at"] <= time) & ~(jobs["arrives_at"] <= time)].sort_values("client")
    jobs = jobs.assign(behind=version - jobs["start_version"])
    return Moment(
        version,
        int((past["accepted"] & (past["version"] == version)).sum() - (version > 0)),
        jobs[["client", "start_version", "behind", "dispatched_at", "arrives_at"]].reset_index(drop=True),
        past.iloc[-1] if len(past) else None,
        future.iloc[0] if len(future) else None,
        float(result.curve[result.curve["time"] <= time]["accuracy"].iloc[-1]),
    )


def moment_figure(result: Result, time: float) -> Figure:
    """Draw a run at one virtual time: who trains on which version, what came and comes, how good the model is.

    Args:
        result: of a run, best a short one with few clients.
        time: virtual time, in the delay law's unit.

    Returns:
        The figure; its axes are the jobs up to now, how many versions each client in flight is behind, and accuracy.
    """
    now = moment(result, time)
    end, many = result.summary["virtual_time"], len(result.clients)
    most = max([1, *result.updates["staleness"], *now.training["behind"]])
    use_style()
    figure, grid = plt.subplot_mosaic(
        [["jobs", "jobs"], ["behind", "accuracy"]], figsize=(9.5, 5.6), height_ratios=(3, 2), layout="constrained"
    )
    _draw_jobs(result.updates[result.updates["arrived_at"] <= time], now, time, grid["jobs"])
    grid["jobs"].set(title=_told(now, time), ylabel="client", xlim=(0, 1.04 * end), ylim=(-0.6, many - 0.4))
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
    for name in ("jobs", "accuracy"):
        grid[name].set_xlabel(time_label(result.config.delay_settings.unit))
    plt.close(figure)
    return figure


def _draw_jobs(past: pd.DataFrame, now: Moment, time: float, axes: Axes) -> None:
    """Draw a bar a job in the shade of the version that it started from; those in flight are hatched and end now."""
    shades = plt.get_cmap("viridis_r")
    for rows, ends, hatch in ((past, past["arrived_at"], ""), (now.training, time, "////")):
        began, versions = rows["dispatched_at"], rows["start_version"].to_numpy(dtype=float)
        shade = shades(versions / max(now.version, 1))
        axes.barh(rows["client"], ends - began, left=began, color=shade, edgecolor="white", linewidth=0.6, hatch=hatch)
    for job in now.training.itertuples():
        where = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(f"v{job.start_version}", (time, job.client), **where)
    axes.axvline(time, color=ACCENT)
    axes.grid(False)


def _told(now: Moment, time: float) -> str:
    """Return a moment in two lines."""
    said = f"time {time:.2f}: version {now.version}, {now.buffered} in the buffer, accuracy {now.accuracy:.0%}"
    came, comes = now.reported, now.upcoming
    last = "nobody has reported"
    if came is not None:
        last = f"client {came.client} reported, {came.staleness} version{'' if came.staleness == 1 else 's'} old"
    following = "nobody before the end" if comes is None else f"client {comes.client} at {comes.arrived_at:.2f}"
    return f"{said}\n{last}; next: {following}"


def explore_run(result: Result) -> widgets.VBox:
    """Return :func:`moment_figure` under a slider that goes from arrival to arrival, and a button that plays.

    Args:
        result: of a short run.
    """
    times = [0.0, *result.updates["arrived_at"].drop_duplicates()]
    return played("arrival", len(times) - 1, len(times) // 2, lambda place: moment_figure(result, times[place]))
