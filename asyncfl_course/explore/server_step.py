"""Explorer of the server learning rate, with recorded curves from large, unsteady rates to small, slow ones.

Nothing is trained here, so the figure appears at once. A table of FedBuff's curves has one row per test, with the
columns workload, client_lr, server_lr, seed, version and accuracy (a fraction), as
``asyncfl_course/results/04_servers_step.csv``, which the lesson uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from asyncfl_course.explore.controls import Explorer
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.plots import ACCENT, NEUTRAL, colour, title, use_style

LAST_SCORES, LAST_TESTS = 5, 20
"""Number of last tests whose mean is a score, and number of last tests over which swing is measured."""
SHADE = colour("fedbuff")


def swing(accuracy: Sequence[float], last: int = LAST_TESTS) -> float:
    """Return a curve's mean absolute difference between consecutive tests, over the last few tests, in its own unit.

    Raises:
        ConfigError: there are fewer than two tests.
    """
    tests = np.asarray(accuracy, dtype=float)[-last:]
    if len(tests) < 2:
        raise ConfigError(f"accuracy: swing needs two tests or more, got {len(tests)}")
    return float(np.abs(np.diff(tests)).mean())


def step_summary(curves: pd.DataFrame) -> pd.DataFrame:
    """Return each run's score, which is the mean of its last five tests, and the :func:`swing` of its curve.

    There is one row per workload, client rate, server rate and seed; both are in percent.
    """
    runs = curves.sort_values("version").groupby(["workload", "client_lr", "server_lr", "seed"])["accuracy"]
    both = {"score": runs.apply(lambda tests: 100 * tests.iloc[-LAST_SCORES:].mean())}
    both["swing"] = runs.apply(lambda tests: 100 * swing(tests))
    return pd.DataFrame(both).reset_index()


def server_step_figure(
    curves: pd.DataFrame,
    server_lr: float = 1.0,
    client_lr: float | None = None,
    *,
    workload: str | None = None,
    levels: Mapping[str, float] | None = None,
) -> Figure:
    """Draw FedBuff's recorded curves at one server learning rate, and its final scores at every rate.

    Args:
        curves: a table of curves.
        server_lr: the server rate η to show; one of those recorded.
        client_lr: the client rate; by default the best recorded one at that server rate.
        workload: the workload; by default the table's first.
        levels: other methods, or variants such as ``fedecho-tuned`` -> their accuracy on this workload as a fraction,
            drawn as a line.

    Returns:
        The figure; its axes show the curves of all seeds over versions, and the mean score over the server rates.

    Raises:
        ConfigError: nothing is recorded at these rates or for this workload.
    """
    summary = step_summary(curves)
    workload = curves["workload"].iloc[0] if workload is None else workload
    own = _chosen(summary, "workload", workload)
    at_rate = _chosen(own, "server_lr", server_lr)
    if client_lr is None:
        client_lr = at_rate.groupby("client_lr")["score"].mean().idxmax()
    here = _chosen(at_rate, "client_lr", client_lr)
    same = (curves["workload"] == workload) & (curves["server_lr"] == server_lr) & (curves["client_lr"] == client_lr)
    use_style()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", width_ratios=(3, 2))
    _draw_curves(curves[same], left)
    score, zigzag = here["score"].mean(), here["swing"].mean()
    left.set_title(f"server rate {server_lr:g}, client rate {client_lr:g}: {score:.1f}%, swing {zigzag:.1f} points")
    _draw_scores(own, server_lr, client_lr, right)
    _draw_levels(levels or {}, right)
    right.set_title(f"{workload}, one line per client rate")
    right.set_ylabel("score (%)")
    plt.close(figure)  # a notebook shows what the call returns, once
    return figure


def _chosen(table: pd.DataFrame, column: str, value: float | str) -> pd.DataFrame:
    found = table[table[column] == value]
    if found.empty:
        allowed = ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in table[column].unique())
        raise ConfigError(f"{column}: nothing is recorded at {value!r}; there are {allowed}")
    return found


def _draw_curves(curves: pd.DataFrame, axes: Axes) -> None:
    """Draw one line per seed, with the first seed's emphasised."""
    for index, (_, one) in enumerate(curves.groupby("seed")):
        look = {"linewidth": 2, "zorder": 3} if not index else {"linewidth": 1, "alpha": 0.4}
        axes.plot(one["version"], 100 * one["accuracy"], color=SHADE, **look)
    axes.set(xlabel="server version", ylabel="test accuracy (%)", ylim=(0, 100), xlim=(0, curves["version"].max()))


def _draw_scores(own: pd.DataFrame, server_lr: float, client_lr: float, axes: Axes) -> None:
    means = own.pivot_table(index="server_lr", columns="client_lr", values="score")
    for rate in means:
        chosen = rate == client_lr
        look = {"color": SHADE, "linewidth": 2, "zorder": 3} if chosen else {"color": NEUTRAL, "alpha": 0.5}
        axes.plot(means.index, means[rate], "o-", markersize=4, **look)
    axes.plot(server_lr, means.loc[server_lr, client_lr], "o", markersize=11, color=ACCENT, zorder=4)
    axes.set(xscale="log", xlabel="server rate η", ylim=(0, 100), xticks=means.index)
    axes.set_xticks(means.index, [f"{rate:g}" for rate in means.index])
    axes.minorticks_off()


def _draw_levels(levels: Mapping[str, float], axes: Axes) -> None:
    for index, (name, level) in enumerate(levels.items()):
        axes.axhline(100 * level, color=colour(name), linestyle="-" if index else "--", linewidth=1.5,
                     label=f"{title(name)} {100 * level:.1f}%")  # fmt: skip
    if levels:
        axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16))


def explore_server_step(curves: pd.DataFrame, levels: Mapping[str, Mapping[str, float]] | None = None) -> Explorer:
    """Return :func:`server_step_figure` with controls for workload, server rate and client rate.

    Args:
        curves: a table of curves.
        levels: workload -> other methods -> their accuracy there as a fraction.
    """
    levels = levels or {}
    workloads, rates = list(curves["workload"].unique()), sorted(curves["server_lr"].unique())
    wide = {"description_width": "100px"}
    workload = widgets.Dropdown(options=workloads, description="workload", style=wide)
    server = widgets.SelectionSlider(options=[(f"{rate:g}", rate) for rate in rates], value=rates[-1],
                                     description="server rate", continuous_update=False, style=wide)  # fmt: skip
    client = widgets.Dropdown(options=[("best", None)], description="client rate", style=wide)

    def own_rates(change: object = None) -> None:
        own = sorted(curves.loc[curves["workload"] == workload.value, "client_lr"].unique())
        client.options = [("best", None), *((f"{rate:g}", rate) for rate in own)]

    def draw() -> Figure:
        chosen = {"workload": workload.value, "levels": levels.get(workload.value)}
        return server_step_figure(curves, server.value, client.value, **chosen)

    workload.observe(own_rates, names="value")
    own_rates()
    return Explorer([workload, server, client], draw)
