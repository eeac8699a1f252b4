"""Figures of FedRevive."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from asyncfl_lite import plots
from asyncfl_reproduction.claims.fedrevive import ASYNCHRONOUS, WINDOW, cell, target
from asyncfl_reproduction.measure.fedrevive import FAMILIES, betas, short_run_parts, staleness
from asyncfl_reproduction.report.figures import PaperFigure, draw_bars, draw_curves, finish, legend_of, panels
from asyncfl_reproduction.report.metrics import revive_times
from asyncfl_reproduction.report.recorded import Recorded
from asyncfl_reproduction.statistics import deviation

TITLES = {"CIFAR-10": "cifar10", "CIFAR-100": "cifar100", "20NewsGroups": "newsgroups", "FEMNIST": "femnist"}
METHODS = ("fedavg", *ASYNCHRONOUS)


def _window(method: str) -> int:
    return 1 if method == "fedavg" else WINDOW


def smooth_curves(recorded: Recorded) -> Figure | None:
    """Draw FedRevive's Fig. 2: running averages of accuracy, with the target of Table 1."""
    shown = {title: {method: cell(data, method) for method in METHODS} for title, data in TITLES.items()}
    return draw_curves(
        recorded, shown, window=_window, target=lambda title: target(recorded.measured, shown[title]["fedbuff"])
    )


def raw_curves(recorded: Recorded) -> Figure | None:
    """Draw FedRevive's Fig. 9: the accuracies of Fig. 2 without the running average."""
    return draw_curves(recorded, {t: {m: cell(data, m) for m in METHODS} for t, data in TITLES.items()})


def times_to_target(recorded: Recorded) -> Figure | None:
    """Draw FedRevive's Table 1 as bars of the times to target."""
    shown = {t: {m: revive_times(recorded, cell(data, m)) for m in METHODS} for t, data in TITLES.items()}
    return draw_bars(shown, ylabel="virtual time to target")


def shifted_delays(recorded: Recorded) -> Figure | None:
    """Draw FedRevive's Fig. 3: each data set's curves under the usual and the shifted delays."""
    shown = {}
    for title in ("CIFAR-10", "20NewsGroups"):
        shown[f"{title}, usual delays"] = {m: cell(TITLES[title], m) for m in ASYNCHRONOUS}
        shown[f"{title}, shifted"] = {m: cell(f"{TITLES[title]}-shifted", m, "figure3") for m in ASYNCHRONOUS}
    return draw_curves(recorded, shown, window=_window)


def role_of_schedule(recorded: Recorded) -> Figure | None:
    """Draw FedRevive's Fig. 4, right: curves with a β that grows with staleness and with a constant β."""
    lines = {"fedrevive": cell("cifar10", "fedrevive")}
    lines |= {f"fedrevive-β = {beta}": cell("cifar10", f"beta-{beta}", "figure4") for beta in ("0.75", "1")}
    return draw_curves(recorded, {"CIFAR-10": lines}, window=_window)


def parts_of_update(recorded: Recorded) -> Figure | None:
    """Draw FedRevive's Figs. 4 (left) and 10(a): the effect of an update's parts, in short runs at smoke scale."""
    figure, (axes,) = panels(1)
    parts = 100 * short_run_parts()
    labels = {"stale": "stale update alone", "distilled": "distilled update alone", "both": "both"}
    colours = [plots.NEUTRAL, "#e7a9dc", plots.colour("fedrevive")]
    for index, (part, colour) in enumerate(zip(labels, colours, strict=True)):
        axes.bar(index, parts[part].mean(), yerr=deviation(parts[part].to_numpy()), color=colour, capsize=3)
    axes.set_xticks(range(len(labels)), [text.replace(" update", "\nupdate") for text in labels.values()])
    axes.set_ylabel("mean change of test accuracy\nin one update, points")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.grid(False, axis="x")
    return finish(figure, {})


def true_shares(recorded: Recorded) -> Figure | None:
    """Draw FedRevive's Fig. 5: curves of runs that use estimated class shares and of runs that use true ones."""
    shown = {
        title: {
            "fedrevive-proxies": cell(data, "fedrevive"),
            "fedrevive-true shares": cell(data, "true-shares", "figure5"),
        }
        for title, data in TITLES.items()
        if data != "newsgroups"
    }
    return draw_curves(recorded, shown, window=_window)


def staleness_of(delay: str, title: str) -> Figure:
    """Draw FedRevive's Fig. 6 or 7: staleness in a simulation of the paper's 1,000 clients with 100 in flight."""
    figure, (axes,) = panels(1)
    values = staleness(delay)
    axes.hist(values, bins=np.arange(0, np.quantile(values, 0.999) + 10, 10), color=plots.NEUTRAL, alpha=0.8)
    axes.axvline(values.mean(), color=plots.ACCENT, linewidth=2, label=f"mean {values.mean():.1f}")
    late = np.quantile(values, 0.99)
    axes.axvline(late, color="black", linestyle="--", label=f"99th percentile {late:.0f}")
    axes.set(title=title, xlabel="staleness on arrival (versions)", ylabel="updates", xlim=(0, None))
    return finish(figure, legend_of(axes))


def milder(recorded: Recorded) -> Figure | None:
    """Draw FedRevive's Fig. 8: accuracy at Dirichlet α = 1."""
    shown = {
        title: {method: cell(f"{data}-dir1", method, "figure8") for method in METHODS}
        for title, data in TITLES.items()
        if data != "femnist"
    }
    return draw_curves(recorded, shown, window=_window)


def schedules(recorded: Recorded) -> Figure:
    """Draw FedRevive's Fig. 11: the families of schedules in the authors' code, with the code's constants."""
    figure, (axes,) = panels(1)
    tau = np.arange(0, 301)
    for family, style in zip(FAMILIES, ("-", "--", ":", "-."), strict=True):
        label = "1 - cosine, as used" if family == "cosine" else family
        axes.plot(tau, betas(family, int(tau[-1])), linestyle=style, linewidth=2, label=label,
                  color=plots.colour("fedrevive") if family == "cosine" else plots.NEUTRAL)  # fmt: skip
    axes.set(xlabel="staleness τ (versions)", ylabel="β(τ)", xlim=(0, 300), ylim=(-0.02, 1.05))
    return finish(figure, legend_of(axes))


FIGURES = [
    PaperFigure("FedRevive", "Fig. 2", "Running average of five evaluations (FedAvg's are a round apart and left raw) "
                "over virtual time, FedAvg cut at twice the others' end; the dotted line is 85% of FedBuff's best, "
                "Table 1's target. In the paper FedRevive crosses it before FedBuff in every panel.", smooth_curves),
    PaperFigure("FedRevive", "Table 1", "Table 1's virtual times to target as bars.", times_to_target),
    PaperFigure("FedRevive", "Fig. 3", "The shifted delays have round trips that are 8 times as fast, and nothing is "
                "tuned again for them: compare the two panels of a data set. In the paper FedBuff and AFL-DW lose more "
                "than the two methods that distil.", shifted_delays),
    PaperFigure("FedRevive", "Fig. 4", "Right half: β that grows with staleness, against a constant β of 0.75 and of "
                "1. At 1, an update's own part vanishes.", role_of_schedule),
    PaperFigure("FedRevive", "Fig. 10", "The effect of one update on test accuracy under the adaptive β, by part; also "
                "Fig. 4, left. Measured on ten short runs at smoke scale, the same at every tier; panels (b) and "
                "(c), for constant β, are not measured.", parts_of_update),
    PaperFigure("FedRevive", "Fig. 5", "Runs with estimated class shares against runs with the true ones, which a "
                "server cannot know.",
                true_shares),
    PaperFigure("FedRevive", "Fig. 6", "Simulated without training at the paper's 1,000 clients, 100 in flight: 20,000 "
                "updates, the first tenth left out. The mean staleness must be 99.",
                lambda recorded: staleness_of("fedrevive", "usual delays")),
    PaperFigure("FedRevive", "Fig. 7", "As Fig. 6 under the shifted delays: the same mean, another shape.",
                lambda recorded: staleness_of("fedrevive_shift", "shifted delays")),
    PaperFigure("FedRevive", "Fig. 8", "Fig. 2 with Dirichlet α = 1. The paper does not list the methods; the laptop "
                "tier has the two that its caption compares.", milder),
    PaperFigure("FedRevive", "Fig. 9", "Fig. 2 without the running average.", raw_curves),
    PaperFigure("FedRevive", "Fig. 11", "Candidate schedules β(τ), of the authors' code, as the paper draws them "
                "without formulas.", schedules),
]  # fmt: skip
