"""The head-to-head browser: recorded runs of the methods in one workload and delay regime, every seed shown."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from asyncfl_lite.base.errors import ConfigError, ResultError, unknown_name
from asyncfl_lite.base.libraries import needs
from asyncfl_lite.explore.controls import under_controls
from asyncfl_lite.plots import NEUTRAL, colour, plot_curves, time_label, title, use_style
from asyncfl_lite.reproduction.claims.across import FIVE, OTHERS, target_of
from asyncfl_lite.reproduction.claims.findings import deviation, mean_text, time_text
from asyncfl_lite.reproduction.report import Recorded
from asyncfl_lite.reproduction.report.head_to_head import places

with needs("notebooks", "controls"):
    import ipywidgets as widgets

TIME = "time to target"
ACCURACIES = {
    "final accuracy": "final_accuracy",
    "mean of last five": "last5_accuracy",
    "best": "best_accuracy",
}
"""Measures that are numbers of a run's summary, highest best; "best" is the highest of the run's evaluations."""
MEASURES = (*ACCURACIES, TIME)
REFERENCE = "fedbuff"


def seeds_of(
    recorded: Recorded, workload: str, regime: str, measure: str = MEASURES[0], methods: Sequence[str] | None = None
) -> dict[str, np.ndarray]:
    """Return the recorded numbers of a place, the best method first.

    Args:
        recorded: a tier's results.
        workload: such as ``digits``.
        regime: the delay regime, such as ``large``.
        measure: one of :data:`MEASURES`. The target is 85% of FedBuff's mean final accuracy there, as in X-6.
        methods: which; all that were run there by default.

    Returns:
        Method -> ``(seeds,)`` accuracies, or virtual times, infinite where the target was not reached.

    Raises:
        ConfigError: if the place, the measure or a method is not there, or no method is asked for.
        ResultError: for times to target where FedBuff was not run.
    """
    there = places(recorded)
    if (place := f"{workload}, {regime}") not in there:
        raise ConfigError(f"workload, regime: must be among {'; '.join(there) or 'none recorded'}, got {place}")
    if measure not in MEASURES:
        raise ConfigError(unknown_name("measure", measure, MEASURES))
    methods = list(there[place]) if methods is None else list(methods)
    if not methods:
        raise ConfigError("methods: must name at least one, got none")
    if unknown := [method for method in methods if method not in there[place]]:
        raise ConfigError(unknown_name("methods", unknown[0], there[place]))
    goal = target(recorded, workload, regime) if measure == TIME else None
    cells = {method: f"head_to_head/{workload}/{regime}/{method}" for method in methods}
    if goal is None:
        found = {m: recorded.measured.values(cell, ACCURACIES[measure]) for m, cell in cells.items()}
        return dict(sorted(found.items(), key=lambda item: -item[1].mean()))
    times = {m: recorded.measured.times_to(cell, goal) for m, cell in cells.items()}
    # Where seeds did not reach it the mean is infinite: those that more seeds reached come first.
    return dict(sorted(times.items(), key=lambda item: (item[1].mean(), np.isinf(item[1]).sum())))


def target(recorded: Recorded, workload: str, regime: str) -> float:
    """Return the accuracy to reach: 85% of FedBuff's mean final accuracy in this place.

    Raises:
        ResultError: if FedBuff was not run there.
    """
    reference = recorded.accuracies(f"head_to_head/{workload}/{regime}/{REFERENCE}")
    if not len(reference):
        raise ResultError(f"{workload}, {regime}: FedBuff was not run there, whose accuracy sets the target")
    return target_of(reference)


def head_to_head_figure(
    recorded: Recorded,
    workload: str = "digits",
    regime: str = "large",
    measure: str = MEASURES[0],
    methods: Sequence[str] | None = None,
) -> Figure:
    """Draw every seed of every method, ordered, beside the accuracy over virtual time.

    Left, one row per method, best on top: one dot per seed, a bar at the mean with one standard deviation, ``×`` at the
    edge for a seed that did not reach the target; the dashed line is FedBuff's mean. Right, means over seeds with the
    range.

    Args:
        recorded: a tier's results.
        workload: such as ``digits``.
        regime: the delay regime, such as ``large``.
        measure: one of :data:`MEASURES`; see :func:`seeds_of`.
        methods: which; all that were run there by default.

    Raises:
        ConfigError: as :func:`seeds_of`.
        ResultError: as :func:`seeds_of`.
    """
    found = seeds_of(recorded, workload, regime, measure, methods)
    cells = {method: f"head_to_head/{workload}/{regime}/{method}" for method in found}
    unit = recorded.cells[next(iter(cells.values()))].config.delay_settings.unit
    use_style()
    height = max(3.4, 1.3 + 0.36 * len(found))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, height), width_ratios=(5, 4), layout="constrained")
    shown = found if measure == TIME else {method: 100 * values for method, values in found.items()}
    _draw_seeds(shown, measure, left)
    curves = {method: recorded.measured.curves[cell] for method, cell in cells.items()}
    plot_curves(curves, unit=unit, axes=right)
    right.get_legend().remove()  # the rows beside it have the same colours
    right.set(title="mean over seeds, lowest to highest", ylim=(0, None))
    if measure == TIME:
        goal = target(recorded, workload, regime)
        right.axhline(goal, color="black", linestyle=":", linewidth=1)
        left.set(xlabel=f"{time_label(unit)} to {100 * goal:g}% accuracy")
    left.set_title(f"{workload}, {regime} delays: {measure}")
    plt.close(figure)  # a notebook shows what the call returns, once
    return figure


def _draw_seeds(found: dict[str, np.ndarray], measure: str, axes: Axes) -> None:
    """Draw one row per method: virtual times, or accuracies in percent."""
    every = np.concatenate(list(found.values()))
    finite = every[np.isfinite(every)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    room = 0.08 * (high - low) or 1.0
    edge, labels = high + 2 * room, []
    for row, (method, values) in enumerate(found.items()):
        reached = values[np.isfinite(values)]
        if len(reached) == len(values):
            look = {"color": colour(method), "capsize": 4, "linewidth": 2}
            axes.errorbar(values.mean(), row, xerr=deviation(values), marker="|", markersize=18, **look)
        axes.plot(reached, np.full(len(reached), row), "o", color=colour(method), alpha=0.55, markeredgecolor="white")
        never = len(values) - len(reached)
        axes.plot(np.full(never, edge), row + 0.16 * (np.arange(never) - (never - 1) / 2), "x", color=colour(method))
        text = time_text(values) if measure == TIME else mean_text(values)
        labels.append(f"{title(method)}\n{text}")
    if REFERENCE in found and np.isfinite(found[REFERENCE]).all():
        axes.axvline(found[REFERENCE].mean(), color=NEUTRAL, linestyle="--", linewidth=1.2, zorder=0)
    axes.set_yticks(range(len(labels)), labels, fontsize=9)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    if len(finite) < len(every):
        axes.set_xlim(None, edge + room)
    axes.set(xlabel=f"{measure}, %")


def explore_head_to_head(recorded: Recorded) -> widgets.VBox:
    """Return :func:`head_to_head_figure` under controls: workload, delay regime, measure, methods.

    Raises:
        ResultError: if no two methods were recorded in one workload and regime.
    """
    there = places(recorded)
    if not there:
        raise ResultError("recorded: must hold two methods in one workload and regime, got none")
    workloads, regimes = (list(dict.fromkeys(place.split(", ")[part] for place in there)) for part in (0, 1))
    ran = [m for m in (*FIVE, *OTHERS) if any(m in methods for methods in there.values())]
    workload = widgets.Dropdown(options=workloads, description="workload")
    regime = widgets.Dropdown(options=regimes, description="delays")
    measure = widgets.Dropdown(options=MEASURES, description="measure")
    methods = widgets.SelectMultiple(
        options=[(title(method), method) for method in ran], value=ran, rows=min(8, len(ran)), description="methods"
    )

    def draw() -> Figure:
        here = there.get(f"{workload.value}, {regime.value}", methods.value)  # one that was not run says so
        chosen = [method for method in methods.value if method in here]
        return head_to_head_figure(recorded, workload.value, regime.value, measure.value, chosen)

    return under_controls([workload, regime, measure, methods], draw)
