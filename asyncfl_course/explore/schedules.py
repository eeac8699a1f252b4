"""Explorer of weight schedules: the effect of staleness on an update's weight, and the weights that occur in a run.

FedRevive's β and AFL-DW's 1 - β (FedRevive §3.1, Fig. 11), FedAsync's α s(τ) (Xie et al. 2019, §5), KUIPER's β_t
(Eq. 3), FedADT's β, and its α̃, which follows the version (Eq. 8). The methods compute the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, get_args

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from asyncfl_course.explore.controls import Explorer
from asyncfl_course.explore.staleness import READY_LAWS, run_clock
from asyncfl_lite.algorithms import Update, make_algorithm
from asyncfl_lite.algorithms.afl_dw import AFLDW
from asyncfl_lite.algorithms.fedasync import FedAsync
from asyncfl_lite.algorithms.fedrevive import MultiTeacher
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.plots import ACCENT, NEUTRAL, shade, title, use_style

WEIGHT_MEANINGS = {
    "fedrevive": "β, weight of the distilled part",
    "dd_fedrevive": "β, weight of the distilled part",
    "afl_dw": "1 - β",
    "fedbuff": "s(τ)",
    "fedasync": "α s(τ)",
    "kuiper": r"$\beta_t$",
    "fedadt": "β",
}
"""Method that can be drawn -> the name that its paper gives the weight by staleness."""


def staleness_weight(method: str, **settings: Any) -> Callable[[int], float]:
    """Return a function that maps staleness τ to the weight that a method gives to an update.

    For FedRevive and DD-FedRevive it is β, the weight of the distilled part; the update itself has the weight 1 - β.
    For any other method it is measured as the distance that the model moves, at server rate 1, when one update of
    length 1 arrives.

    Args:
        method: one of :data:`WEIGHT_MEANINGS`, with a buffer of one; ``fedasync-hinge`` for a variant of ``fedasync``.
        settings: the method's own settings.

    Raises:
        ConfigError: for another method, or a setting that it does not have.
    """
    name = method.split("-")[0]
    if name not in WEIGHT_MEANINGS:
        raise ConfigError(f"method: must be one of {', '.join(WEIGHT_MEANINGS)}, got {name!r}")
    if name == "fedadt":
        settings = {**settings, "kd_lr": 0.0}  # its distillation, which comes before the weighting, would need data
    server = make_algorithm(name, **settings)
    if isinstance(server, MultiTeacher):
        return server.beta

    def moved(tau: int) -> float:
        server.start(torch.zeros(1, dtype=torch.float64))
        unit = torch.ones_like(server.x)
        server.on_receive(Update(0, unit, 0, start=torch.zeros_like(unit), received_accuracy=0.0, staleness=tau))
        return float(server.x)

    return moved


def schedule_figure(updates: pd.DataFrame, lines: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw updates' weights against staleness, above a histogram of the updates' staleness.

    A line is thick over the staleness of the middle 90% of the updates. Other panels show the weights of those updates
    (5% to 95%) with their mean, and FedADT's α̃ up to the run's last version if FedADT is among the methods.

    Args:
        updates: columns ``staleness`` and ``version``, of a result or of :func:`~asyncfl_course.explore.run_clock`.
        lines: method, or variant such as ``fedasync-hinge``, -> its settings.

    Raises:
        ConfigError: if a method or setting does not exist.
    """
    tau = updates["staleness"].to_numpy()
    use_style()
    figure, grid = plt.subplot_mosaic(
        [["weights", "used"], ["staleness", "version"]],
        figsize=(8.4, 5.4), height_ratios=(3, 2), width_ratios=(5, 4), layout="constrained",
    )  # fmt: skip
    _draw_weights(tau, lines, grid["weights"], grid["used"])
    _draw_staleness(tau, grid["staleness"])
    grid["weights"].set_xlim(grid["staleness"].get_xlim())
    _draw_by_version(lines, int(updates["version"].max()), grid["version"])
    plt.close(figure)  # a notebook shows what the call returns, once
    return figure


def _draw_weights(tau: np.ndarray, lines: Mapping[str, Mapping[str, Any]], left: Axes, right: Axes) -> None:
    low, high = np.quantile(tau, [0.05, 0.95], method="nearest")
    places = np.arange(int(tau.max()) + 1)
    families, labels = [], []
    for row, (method, settings) in enumerate(lines.items()):
        name = method.split("-")[0]
        colour = shade(method, families.count(name))
        families.append(name)
        weights = np.array([*map(staleness_weight(method, **settings), places.tolist())])
        left.plot(places, weights, color=colour, linewidth=1)
        middle = (places >= low) & (places <= high)
        left.plot(places[middle], weights[middle], color=colour, linewidth=3.5)
        used = weights[tau]
        right.plot(np.quantile(used, [0.05, 0.95]), [row, row], color=colour, linewidth=3.5)
        right.plot(used.mean(), row, "o", color=colour)
        where = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
        right.annotate(f"{used.mean():.2f}", (np.quantile(used, 0.95), row), **where)
        labels.append(f"{title(method)}: {WEIGHT_MEANINGS[name].split(',')[0]}")
    left.set(ylabel="weight (no unit)", ylim=(-0.03, 1.05), title="thick: the middle 90% of updates")
    right.set(
        yticks=range(len(labels)), yticklabels=labels, ylim=(len(labels) - 0.4, -0.7),
        xlabel="weight (no unit)", xlim=(-0.03, 1.18), title="in use: 5% to 95%, and mean",
    )  # fmt: skip


def _draw_staleness(tau: np.ndarray, axes: Axes) -> None:
    width = int(tau.max()) // 61 + 1  # whole versions, so that every bar covers equally many
    axes.hist(tau, bins=np.arange(0, tau.max() + width + 1, width) - 0.5, color=NEUTRAL, alpha=0.75)
    axes.axvline(tau.mean(), color=ACCENT, linewidth=2, label=f"mean {tau.mean():.1f}")
    axes.set(
        xlabel="staleness τ on arrival (versions)", ylabel="updates", xlim=(-0.5, max(1.0, np.quantile(tau, 0.995)))
    )
    axes.legend()


def _draw_by_version(lines: Mapping[str, Mapping[str, Any]], last: int, axes: Axes) -> None:
    ours = [settings for method, settings in lines.items() if method.split("-")[0] == "fedadt"]
    if not ours:
        axes.set_axis_off()
        return
    for number, settings in enumerate(ours):
        server = make_algorithm("fedadt", **settings)
        weights = [server.kl_weight(version) for version in range(last + 1)]
        axes.plot(weights, color=shade("fedadt", number), linewidth=2)
        axes.annotate(f"{weights[-1]:.2f}", (last, weights[-1]), xytext=(0, 6), textcoords="offset points", ha="right")
    axes.set(xlabel="server version", ylabel="α̃, KL's share", xlim=(0, max(1, last)), ylim=(0, 1.05))
    axes.set_title("α̃ follows the version, not τ")


@lru_cache(maxsize=8)
def _updates(law: str, concurrency: int) -> pd.DataFrame:
    """Return 1,000 simulated updates that each make a version, with a tenth of the clients training at a time.

    They come after the first jobs, which begin together and so are fresher than all later ones.
    """
    shape = {"clients": 10 * concurrency, "concurrency": concurrency, "buffer_size": 1, "scheduling": "after_agg"}
    return run_clock(law, **shape, versions=1000 + 6 * concurrency).updates[6 * concurrency :]


def explore_schedules() -> Explorer:
    """Return :func:`schedule_figure` with controls for the delay law, jobs in flight, and the forms of β and s(τ)."""
    law = widgets.Dropdown(options=READY_LAWS, value="fedrevive", description="delay law")
    busy = widgets.IntSlider(100, min=2, max=200, description="in flight", continuous_update=False)
    families = get_args(AFLDW.Settings.model_fields["beta_family"].annotation)
    family = widgets.Dropdown(options=families, description="β family")
    half = widgets.IntSlider(75, min=1, max=200, description="s_max", continuous_update=False)
    constant = widgets.FloatSlider(0.5, min=0, max=1, step=0.05, description="constant β", continuous_update=False)
    s = widgets.Dropdown(
        options=get_args(FedAsync.Settings.model_fields["staleness_function"].annotation), description="s(τ)"
    )
    power = widgets.FloatSlider(0.5, min=0, max=2, step=0.1, description="exponent a", continuous_update=False)

    def draw() -> Figure:
        half.disabled, constant.disabled = family.value != "cosine", family.value != "constant"
        beta = {"beta_family": family.value, "s_max": half.value, "beta_constant": round(constant.value, 2)}
        poly = {"poly_a": round(power.value, 1)}  # a slider adds its steps up: 0.30000000000000004
        lines = {"fedrevive": beta, "afl_dw": beta, "fedasync": {"staleness_function": s.value, **poly}}
        return schedule_figure(_updates(law.value, busy.value), {**lines, "kuiper": poly, "fedadt": {}})

    return Explorer([law, busy, family, half, constant, s, power], draw)
