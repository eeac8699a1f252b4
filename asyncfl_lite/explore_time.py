"""Virtual time under controls: a staleness laboratory, and a time machine that scrubs through a run.

As in :mod:`~asyncfl_lite.explore`, each explorer is a function that returns a figure, and one that puts ipywidgets
around it. The laboratory needs no training: delays do not depend on weights, so the clock runs alone.

The mean staleness of a long run is predicted for every policy: a version makes each job in flight one version older,
so it is the mean number of jobs in flight when a version is made, over updates a version. That is Little's law (1961)
on a clock of versions (specification §15).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from asyncfl_lite.clock_only import ClockOnly, VersionCounter
from asyncfl_lite.delays import DELAYS
from asyncfl_lite.errors import ConfigError
from asyncfl_lite.explore import under_controls
from asyncfl_lite.history import Schedule, who_did_what
from asyncfl_lite.plots import ACCENT, NEUTRAL, colour, plot_staleness, time_label, use_style
from asyncfl_lite.results import Result
from asyncfl_lite.scheduling import SCHEDULING
from asyncfl_lite.streams import stream

READY_LAWS = tuple(
    name
    for name in DELAYS
    if not any(field.is_required() or place == "folder" for place, field in DELAYS.get(name).model_fields.items())
)
"""Delay laws that need no settings and no files."""


def run_clock(
    law: str = "fedecho_large",
    *,
    clients: int = 50,
    concurrency: int = 25,
    buffer_size: int = 5,
    redispatch: str = "before_agg",
    versions: int | None = 500,
    horizon: float | None = None,
    seed: int = 0,
    **settings: Any,
) -> Schedule:
    """Return who trains when if all clients have as many samples, without data or training.

    Args:
        law: name of the delay law.
        clients: number of clients N.
        concurrency: clients that train at the same time M_c.
        buffer_size: updates that make a version M.
        redispatch: name of the scheduling policy.
        versions: stop at this version.
        horizon: stop at this virtual time, in the law's unit; one of the two must be given.
        seed: names the streams of delays and of client choices.
        settings: the delay law's own.

    Raises:
        ConfigError: if there is no such law, setting or policy.
        SimulationError: if fewer clients than ``concurrency`` are there, or nothing ends the run.
    """
    sizes = np.ones(clients, dtype=np.int64)
    delays = DELAYS.get(law)(**settings).prepare(sizes, stream(seed, "delays setup"))
    policy = SCHEDULING.get(redispatch)(concurrency, buffer_size)
    clock = ClockOnly(
        VersionCounter(buffer_size), policy, delays, range(clients), seed=seed, rounds=versions, horizon=horizon
    )
    clock.run_alone()
    return who_did_what(clock, [np.zeros(1)] * clients)


def predicted_staleness(redispatch: str, concurrency: int, buffer_size: int) -> float:
    """Return the mean staleness of a long run: jobs that age with a version, over updates a version.

    With A = ``concurrency`` and M = ``buffer_size``, A jobs are in flight when a version is made under
    ``before_agg``, A - 1 under ``after_agg``, A - M under ``burst``; under ``rounds`` only those that a version in
    the middle of a round leaves behind, and under ``refill`` between A - 1 and A - 2 + ⌊A/2⌋, counted over one cycle.
    Delays do not matter, unless a job takes no time at all.

    Raises:
        ConfigError: for another policy.
    """
    jobs, size = concurrency, buffer_size
    if redispatch in ("before_agg", "after_agg"):
        return (jobs - (redispatch == "after_agg")) / size
    if redispatch == "burst":
        return max(jobs - size, 0) / size
    if redispatch == "rounds":
        return sum(range(jobs - size, 0, -size)) / jobs
    if redispatch == "refill":
        batch = max(1, jobs // 2)  # arrival n leaves jobs - 1, plus what is left of the batch that came in last
        left = [jobs - 1 + (1 - jobs - arrival) % batch for arrival in range(size, size * batch + 1, size)]
        return sum(left) / batch / size
    allowed = "before_agg, after_agg, burst, rounds, refill"
    raise ConfigError(f"redispatch: no prediction for {redispatch!r}; allowed: {allowed}")


def jobs_that_age(planned: Schedule) -> np.ndarray:
    """Return how many jobs each version made one version older, ``(T,)`` int64.

    A job that started from version s and arrived with staleness τ lived through versions s + 1 to s + τ; one that is
    in flight at the end has lived through all since. Jobs that were called off are left out.
    """
    updates, waiting = planned.updates, planned.in_flight
    waiting = waiting[waiting["called_off_at"].isna()]
    last = int(updates["version"].max()) if len(updates) else 0
    began = np.concatenate([updates["start_version"], waiting["start_version"]]).astype(np.int64)
    ended = np.concatenate([updates["start_version"] + updates["staleness"], np.full(len(waiting), last)])
    change = np.bincount(began, minlength=last + 1) - np.bincount(ended.astype(np.int64), minlength=last + 1)
    return np.cumsum(change)[:last]


def staleness_figure(
    law: str = "fedecho_large",
    *,
    clients: int = 50,
    concurrency: int = 25,
    buffer_size: int = 5,
    redispatch: str = "before_agg",
    versions: int = 500,
    seed: int = 0,
    **settings: Any,
) -> Figure:
    """Draw how stale updates arrive, and how their running mean approaches the prediction.

    Args:
        law, clients, concurrency, buffer_size, redispatch, versions, seed, settings: as :func:`run_clock` takes them.

    Returns:
        The figure; its axes are the histogram of staleness on arrival, by the clients' categories where the law has
        such, and the running mean with and without the ages of the jobs still in flight.

    Raises:
        ConfigError: if there is no such law, setting or policy.
        SimulationError: if fewer clients than ``concurrency`` are there, or no update arrives.
    """
    sizes = {"clients": clients, "concurrency": concurrency, "buffer_size": buffer_size}
    planned = run_clock(law, **sizes, redispatch=redispatch, versions=versions, seed=seed, **settings)
    updates, predicted = planned.updates, predicted_staleness(redispatch, concurrency, buffer_size)
    if not len(updates) or not updates["version"].max():
        raise ConfigError(f"buffer_size: a buffer of {buffer_size} never fills with {concurrency} in flight")
    speed = updates["client"].map(planned.clients["category"])
    use_style()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    plot_staleness(updates, expected=predicted, by=speed if speed.any() else None, axes=left)
    left.set_ylim(top=4 * left.get_ylim()[1])  # room for the legend
    left.set_title(f"{law}, {redispatch}: {concurrency} of {clients} in flight, M = {buffer_size}")
    _draw_running_mean(planned, predicted, right)
    plt.close(figure)  # a notebook shows what the call returns, once
    return figure


def _draw_running_mean(planned: Schedule, predicted: float, axes: Axes) -> None:
    """Draw the mean of what has arrived by each version, and that of all age handed out by then."""
    updates = planned.updates
    total, made = updates["staleness"].cumsum(), updates["version"].diff() != 0
    made.iloc[0] = updates["version"].iloc[0] > 0
    count, version = np.flatnonzero(made) + 1, updates["version"][made]
    axes.plot(version, np.cumsum(jobs_that_age(planned)) / count, color=NEUTRAL, label="with those in flight")
    axes.plot(version, total[made] / count, color=ACCENT, linewidth=2, label="updates that arrived")
    axes.axhline(predicted, color="black", linestyle="--", label=f"predicted {predicted:.2f}")
    mean = updates["staleness"].mean()
    axes.set(xlabel="server version", ylabel="mean staleness so far", ylim=(0, max(1.3 * predicted, 1.1 * mean, 0.1)))
    axes.set_title(f"mean {mean:.2f}, predicted {predicted:.2f}; {len(planned.in_flight)} jobs in flight")
    axes.legend(loc="lower right")


def explore_staleness() -> widgets.VBox:
    """Return :func:`staleness_figure` under controls: delay law, policy, clients, concurrency, buffer, versions."""
    law = widgets.Dropdown(options=READY_LAWS, value="fedecho_large", description="delay law")
    policy = widgets.Dropdown(options=tuple(SCHEDULING), value="before_agg", description="redispatch")
    clients = widgets.IntSlider(50, min=2, max=500, description="clients", continuous_update=False)
    busy = widgets.IntSlider(25, min=1, max=200, description="in flight", continuous_update=False)
    buffer = widgets.IntSlider(5, min=1, max=50, description="buffer M", continuous_update=False)
    versions = widgets.SelectionSlider(
        options=(50, 100, 200, 500, 1000, 2000), value=500, description="versions", continuous_update=False
    )
    seed = widgets.IntSlider(0, min=0, max=9, description="seed", continuous_update=False)

    def draw() -> Figure:
        chosen = {"clients": clients.value, "concurrency": busy.value, "buffer_size": buffer.value, "seed": seed.value}
        return staleness_figure(law.value, redispatch=policy.value, versions=versions.value, **chosen)

    return under_controls([law, policy, clients, busy, buffer, versions, seed], draw)


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
    last = "nobody has reported" if came is None else f"client {came.client} reported, {came.staleness} versions old"
    following = "nobody before the end" if comes is None else f"client {comes.client} at {comes.arrived_at:.2f}"
    return f"{said}\n{last}; next: {following}"


def explore_run(result: Result) -> widgets.VBox:
    """Return :func:`moment_figure` under a slider that goes from arrival to arrival, and a button that plays.

    Args:
        result: of a short run.
    """
    times = [0.0, *result.updates["arrived_at"].drop_duplicates()]
    step = widgets.IntSlider(0, min=0, max=len(times) - 1, description="arrival", continuous_update=False)
    play = widgets.Play(min=0, max=len(times) - 1, interval=700)
    widgets.jslink((play, "value"), (step, "value"))
    return widgets.VBox([play, under_controls([step], lambda: moment_figure(result, times[step.value]))])
