"""Figures of KUIPER; the printed ones have no values, so their settings are those of our assumed grid."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from asyncfl_lite import plots
from asyncfl_lite.base.errors import how_many
from asyncfl_reproduction.claims.kuiper import (
    BIASES,
    BURSTS,
    COUNTS,
    FEDERATION,
    FRAMES,
    IMAGES,
    METHODS,
    PANELS,
    SHARE_OF_FINAL,
    TEXTS,
    alone,
    cell,
    distilled,
    of_burst,
    time_of_round,
    with_frames,
)
from asyncfl_reproduction.measure.kuiper import five_clients
from asyncfl_reproduction.report.figures import PaperFigure, draw_bars, draw_lines, finish, panels, percent
from asyncfl_reproduction.report.recorded import Recorded

BIAS = "non-IID bias"
THREE = METHODS[:3]


def _by_bias_of(folder: str, methods: tuple[str, ...] = METHODS) -> dict[str, dict[float, str]]:
    """Return the names of KUIPER's cells in one folder, by method and bias."""
    return {method: {float(bias): cell(folder, f"bias{bias}", method) for bias in BIASES} for method in methods}


def _times(recorded: Recorded, cells: dict[str, str]) -> dict[str, pd.Series | None]:
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
    return draw_lines(recorded, dict(zip(titles, map(_by_bias_of, PANELS), strict=True)), xlabel=BIAS)


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
    return draw_bars({"": _times(recorded, cells)}, ylabel="virtual time to target, s")


def burst_rounds(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 6(c): virtual time per version by burst size."""
    return draw_lines(recorded, {"": {method: _bursts(method) for method in THREE}}, xlabel="burst size K",
                      ylabel="virtual time per version, s",
                      value=lambda recorded, name: time_of_round(recorded.measured, name))  # fmt: skip


def ucf_accuracy(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 8(a): accuracy on UCF101 with 12 devices, by bias."""
    return draw_lines(recorded, {"UCF101, 12 devices": _by_bias_of("fig8")}, xlabel=BIAS)


def ucf_times(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 8(b): virtual time to target on UCF101, at two biases."""
    shown = {
        f"bias {bias}": _times(recorded, {m: cell("fig8", f"bias{bias}", m) for m in METHODS}) for bias in ("0", "0.8")
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


def stragglers(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 7: accuracy by bias with stragglers, without them, and with the 4 slowest clients dropped."""
    which = {
        "kuiper-all, delayed": "kuiper",
        "kuiper-without delay": "kuiper-no-delay",
        "kuiper-4 slowest dropped": "kuiper-dropped",
    }
    dropped = {name: {float(b): cell("fig7", f"bias{b}", method) for b in BIASES} for name, method in which.items()}
    sync = {"fedavg-without delay": {float(b): cell("fig7", f"bias{b}", "sync-no-delay") for b in BIASES}}
    return draw_lines(
        recorded, {"(a) KUIPER": dropped, "(b) methods with stragglers": _by_bias_of("fig7") | sync}, xlabel=BIAS
    )


def ablations(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 9(a): accuracy with one component left out, by bias."""
    parts = {"kuiper-all on": None, "kuiper-no burst": "no-burst", "kuiper-no staleness weight": "no-staleness",
             "kuiper-no error reward": "no-error"}  # fmt: skip
    lines = {
        name: {
            float(b): cell("fig9a", f"bias{b}", part) if part else cell("fig3b", f"bias{b}", "kuiper")
            for b in BIASES[:3]
        }
        for name, part in parts.items()
    }
    return draw_lines(recorded, {"": lines}, xlabel=BIAS)


def hyperparameters(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 9(b, c): accuracy by staleness exponent and by mixing weight."""
    exponents, mixing = {}, {}
    for bias in BIASES[:3]:
        full = cell("fig3b", f"bias{bias}", "kuiper")
        swept = {float(a): cell("fig9b", f"bias{bias}", f"alpha{a}") for a in ("0.3", "0.7", "0.9", "1")}
        swept |= {0.0: cell("fig9a", f"bias{bias}", "no-staleness"), 0.5: full}
        exponents[f"kuiper-bias {bias}"] = dict(sorted(swept.items()))
        mixed = {float(b): cell("fig9c", f"bias{bias}", f"beta{b}") for b in ("0", "0.3", "0.5", "0.9")} | {0.7: full}
        mixing[f"kuiper-bias {bias}"] = dict(sorted(mixed.items()))
    return draw_lines(recorded, {"(b) staleness exponent": exponents, "(c) mixing weight": mixing}, xlabel="value")


def frames(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 11: accuracy of centralised training by frames per clip."""
    shown = {
        data: {"central": {float(count): with_frames(recorded.measured, data, count) for count in counts}}
        for data, counts in FRAMES.items()
    }
    return draw_lines(recorded, shown, xlabel="frames per clip", log=True, sharey=False)


def central(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 16: final accuracies of centralised training and of KUIPER at bias 0."""
    shown = {
        data: {
            "central": percent(recorded, cell("fig16", data.lower(), "central")),
            "kuiper": percent(recorded, cell(folder, "bias0", "kuiper")),
        }
        for data, folder in {"HMDB51": "fig3b", "UCF101": "fig8"}.items()
    }
    return draw_bars(shown, ylabel="test accuracy, %")


def slow_board(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 12: accuracy and time to target, with and without a slow board."""
    boards = {"four NX": "homogeneous", "three NX, one Nano": "slow"}
    cells = {title: {m: cell("fig12", place, m) for m in THREE} for title, place in boards.items()}
    shown = {f"accuracy, %\n{t}": {m: percent(recorded, n) for m, n in c.items()} for t, c in cells.items()}
    shown |= {f"time to target, s\n{title}": _times(recorded, methods) for title, methods in cells.items()}
    return draw_bars(shown, ylabel="")


def dropping(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 13: accuracy by bias with a slow device, and with that device dropped."""
    names = {"all equally fast": "no-delay", "slowest 3×": "3x", "slowest 5×": "5x", "slowest dropped": "dropped"}
    lines = {
        f"kuiper-{name}": {float(b): cell("fig13", f"bias{b}", place) for b in BIASES[:3]}
        for name, place in names.items()
    }
    return draw_lines(recorded, {"": lines}, xlabel=BIAS)


def assistants(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 14(a) and Table 3: the student's accuracy by number of assistants."""
    starts = {"from scratch": "scratch"}
    starts |= {how_many(n, "assistant"): f"assistants-{n}" for n in range(4)}
    shown = {name: percent(recorded, cell("table3", place)) for name, place in starts.items()}
    return draw_bars({"": shown}, ylabel="student's test accuracy, %")


def distilled_start(recorded: Recorded) -> Figure | None:
    """Draw KUIPER's Fig. 14(b): each method's accuracy from a random and from a distilled start."""
    shown = {
        "random start": {name: percent(recorded, cell("fig14b", "scratch", name)) for name in METHODS},
        "distilled start": {name: percent(recorded, distilled(recorded.measured, name)) for name in METHODS},
    }
    return draw_bars(shown, ylabel="test accuracy, %")


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
    PaperFigure("KUIPER", "Fig. 7", "Stragglers: 4 clients need the base time, 4 need 3 times and 4 need 5 times as "
                "long.",
                stragglers),
    PaperFigure("KUIPER", "Fig. 9(a)", "KUIPER without one component at a time. In the paper each removal costs "
                "accuracy at high bias.", ablations),
    PaperFigure("KUIPER", "Fig. 9(b, c)", "Accuracy by staleness exponent and by mixing weight.", hyperparameters),
    PaperFigure("KUIPER", "Fig. 11", "Centralised training by frames per clip.", frames),
    PaperFigure("KUIPER", "Fig. 12", "One slow board among four. In the paper Oort is faster than FedBuff with equal "
                "boards and slower with the slow one.", slow_board),
    PaperFigure("KUIPER", "Fig. 13", "KUIPER on four devices: the last one is slow, or is dropped with its data.",
                dropping),
    PaperFigure("KUIPER", "Fig. 14(a)", "The student of the chain of teachers, by number of assistants.", assistants),
    PaperFigure("KUIPER", "Fig. 14(b)", "Each method with and without the distilled start.", distilled_start),
    PaperFigure("KUIPER", "Fig. 16", "Centralised training beside KUIPER on 12 devices at bias 0 (ours).", central),
]  # fmt: skip
