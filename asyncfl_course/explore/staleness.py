"""The staleness laboratory: measured and predicted staleness for a chosen concurrency, buffer and delay law.

It needs no training: delays do not depend on weights, so the clock runs alone.

The mean staleness of a long run is predicted for every policy. Each version makes every job in flight one version
older, so the mean staleness is the mean number of jobs in flight when a version is made, divided by the number of
updates per version. This is Little's law (1961) on a clock of versions.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import brentq

from asyncfl_course.explore.controls import Explorer
from asyncfl_lite.base.errors import ConfigError, how_many
from asyncfl_lite.base.streams import stream
from asyncfl_lite.plots import ACCENT, NEUTRAL, plot_staleness, use_style
from asyncfl_lite.simulator.clock_only import ClockOnly, VersionCounter
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.jobs import Schedule, who_did_what
from asyncfl_lite.simulator.scheduling import SCHEDULING

READY_LAWS = tuple(
    name for name in DELAYS if not any(field.is_required() for field in DELAYS.get(name).model_fields.values())
)
"""Delay laws without required settings."""


def run_clock(
    law: str = "fedecho_large",
    *,
    clients: int = 50,
    concurrency: int = 25,
    buffer_size: int = 5,
    scheduling: str = "before_agg",
    versions: int | None = 500,
    horizon: float | None = None,
    seed: int = 0,
    **settings: Any,
) -> Schedule:
    """Simulate the schedule of jobs without data or training, as if all clients had the same number of samples.

    Args:
        law: name of the delay law.
        clients: number of clients N.
        concurrency: number of clients that train at the same time, M_c.
        buffer_size: number of updates that make a version, M.
        scheduling: name of the scheduling policy.
        versions: stop at this version.
        horizon: stop at this virtual time, in the law's unit; ``versions`` or ``horizon`` must be given.
        seed: seed of the random delays and client choices.
        settings: the delay law's own settings.

    Raises:
        ConfigError: if there is no such law, setting or policy.
        SimulationError: if there are fewer clients than ``concurrency``, or nothing ends the run.
    """
    sizes = np.ones(clients, dtype=np.int64)
    delays = DELAYS.get(law)(**settings).prepare(sizes, stream(seed, "delays setup"))
    policy = SCHEDULING.get(scheduling)(concurrency, buffer_size)
    clock = ClockOnly(
        VersionCounter(buffer_size), policy, delays, range(clients), seed=seed, rounds=versions, horizon=horizon
    )
    clock.run_alone()
    return who_did_what(clock, [np.zeros(1)] * clients)


def predicted_staleness(scheduling: str, concurrency: int, buffer_size: int) -> float:
    """Return the mean staleness of a long run, from the jobs in flight at a version and the updates per version.

    With A = ``concurrency`` and M = ``buffer_size``, A jobs are in flight when a version is made under
    ``before_agg``, A - 1 under ``after_agg``, and A - M under ``burst``. Under ``rounds`` only the jobs are in flight
    that a version in the middle of a round leaves behind. Under ``refill`` there are between A - 1 and A - 2 + ⌊A/2⌋
    jobs, counted over one cycle. Delays do not matter, unless a job takes no time at all.

    Raises:
        ConfigError: for another policy.
    """
    jobs, size = concurrency, buffer_size
    if scheduling in ("before_agg", "after_agg"):
        return (jobs - (scheduling == "after_agg")) / size
    if scheduling == "burst":
        return max(jobs - size, 0) / size
    if scheduling == "rounds":
        return sum(range(jobs - size, 0, -size)) / jobs
    if scheduling == "refill":
        batch = max(1, jobs // 2)  # arrival n leaves jobs - 1, plus what is left of the batch that came in last
        left = [jobs - 1 + (1 - jobs - arrival) % batch for arrival in range(size, size * batch + 1, size)]
        return sum(left) / batch / size
    allowed = "before_agg, after_agg, burst, rounds, refill"
    raise ConfigError(f"scheduling: no prediction for {scheduling!r}; allowed: {allowed}")


def report_rates(durations: np.ndarray, in_flight: int) -> np.ndarray:
    """Return how often each client reports if every arrival starts one job at a uniformly drawn idle client.

    Each idle client is called at the same rate ν. Client i then trains for d_i and is idle for 1 / ν on average. So it
    reports ν / (1 + ν d_i) times per unit of time, and holds the share ν d_i / (1 + ν d_i) of a slot. The shares add up
    to A, which determines ν. Clients are assumed to be independent, which is wrong if few of them are in flight.

    Args:
        durations: mean durations d of the clients' jobs, ``(N,)``, above 0.
        in_flight: number of jobs in flight A, below N.

    Returns:
        Reports per unit of time, ``(N,)`` float64.

    Raises:
        ConfigError: unless A is above 0 and below N.

    >>> report_rates(np.array([1.0, 1.0, 8.0]), 2).round(3).tolist()
    [0.547, 0.547, 0.113]
    """
    if not 0 < in_flight < len(durations):
        raise ConfigError(f"in_flight: must be above 0 and below the number of clients, {len(durations)}")

    def too_many(rate: float) -> float:
        return float((rate * durations / (1 + rate * durations)).sum() - in_flight)

    rate = brentq(too_many, 1e-9, 1e9)
    return rate / (1 + rate * durations)


def jobs_that_age(planned: Schedule) -> np.ndarray:
    """Return the number of jobs in flight that each new version makes one version older, ``(T,)`` int64.

    A job that started from version s and arrived with staleness τ was in flight when versions s + 1 to s + τ were made.
    A job that is in flight at the end was in flight when every version after s was made. Jobs that were called off are
    left out.
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
    scheduling: str = "before_agg",
    **more: Any,
) -> Figure:
    """Draw a histogram of updates' staleness, and running means of staleness with the predicted value.

    Args:
        law, clients, concurrency, buffer_size, scheduling, more: as in :func:`run_clock`.

    Returns:
        The figure; its axes show the histogram of staleness on arrival, by category of client if the law has
        categories, and the running mean with and without the ages of the jobs still in flight.
    """
    shape = {"clients": clients, "concurrency": concurrency, "buffer_size": buffer_size, "scheduling": scheduling}
    planned = run_clock(law, **shape, **more)
    updates, predicted = planned.updates, predicted_staleness(scheduling, concurrency, buffer_size)
    if not len(updates) or not updates["version"].max():
        raise ConfigError(f"buffer_size: a buffer of {buffer_size} never fills with {concurrency} in flight")
    speed = updates["client"].map(planned.clients["category"])
    use_style()
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 4.2), layout="constrained")
    plot_staleness(updates, expected=predicted, by=speed if speed.any() else None, axes=left)
    left.set_ylim(top=4 * left.get_ylim()[1])  # room for the legend
    left.set_title(f"{law}, {scheduling}:\nconcurrency {concurrency} of {clients}, M = {buffer_size}")
    _draw_running_mean(planned, predicted, right)
    plt.close(figure)  # a notebook shows what the call returns, once
    return figure


def _draw_running_mean(planned: Schedule, predicted: float, axes: Axes) -> None:
    updates = planned.updates
    total, made = updates["staleness"].cumsum(), updates["version"].diff() != 0
    made.iloc[0] = updates["version"].iloc[0] > 0
    count, version = np.flatnonzero(made) + 1, updates["version"][made]
    axes.plot(version, np.cumsum(jobs_that_age(planned)) / count, color=NEUTRAL, label="with those in flight")
    axes.plot(version, total[made] / count, color=ACCENT, linewidth=2, label="updates that arrived")
    axes.axhline(predicted, color="black", linestyle="--", label=f"predicted {predicted:.2f}")
    mean = updates["staleness"].mean()
    axes.set(xlabel="server version", ylabel="mean staleness so far", ylim=(0, max(1.3 * predicted, 1.1 * mean, 0.1)))
    axes.set_title(
        f"mean {mean:.2f}, predicted {predicted:.2f};\n{how_many(len(planned.in_flight), 'job')} in flight at the end"
    )
    axes.legend(loc="lower right")


def explore_staleness() -> Explorer:
    """Return :func:`staleness_figure` with controls for its settings."""
    law = widgets.Dropdown(options=READY_LAWS, value="fedecho_large", description="delay law")
    policy = widgets.Dropdown(options=tuple(SCHEDULING), value="before_agg", description="scheduling")
    clients = widgets.IntSlider(50, min=2, max=500, description="clients", continuous_update=False)
    busy = widgets.IntSlider(25, min=1, max=200, description="in flight", continuous_update=False)
    buffer = widgets.IntSlider(5, min=1, max=50, description="buffer M", continuous_update=False)
    versions = widgets.SelectionSlider(
        options=(50, 100, 200, 500, 1000, 2000), value=500, description="versions", continuous_update=False
    )
    seed = widgets.IntSlider(0, min=0, max=9, description="seed", continuous_update=False)

    def draw() -> Figure:
        shape = {"clients": clients.value, "concurrency": busy.value, "buffer_size": buffer.value}
        return staleness_figure(law.value, **shape, scheduling=policy.value, versions=versions.value, seed=seed.value)

    return Explorer([law, policy, clients, busy, buffer, versions, seed], draw)
