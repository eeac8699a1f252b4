"""Figures of FedRevive."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.figure import Figure

from asyncfl_lite import plots
from asyncfl_reproduction.claims.fedrevive import ASYNCHRONOUS, WINDOW, cell, target
from asyncfl_reproduction.measure.fedrevive import FAMILIES, betas, short_run_parts, staleness
from asyncfl_reproduction.report.figures import PaperFigure, draw_bars, draw_curves, finish, legend_of, panels
from asyncfl_reproduction.report.our_numbers import revive_times
from asyncfl_reproduction.report.recorded import Recorded
from asyncfl_reproduction.statistics import deviation

TITLES = {"CIFAR-10": "cifar10", "CIFAR-100": "cifar100", "20NewsGroups": "newsgroups", "FEMNIST": "femnist"}
METHODS = ("fedavg", *ASYNCHRONOUS)
CELLS = {title: {method: cell(data, method) for method in METHODS} for title, data in TITLES.items()}


def _smooth(method: str) -> int:
    return 1 if method == "fedavg" else WINDOW


def _with_targets(recorded: Recorded) -> Figure | None:
    """Draw running averages of accuracy, with the target of Table 1."""
    goals = {title: target(recorded.measured, methods["fedbuff"]) for title, methods in CELLS.items()}
    return draw_curves(recorded, CELLS, window=_smooth, target=goals.get)


def _times(recorded: Recorded) -> Figure | None:
    shown = {title: {m: revive_times(recorded, name) for m, name in cells.items()} for title, cells in CELLS.items()}
    return draw_bars(shown, ylabel="virtual time to target")


def _parts_of_update(recorded: Recorded) -> Figure | None:
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


def _staleness_of(recorded: Recorded, delay: str, title: str) -> Figure:
    figure, (axes,) = panels(1)
    values = staleness(delay)
    axes.hist(values, bins=np.arange(0, np.quantile(values, 0.999) + 10, 10), color=plots.NEUTRAL, alpha=0.8)
    axes.axvline(values.mean(), color=plots.ACCENT, linewidth=2, label=f"mean {values.mean():.1f}")
    late = np.quantile(values, 0.99)
    axes.axvline(late, color="black", linestyle="--", label=f"99th percentile {late:.0f}")
    axes.set(title=title, xlabel="staleness on arrival (versions)", ylabel="updates", xlim=(0, None))
    return finish(figure, legend_of(axes))


def _schedules(recorded: Recorded) -> Figure:
    figure, (axes,) = panels(1)
    tau = np.arange(0, 301)
    for family, style in zip(FAMILIES, ("-", "--", ":", "-."), strict=True):
        label = "1 - cosine, as used" if family == "cosine" else family
        axes.plot(tau, betas(family, int(tau[-1])), linestyle=style, linewidth=2, label=label,
                  color=plots.colour("fedrevive") if family == "cosine" else plots.NEUTRAL)  # fmt: skip
    axes.set(xlabel="staleness τ (versions)", ylabel="β(τ)", xlim=(0, 300), ylim=(-0.02, 1.05))
    return finish(figure, legend_of(axes))


SHIFTED = {
    f"{title}, {how}": {method: cell(f"{TITLES[title]}{ending}", method, group) for method in ASYNCHRONOUS}
    for title in ("CIFAR-10", "20NewsGroups")
    for how, ending, group in (("usual delays", "", "table1"), ("shifted", "-shifted", "figure3"))
}

FIGURES = {
    "Fig. 2": PaperFigure(
        "Running average of five evaluations (FedAvg's are a round apart and left raw) over virtual time, FedAvg cut "
        "at twice the others' end; the dotted line is 85% of FedBuff's best, Table 1's target. In the paper FedRevive "
        "crosses it before FedBuff in every panel.",
        _with_targets,
    ),
    "Table 1": PaperFigure("Table 1's virtual times to target as bars.", _times),
    "Fig. 3": PaperFigure(
        "The shifted delays have round trips that are 8 times as fast, and nothing is tuned again for them: compare "
        "the two panels of a data set. In the paper FedBuff and AFL-DW lose more than the two methods that distil.",
        partial(draw_curves, shown=SHIFTED, window=_smooth),
    ),
    "Fig. 4": PaperFigure(
        "Right half: β that grows with staleness, against a constant β of 0.75 and of 1. At 1, an update's own part "
        "vanishes.",
        partial(draw_curves, window=_smooth, shown={"CIFAR-10": {
            "fedrevive": cell("cifar10", "fedrevive"),
            "fedrevive-β = 0.75": cell("cifar10", "beta-0.75", "figure4"),
            "fedrevive-β = 1": cell("cifar10", "beta-1", "figure4"),
        }}),
    ),
    "Fig. 10": PaperFigure(
        "The effect of one update on test accuracy under the adaptive β, by part; also Fig. 4, left. Measured on ten "
        "short runs at smoke scale, the same at every tier; panels (b) and (c), for constant β, are not measured.",
        _parts_of_update,
    ),
    "Fig. 5": PaperFigure(
        "Runs with estimated class shares against runs with the true ones, which a server cannot know.",
        partial(draw_curves, window=_smooth, shown={
            title: {
                "fedrevive-proxies": cell(data, "fedrevive"),
                "fedrevive-true shares": cell(data, "true-shares", "figure5"),
            }
            for title, data in TITLES.items()
            if data != "newsgroups"
        }),
    ),
    "Fig. 6": PaperFigure(
        "Simulated without training at the paper's 1,000 clients, 100 in flight: 20,000 updates, the first tenth left "
        "out. The mean staleness must be 99.",
        partial(_staleness_of, delay="fedrevive", title="usual delays"),
    ),
    "Fig. 7": PaperFigure(
        "As Fig. 6 under the shifted delays: the same mean, another shape.",
        partial(_staleness_of, delay="fedrevive_shift", title="shifted delays"),
    ),
    "Fig. 8": PaperFigure(
        "Fig. 2 with Dirichlet α = 1. The paper does not list the methods; the laptop tier has the two that its "
        "caption compares.",
        partial(draw_curves, window=_smooth, shown={
            title: {method: cell(f"{data}-dir1", method, "figure8") for method in METHODS}
            for title, data in TITLES.items()
            if data != "femnist"
        }),
    ),
    "Fig. 9": PaperFigure("Fig. 2 without the running average.", partial(draw_curves, shown=CELLS)),
    "Fig. 11": PaperFigure(
        "Candidate schedules β(τ), of the authors' code, as the paper draws them without formulas.", _schedules
    ),
}  # fmt: skip
