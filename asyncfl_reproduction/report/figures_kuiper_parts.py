"""Figures of KUIPER's parts: stragglers, components, the distilled start, centralised training."""

from __future__ import annotations

from matplotlib.figure import Figure

from asyncfl_reproduction.claims.kuiper import BIASES, FRAMES, METHODS, cell, distilled, with_frames
from asyncfl_reproduction.report.figures import PaperFigure, draw_bars, draw_lines, percent
from asyncfl_reproduction.report.figures_kuiper import BIAS, THREE, by_bias_of, times
from asyncfl_reproduction.report.recorded import Recorded
from asyncfl_reproduction.written import count


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
        recorded, {"(a) KUIPER": dropped, "(b) methods with stragglers": by_bias_of("fig7") | sync}, xlabel=BIAS
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
    shown |= {f"time to target, s\n{title}": times(recorded, methods) for title, methods in cells.items()}
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
    starts |= {count(n, "assistant"): f"assistants-{n}" for n in range(4)}
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
