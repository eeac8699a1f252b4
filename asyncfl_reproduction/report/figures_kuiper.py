"""Figures of KUIPER; the printed ones have no values, so their settings are those of our assumed grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from matplotlib.figure import Figure

from asyncfl_lite import plots
from asyncfl_lite.base.errors import how_many
from asyncfl_reproduction.claims.findings import Seeds
from asyncfl_reproduction.claims.kuiper import (
    BIASES,
    BURSTS,
    COUNTS,
    FEDERATION,
    FRAMES,
    IMAGES,
    METHODS,
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
from asyncfl_reproduction.report.figures import Draw, PaperFigure, draw_bars, draw_lines, finish, panels, percent
from asyncfl_reproduction.report.recorded import Recorded

BIAS, SECONDS = "non-IID bias", "virtual time to target, s"
THREE = METHODS[:3]
LINES = partial(draw_lines, xlabel=BIAS)


def _over(values: Iterable[str], *parts: str) -> dict[float, str]:
    """Return KUIPER's cells by a setting's value, which stands for ``{}`` in the parts of their names."""
    return {float(value): cell(*parts).format(value) for value in values}


def _by_bias_of(folder: str) -> dict[str, dict[float, str]]:
    return {method: _over(BIASES, folder, "bias{}", method) for method in METHODS}


def _by_clients(task: str, counts: Iterable[str]) -> dict[str, dict[float, str]]:
    return {method: _over(counts, "fig5", f"{task}-clients{{}}", method) for method in METHODS}


def _percents(recorded: Recorded, cells: dict[str, str]) -> dict[str, Seeds | None]:
    return {name: percent(recorded, of) for name, of in cells.items()}


def _times(recorded: Recorded, cells: dict[str, str]) -> dict[str, Seeds | None]:
    """Return, by method, the times to reach 87% of the lowest mean final accuracy among the methods."""
    m = recorded.measured
    finals = [values.mean() for name in cells.values() if (values := m.values(name)) is not None]
    goal = SHARE_OF_FINAL * min(finals, default=0)
    return {method: m.times_to(name, goal) for method, name in cells.items()}


def _timeline(recorded: Recorded) -> Figure:
    planned = five_clients()
    figure, (axes,) = panels(1, height=2.8)
    ends = planned.updates.groupby("version")["arrived_at"].max()
    plots.plot_gantt(planned.updates, until=float(ends.max()), in_flight=planned.in_flight, unit="s", axes=axes)
    for time in ends:
        axes.axvline(time, color="black", linestyle="--", linewidth=0.8)
    return finish(figure, {})


def _bars(ylabel: str, shown: Callable[[Recorded], dict[str, dict[str, Seeds | None]]]) -> Draw:
    return lambda recorded: draw_bars(shown(recorded), ylabel=ylabel)


def _slow_board(recorded: Recorded) -> dict[str, dict[str, Seeds | None]]:
    boards = {"four NX": "homogeneous", "three NX, one Nano": "slow"}
    cells = {title: {m: cell("fig12", place, m) for m in THREE} for title, place in boards.items()}
    accuracies = {f"accuracy, %\n{title}": _percents(recorded, methods) for title, methods in cells.items()}
    return accuracies | {f"time to target, s\n{title}": _times(recorded, methods) for title, methods in cells.items()}


ALONE = {
    f"{clients} devices": {
        name: {float(bias): alone(clients, bias)[index] for bias in BIASES}
        for index, name in enumerate(("kuiper", "alone"))
    }
    for clients in FEDERATION
}
BURST = {method: {float(size): of_burst(size, method) for size in BURSTS} for method in THREE}
BURST["fedbuff"][7.0] = of_burst("7", "fedbuff")
CLIENTS = {
    f"({panel}) bias {bias}": {m: _over(COUNTS, "fig4", f"bias{bias}-clients{{}}", m) for m in THREE}
    for panel, bias in (("a", "0"), ("b", "0.5"))
}
SLICES = _over(("12", "20", "30", "40"), "fig4c", "clients{}", "kuiper")
SLICES[50.0] = cell("fig4", "bias0-clients50", "kuiper")
CLIENTS_AND_BIAS = {
    task: {
        f"kuiper-{count} clients": _over(BIASES, "fig10", f"{task}-clients{count}", "bias{}")
        | {0.5: cell("fig5", f"{task}-clients{count}", "kuiper")}  # Fig. 5's
        for count in counts
    }
    for task, counts in IMAGES.items()
}
EXPONENTS = {
    f"kuiper-bias {bias}": _over(("0.3", "0.7", "0.9", "1"), "fig9b", f"bias{bias}", "alpha{}")
    | {0.0: cell("fig9a", f"bias{bias}", "no-staleness"), 0.5: cell("fig3b", f"bias{bias}", "kuiper")}
    for bias in BIASES[:3]
}
MIXING = {
    f"kuiper-bias {bias}": _over(("0", "0.3", "0.5", "0.9"), "fig9c", f"bias{bias}", "beta{}")
    | {0.7: cell("fig3b", f"bias{bias}", "kuiper")}
    for bias in BIASES[:3]
}

FIGURES = {
    "Fig. 1": PaperFigure(
        "Five clients in bursts of three, simulated without training with the boards' seconds (ours; the paper's is a "
        "sketch). Dashed lines are aggregations: only clients in a burst get the new model there.",
        _timeline,
    ),
    "Fig. 2": PaperFigure(
        "KUIPER against clients that train alone, by non-IID bias. In the paper the gap grows with bias.",
        partial(LINES, shown=ALONE),
    ),
    "Fig. 3": PaperFigure(
        "The main comparison. In the paper KUIPER is ahead at every bias, and most at 1.",
        partial(LINES, shown={
            "(a) HMDB51, 4 devices": _by_bias_of("fig3a"),
            "(b) HMDB51, 12 devices": _by_bias_of("fig3b"),
            "(c) UCF101, 4 devices": _by_bias_of("fig3c"),
        }),
    ),
    "Fig. 4": PaperFigure(
        "Accuracy by number of clients with K = 10. (a, b): all data are divided among more clients. (c): KUIPER with "
        "all data divided, or with one of 50 slices per client.",
        partial(draw_lines, xlabel="clients", log=True, shown=CLIENTS | {
            "(c) data fixed, or growing": {
                "kuiper-all data": CLIENTS["(a) bias 0"]["kuiper"],
                "kuiper-a slice for each client": SLICES,
            },
        }),
    ),
    "Fig. 5": PaperFigure(
        "Images, up to 1,000 clients; the paper does not print models and settings.",
        partial(draw_lines, xlabel="clients", log=True, sharey=False,
                shown={task: _by_clients(task, counts) for task, counts in IMAGES.items()}),
    ),
    "Fig. 5(d)": PaperFigure(
        "Next-character prediction: perplexity; lower is better.",
        partial(draw_lines, xlabel="clients", log=True, sharey=False, ylabel="test perplexity",
                shown={task: _by_clients(task, counts) for task, counts in TEXTS.items()},
                value=lambda recorded, name: recorded.measured.values(name, "final_perplexity")),
    ),
    "Fig. 6(a)": PaperFigure(
        "Accuracy by burst size at bias 0.8 (ours).", partial(draw_lines, shown={"": BURST}, xlabel="burst size K")
    ),
    "Fig. 6(b)": PaperFigure(
        "Times to target. Our target is 87% of the lowest mean final accuracy of the compared methods; the paper's "
        "target, 40%, is the same share of its best.",
        _bars(SECONDS, lambda recorded: {"": _times(recorded, {
            "kuiper-K = 4": of_burst("4", "kuiper"),
            "oort-K = 6": of_burst("6", "oort"),
            "fedbuff-K = 7": of_burst("7", "fedbuff"),
        })}),
    ),
    "Fig. 6(c)": PaperFigure(
        "Virtual time per version by burst size: Oort waits for its slowest client.",
        partial(draw_lines, shown={"": BURST}, xlabel="burst size K", ylabel="virtual time per version, s",
                value=lambda recorded, name: time_of_round(recorded.measured, name)),
    ),
    "Fig. 8(a)": PaperFigure(
        "Accuracy on 12 devices with UCF101's durations.",
        partial(LINES, shown={"UCF101, 12 devices": _by_bias_of("fig8")}),
    ),
    "Fig. 8(b)": PaperFigure(
        "Times to target in the same runs. In the paper Oort is slower than FedBuff at bias 0 and faster at 0.8.",
        _bars(SECONDS, lambda recorded: {
            f"bias {bias}": _times(recorded, {m: cell("fig8", f"bias{bias}", m) for m in METHODS})
            for bias in ("0", "0.8")
        }),
    ),
    "Fig. 10": PaperFigure(
        "KUIPER by bias and number of clients.", partial(LINES, shown=CLIENTS_AND_BIAS, sharey=False)
    ),
    "Fig. 7": PaperFigure(
        "Stragglers: 4 clients need the base time, 4 need 3 times and 4 need 5 times as long.",
        partial(LINES, shown={
            "(a) KUIPER": {
                "kuiper-all, delayed": _over(BIASES, "fig7", "bias{}", "kuiper"),
                "kuiper-without delay": _over(BIASES, "fig7", "bias{}", "kuiper-no-delay"),
                "kuiper-4 slowest dropped": _over(BIASES, "fig7", "bias{}", "kuiper-dropped"),
            },
            "(b) methods with stragglers": {
                **_by_bias_of("fig7"),
                "fedavg-without delay": _over(BIASES, "fig7", "bias{}", "sync-no-delay"),
            },
        }),
    ),
    "Fig. 9(a)": PaperFigure(
        "KUIPER without one component at a time. In the paper each removal costs accuracy at high bias.",
        partial(LINES, shown={"": {
            "kuiper-all on": _over(BIASES[:3], "fig3b", "bias{}", "kuiper"),
            "kuiper-no burst": _over(BIASES[:3], "fig9a", "bias{}", "no-burst"),
            "kuiper-no staleness weight": _over(BIASES[:3], "fig9a", "bias{}", "no-staleness"),
            "kuiper-no error reward": _over(BIASES[:3], "fig9a", "bias{}", "no-error"),
        }}),
    ),
    "Fig. 9(b, c)": PaperFigure(
        "Accuracy by staleness exponent and by mixing weight.",
        partial(draw_lines, shown={"(b) staleness exponent": EXPONENTS, "(c) mixing weight": MIXING}, xlabel="value"),
    ),
    "Fig. 11": PaperFigure(
        "Centralised training by frames per clip.",
        lambda recorded: draw_lines(recorded, {
            data: {"central": {float(count): with_frames(recorded.measured, data, count) for count in counts}}
            for data, counts in FRAMES.items()
        }, xlabel="frames per clip", log=True, sharey=False),
    ),
    "Fig. 12": PaperFigure(
        "One slow board among four. In the paper Oort is faster than FedBuff with equal boards and slower with the "
        "slow one.",
        _bars("", _slow_board),
    ),
    "Fig. 13": PaperFigure(
        "KUIPER on four devices: the last one is slow, or is dropped with its data.",
        partial(LINES, shown={"": {
            "kuiper-all equally fast": _over(BIASES[:3], "fig13", "bias{}", "no-delay"),
            "kuiper-slowest 3×": _over(BIASES[:3], "fig13", "bias{}", "3x"),
            "kuiper-slowest 5×": _over(BIASES[:3], "fig13", "bias{}", "5x"),
            "kuiper-slowest dropped": _over(BIASES[:3], "fig13", "bias{}", "dropped"),
        }}),
    ),
    "Fig. 14(a)": PaperFigure(
        "The student of the chain of teachers, by number of assistants.",
        _bars("student's test accuracy, %", lambda recorded: {"": _percents(recorded, {
            "from scratch": cell("table3", "scratch"),
            **{how_many(n, "assistant"): cell("table3", f"assistants-{n}") for n in range(4)},
        })}),
    ),
    "Fig. 14(b)": PaperFigure(
        "Each method with and without the distilled start.",
        _bars("test accuracy, %", lambda recorded: {
            "random start": _percents(recorded, {name: cell("fig14b", "scratch", name) for name in METHODS}),
            "distilled start": _percents(recorded, {name: distilled(recorded.measured, name) for name in METHODS}),
        }),
    ),
    "Fig. 16": PaperFigure(
        "Centralised training beside KUIPER on 12 devices at bias 0 (ours).",
        _bars("test accuracy, %", lambda recorded: {
            data: _percents(recorded, {
                "central": cell("fig16", data.lower(), "central"), "kuiper": cell(folder, "bias0", "kuiper"),
            })
            for data, folder in {"HMDB51": "fig3b", "UCF101": "fig8"}.items()
        }),
    ),
}  # fmt: skip
