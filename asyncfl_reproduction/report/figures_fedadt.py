"""Figures of FedADT."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.figure import Figure

from asyncfl_lite import plots
from asyncfl_reproduction.claims.fedadt import (
    ALPHAS,
    ASYNCHRONOUS,
    BASELINES,
    BUFFERED,
    FIG1_TARGET,
    METHODS,
    SHARES,
    SYNCHRONOUS,
    TARGETS,
)
from asyncfl_reproduction.report.figures import (
    PaperFigure,
    draw_bars,
    draw_curves,
    draw_lines,
    finish,
    legend_of,
    panels,
    percent,
)
from asyncfl_reproduction.report.recorded import Recorded
from asyncfl_reproduction.statistics import deviation

NAMES = {"mnist": "MNIST", "fmnist": "FMNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
FAMILIES = {"synchronous": SYNCHRONOUS, "buffered": BUFFERED, "asynchronous": ASYNCHRONOUS}


def _place(data: str, alpha: str, method: str) -> str:
    return f"fedadt/table1/{data}-dir{alpha}/{method}"


def _times(recorded: Recorded) -> Figure | None:
    shown = {
        f"{title}, {100 * TARGETS[data]:g}%": {
            method: recorded.measured.times_to(_place(data, "0.1", method), TARGETS[data]) for method in METHODS
        }
        for data, title in NAMES.items()
    }
    return draw_bars(shown, ylabel="virtual time to target, s")


def _families(recorded: Recorded) -> Figure | None:
    """Draw accuracy and efficiency (best time over time to target) by family of methods."""
    cells = {method: f"fedadt/fig1/{method}" for method in BASELINES}
    m = recorded.measured
    if any(m.values(cell) is None for cell in cells.values()):
        return None
    times = {method: m.times_to(cell, FIG1_TARGET).mean() for method, cell in cells.items()}
    best = min(times.values())
    efficiency = {method: 100 * best / time if np.isfinite(time) else 0.0 for method, time in times.items()}
    figure, (axes,) = panels(1, height=3.4)
    for index, pair in enumerate(FAMILIES.values()):
        accuracy = np.mean([percent(recorded, cells[method]) for method in pair], axis=0)
        axes.bar(index - 0.2, accuracy.mean(), 0.36, yerr=deviation(accuracy), color=plots.NEUTRAL, capsize=3,
                 label="accuracy, %" if index == 0 else None)  # fmt: skip
        axes.bar(index + 0.2, np.mean([efficiency[method] for method in pair]), 0.36, color=plots.ACCENT,
                 label="efficiency, %" if index == 0 else None)  # fmt: skip
    axes.set_xticks(
        range(len(FAMILIES)), [f"{name}\n{' + '.join(map(plots.title, pair))}" for name, pair in FAMILIES.items()]
    )
    axes.grid(False, axis="x")
    return finish(figure, legend_of(axes))


FIGURES = {
    "Fig. 1": PaperFigure(
        "Right half: accuracy and efficiency of three families of methods, two of each. The paper does not say which "
        "two; the choice is ours. The left half is a sketch of Dirichlet 0.2.",
        _families,
    ),
    "Fig. 3": PaperFigure(
        "The pure asynchronous methods at α = 0.1; the dotted line is Table I's target.",
        partial(draw_curves, unit="s", target=lambda title: TARGETS[title.replace("-", "").lower()], shown={
            title: {method: _place(data, "0.1", method) for method in (*ASYNCHRONOUS, "fedadt")}
            for data, title in NAMES.items()
        }),
    ),
    "Table I": PaperFigure("Virtual times to target at α = 0.1 as bars.", _times),
    "Table II": PaperFigure(
        "Final accuracy by Dirichlet α.",
        partial(draw_lines, xlabel="Dirichlet α", log=True, sharey=False, shown={
            title: {method: {float(alpha): _place(data, alpha, method) for alpha in ALPHAS} for method in METHODS}
            for data, title in NAMES.items()
        }),
    ),
    "Table III": PaperFigure(
        "FedADT with an adaptive or a fixed weight, over versions. The table reads the curves at T_g, where runs with "
        "a fixed weight end; the adaptive run continues.",
        partial(draw_curves, over="version", shown={
            title: {
                "fedadt-adaptive": _place(data, "0.1", "fedadt"),
                "fedadt-fixed 0.2": f"fedadt/table3/{data}-dir0.1/fixed-0.2",
                "fedadt-fixed 0.6": f"fedadt/table3/{data}-dir0.1/fixed-0.6",
            }
            for data, title in NAMES.items()
        }),
    ),
    "Table IV": PaperFigure(
        "Accuracy by the share of clients in flight.",
        partial(draw_lines, xlabel="clients in flight, %", shown={"": {
            method: {float(share): f"fedadt/table4/concurrency-{share}/{method}" for share in SHARES}
            for method in ("fedasync", "fedfa", "fedadt")
        }}),
    ),
}  # fmt: skip
