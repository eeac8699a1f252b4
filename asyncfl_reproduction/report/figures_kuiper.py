"""Figures of KUIPER that compare methods; the others are in ``figures_kuiper_parts.py``.

The printed figures have no values, so their settings are those of our assumed grid.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from asyncfl_lite import plots
from asyncfl_reproduction.claims.kuiper import (
    BIASES,
    BURSTS,
    COUNTS,
    FEDERATION,
    IMAGES,
    METHODS,
    PANELS,
    SHARE_OF_FINAL,
    TEXTS,
    alone,
    cell,
    of_burst,
    time_of_round,
)
from asyncfl_reproduction.measure.kuiper import five_clients
from asyncfl_reproduction.report.figures import PaperFigure, draw_bars, draw_lines, finish, panels
from asyncfl_reproduction.report.recorded import Recorded

BIAS = "non-IID bias"
THREE = METHODS[:3]


def by_bias_of(folder: str, methods: tuple[str, ...] = METHODS) -> dict[str, dict[float, str]]:
    """Return the names of KUIPER's cells in one folder, by method and bias."""
    return {method: {float(bias): cell(folder, f"bias{bias}", method) for bias in BIASES} for method in methods}


def times(recorded: Recorded, cells: dict[str, str]) -> dict[str, pd.Series | None]:
    """Return, by method, the times to reach 87% of the lowest mean final accuracy among the methods."""
    m = recorded.measured
    finals = [values.mean() for name in cells.values() if (values := m.values(name)) is not None]
    goal = SHARE_OF_FINAL * min(finals, default=0)
    return {method: m.times_to(name, goal) for method, name in cells.items()}


def timeline(recorded: Recorded) -> Figure:
    """Draw KUIPER's Fig. 1: a schedule of five clients in bursts of three on the paper's boards, without training."""
    planned = five_clients()
    figure, (axes,) = panels(1, height=2.8)
    ends = planned.updates.groupby("version")["arrived_at"].max()
    plots.plot_gantt(planned.updates, until=float(ends.max()), in_flight=planned.in_flight, unit="s", axes=axes)
    for time in ends:
        axes.axvline(time, color="black", linestyle="--", linewidth=0.8)
    return finish(figure, {})


def against_alone(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 2: accuracy by bias of KUIPER and of clients that train alone."""
    shown = {
        f"{clients} devices": {
            name: {float(bias): alone(clients, bias)[index] for bias in BIASES}
            for index, name in enumerate(("kuiper", "alone"))
        }
        for clients in FEDERATION
    }
    return draw_lines(recorded, shown, xlabel=BIAS)


def by_bias(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 3: accuracy of all methods by bias."""
    titles = ("(a) HMDB51, 4 devices", "(b) HMDB51, 12 devices", "(c) UCF101, 4 devices")
    return draw_lines(recorded, dict(zip(titles, map(by_bias_of, PANELS), strict=True)), xlabel=BIAS)


def by_clients(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 4: accuracy by number of clients."""
    shown = {
        f"({panel}) bias {bias}": {
            m: {float(n): cell("fig4", f"bias{bias}-clients{n}", m) for n in COUNTS} for m in THREE
        }
        for panel, bias in (("a", "0"), ("b", "0.5"))
    }
    slices = {float(n): cell("fig4c", f"clients{n}", "kuiper") for n in (12, 20, 30, 40)}
    slices[50.0] = cell("fig4", "bias0-clients50", "kuiper")
    all_data = shown["(a) bias 0"]["kuiper"]
    shown["(c) data fixed, or growing"] = {"kuiper-all data": all_data, "kuiper-a slice for each client": slices}
    return draw_lines(recorded, shown, xlabel="clients", log=True)


def other_tasks(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 5 for images: accuracy by number of clients on other tasks."""
    shown = {
        task: {m: {float(n): cell("fig5", f"{task}-clients{n}", m) for n in counts} for m in METHODS}
        for task, counts in IMAGES.items()
    }
    return draw_lines(recorded, shown, xlabel="clients", log=True, sharey=False)


def other_text(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 5(d): perplexity of next-character prediction by number of clients."""
    shown = {
        task: {m: {float(n): cell("fig5", f"{task}-clients{n}", m) for n in counts} for m in METHODS}
        for task, counts in TEXTS.items()
    }
    return draw_lines(recorded, shown, xlabel="clients", log=True, sharey=False, ylabel="test perplexity",
                      value=lambda recorded, name: recorded.measured.values(name, "final_perplexity"))  # fmt: skip


def _bursts(method: str) -> dict[float, str]:
    sizes = (*BURSTS, "7") if method == "fedbuff" else BURSTS
    return {float(size): of_burst(size, method) for size in sorted(sizes, key=int)}


def burst_accuracy(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 6(a): each method's accuracy by burst size."""
    return draw_lines(recorded, {"": {method: _bursts(method) for method in THREE}}, xlabel="burst size K")


def burst_times(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 6(b): virtual time to target, with each method at its own burst size."""
    cells = {"kuiper-K = 4": of_burst("4", "kuiper"), "oort-K = 6": of_burst("6", "oort"),
             "fedbuff-K = 7": of_burst("7", "fedbuff")}  # fmt: skip
    return draw_bars({"": times(recorded, cells)}, ylabel="virtual time to target, s")


def burst_rounds(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 6(c): virtual time per version by burst size."""
    return draw_lines(recorded, {"": {method: _bursts(method) for method in THREE}}, xlabel="burst size K",
                      ylabel="virtual time per version, s",
                      value=lambda recorded, name: time_of_round(recorded.measured, name))  # fmt: skip


def ucf_accuracy(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 8(a): accuracy on UCF101 with 12 devices, by bias."""
    return draw_lines(recorded, {"UCF101, 12 devices": by_bias_of("fig8")}, xlabel=BIAS)


def ucf_times(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 8(b): virtual time to target on UCF101, at two biases."""
    shown = {
        f"bias {bias}": times(recorded, {m: cell("fig8", f"bias{bias}", m) for m in METHODS}) for bias in ("0", "0.8")
    }
    return draw_bars(shown, ylabel="virtual time to target, s")


def clients_and_bias(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 10: accuracy by bias and number of clients; the cells at bias 0.5 are Fig. 5's."""
    shown = {
        task: {
            f"kuiper-{count} clients": {
                float(bias): cell("fig5", f"{task}-clients{count}", "kuiper") if bias == "0.5"
                else cell("fig10", f"{task}-clients{count}", f"bias{bias}")
                for bias in BIASES
            }
            for count in counts
        }
        for task, counts in IMAGES.items()
    }  # fmt: skip
    return draw_lines(recorded, shown, xlabel=BIAS, sharey=False)


FIGURES = [
    PaperFigure("KUIPER", "Fig. 1", "Five clients in bursts of three, simulated without training with the boards' "
                "seconds (ours; the paper's is a sketch). Dashed lines are aggregations: only clients in a burst "
                "get the new model there.", timeline),
    PaperFigure("KUIPER", "Fig. 2", "KUIPER against clients that train alone, by non-IID bias. In the paper the gap "
                "grows with bias.", against_alone),
    PaperFigure("KUIPER", "Fig. 3", "The main comparison. In the paper KUIPER is ahead at every bias, and most at 1.",
                by_bias),
    PaperFigure("KUIPER", "Fig. 4", "Accuracy by number of clients with K = 10. (a, b): all data are divided among "
                "more clients. (c): KUIPER with all data divided, or with one of 50 slices per client.", by_clients),
    PaperFigure("KUIPER", "Fig. 5", "Images, up to 1,000 clients; the paper does not print models and settings.",
                other_tasks),
    PaperFigure("KUIPER", "Fig. 5(d)", "Next-character prediction: perplexity; lower is better.", other_text),
    PaperFigure("KUIPER", "Fig. 6(a)", "Accuracy by burst size at bias 0.8 (ours).", burst_accuracy),
    PaperFigure("KUIPER", "Fig. 6(b)", "Times to target. Our target is 87% of the lowest mean final accuracy of the "
                "compared methods; the paper's target, 40%, is the same share of its best.", burst_times),
    PaperFigure("KUIPER", "Fig. 6(c)", "Virtual time per version by burst size: Oort waits for its slowest client.",
                burst_rounds),
    PaperFigure("KUIPER", "Fig. 8(a)", "Accuracy on 12 devices with UCF101's durations.", ucf_accuracy),
    PaperFigure("KUIPER", "Fig. 8(b)", "Times to target in the same runs. In the paper Oort is slower than FedBuff "
                "at bias 0 and faster at 0.8.", ucf_times),
    PaperFigure("KUIPER", "Fig. 10", "KUIPER by bias and number of clients.", clients_and_bias),
]  # fmt: skip
