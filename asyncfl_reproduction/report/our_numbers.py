"""Our measurement of each published number, in its printed unit.

A printed row's paper and metric decide how it is measured (:data:`MEASURES`). Times to target are defined as in the
papers: for FedADT the first evaluation at the target, for FedRevive the first time at which the running average reaches
85% of FedBuff's best, and for KUIPER as in :mod:`asyncfl_reproduction.claims.kuiper`. Numbers that need no recorded
cell come from :mod:`asyncfl_reproduction.measure`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from asyncfl_reproduction.claims.fedadt import targets
from asyncfl_reproduction.claims.fedecho import BASELINES, SETS, TABLE3
from asyncfl_reproduction.claims.fedrevive import WINDOW, target
from asyncfl_reproduction.claims.kuiper import BIASES, SHARE_OF_FINAL, alone, distilled
from asyncfl_reproduction.claims.measured import ACCURACY
from asyncfl_reproduction.measure import fedecho, fedrevive
from asyncfl_reproduction.measure import kuiper as boards
from asyncfl_reproduction.report.recorded import NOT_MEASURED, Ours, Recorded

SEEDS = 3
"""Number of seeds of a simulated number, as many as recorded cells have."""


def _ours(values: object, source: str) -> Ours:
    return Ours(None if values is None else np.atleast_1d(np.asarray(values, dtype=float)), source)


def _versions_held(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return the largest number of model versions that clients hold at once in FedEcho's 500 rounds at large delay."""
    return _ours(fedecho.versions_held(fedecho.LARGE)[:SEEDS], "simulated: 500 rounds at large delay, 3 seeds")


def _proxy_divergence(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return KL(true shares || proxy) from short runs on a stand-in for the data set (FedRevive Table 2)."""
    return _ours(fedrevive.short_run_divergences(row["dataset"])["proxy"], "short runs of a stand-in, 24 clients")


def _compute_an_iteration(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return one iteration's multiply-accumulates with ResNet-18 in a row of FedRevive's Table 3."""
    forwards = {
        "client local training": 3,
        "distillation, sequential": 3 + int(row["c"]),
        "distillation, concurrent (blocking part)": 4,
    }
    if row["component"] not in forwards:
        return _ours(None, f"{NOT_MEASURED}: the paper does not print its generator")
    return _ours(
        forwards[row["component"]] * fedrevive.resnet18_gflop() / 2, "counted: multiply-accumulates of ResNet-18"
    )


def _compute_in_all(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Count the multiply-accumulates of all iterations in a printed row."""
    one = _compute_an_iteration(recorded, row, cell)
    return _ours(None if one.values is None else one.values * int(row["horizon"].split()[0]), one.source)


def _board(device: str) -> str:
    return next(short for short, printed in boards.BOARDS.items() if printed == device)


def _board_seconds(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return the seconds in the boards' delay law, which are the paper's own numbers."""
    seconds = boards.epoch_seconds if "epoch" in row["metric"] else boards.test_set_seconds
    return _ours(seconds(row["dataset"])[_board(row["device"])], "delay law: the paper's numbers are its input")


def _board_slowdown(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return a board's time per epoch divided by an AGX board's, averaged over the data sets."""
    laws = map(boards.epoch_seconds, boards.LAWS)
    ratios = [seconds[_board(row["device"])] / seconds["AGX"] for seconds in laws]
    return _ours(np.mean(ratios), "delay law: the paper's numbers are its input")


def _time_of_80_epochs(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return our virtual time for a federated row of KUIPER's Table 4: recorded for FedAvg, simulated for KUIPER."""
    if "Jetson" not in row["setting"]:
        return _ours(None, f"{NOT_MEASURED}: another device, model and data set")
    if row["method"].startswith("asynchronous"):
        return _ours(boards.seconds_of_80_epochs(row["dataset"], "kuiper"), "simulated: as many client updates")
    return _ours(recorded.measured.values(cell, "virtual_time") if cell else None, cell or "")


def _time_saved(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return the percentage of time that bursts of 2 save over synchronous rounds in 80 epochs."""
    seconds = [boards.seconds_of_80_epochs(row["dataset"], algorithm) for algorithm in ("kuiper", "fedavg")]
    return _ours(100 * (1 - seconds[0] / seconds[1]), "simulated: as many client updates")


UNITS = {
    "accuracy": ("%", "fraction"),
    "time": ("s", "simulator time units"),
    "points": ("percentage points",),
    "share": ("%",),
    "divergence": ("nats",),
    "compute": ("GFLOPs",),
    "models": ("models",),
    "ratio": ("x",),
}
"""Kind of a measure -> units of printed numbers with which it can be compared."""


PERCENT = {"%": 100, "percentage points": 100}
"""Printed unit of accuracies -> the factor for a fraction."""

Take = Callable[[Recorded, pd.Series, str | None], Ours]


class Measure(NamedTuple):
    """How one metric is measured: its kind (a key of :data:`UNITS`), and a function of a printed row and its cell."""

    kind: str
    take: Take


def measure(recorded: Recorded, row: pd.Series) -> Ours:
    """Return our measurement of one published number; its metric must be measured in the row's unit."""
    kind, take = MEASURES[row["paper"], row["metric"]]
    if row["unit"] not in UNITS[kind]:
        raise ValueError(f"{row['paper']}, {row['metric']}: {kind} cannot stand beside {row['unit']}")
    ours, measured = take(recorded, row, recorded.cell_of(row)), recorded.measured
    cells = cells_behind(ours.source)
    return ours._replace(mark=measured.mark(*cells), trained=not any(map(measured.is_constant, cells)))


def cells_behind(source: str) -> list[str]:
    """Return the cells named in the ``source`` of an :class:`Ours`."""
    return re.split(r" - | against ", re.sub(r", version \d+$", "", source))


def _summary(number: str) -> Take:
    """Build a measure that reads one number from a cell's summaries, with accuracies in the row's unit."""

    def take(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
        values = None if cell is None else recorded.measured.values(cell, number)
        return Ours(None if values is None else PERCENT.get(row["unit"], 1) * values, cell or "")

    return take


def _nothing(why: str) -> Take:
    return lambda recorded, row, cell: Ours(None, f"{NOT_MEASURED}: {why}")


def _gap(recorded: Recorded, better: str, worse: str) -> Ours:
    gap = recorded.measured.gap(better, worse)
    return Ours(None if gap is None else 100 * gap, f"{better} - {worse}")


def _first_or_final(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return an accuracy for FedEcho's Table 5; its first row, the pretrained start, is version 0 of a run."""
    if not row["method"].startswith("none"):
        return _summary(ACCURACY)(recorded, row, cell)
    start = "fedecho/table5/fedbuff"
    curves = recorded.measured.curves.get(start)
    return Ours(
        curves and PERCENT.get(row["unit"], 1) * np.array([curve["accuracy"].iloc[0] for curve in curves]),
        f"{start}, version 0",
    )


def _smallest_gain(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return the smallest gain of FedEcho's best set of samples over the best baseline, among Table 3's columns."""
    m, gains = recorded.measured, []
    for column in TABLE3:
        means = [{n: v.mean() for x in methods if (v := m.values(n := f"{column}/{x}")) is not None}
                 for methods in (SETS, BASELINES)]  # fmt: skip
        if [len(means[0]), len(means[1])] == [len(SETS), len(BASELINES)]:
            gains.append(_gap(recorded, max(means[0], key=means[0].get), max(means[1], key=means[1].get)))
    known = [one for one in gains if one.values is not None]
    return min(known, key=lambda one: one.values.mean(), default=Ours(None, "all of fedecho/table3"))


def revive_cell(row: pd.Series, method: str | None = None) -> str:
    """Return the name of the cell that belongs to a printed row of FedRevive's Table 1."""
    data = {"20NewsGroups": "newsgroups"}.get(row["dataset"], row["dataset"].replace("-", "").lower())
    return f"fedrevive/table1/{data}/{method or row['method'].replace('-', '_').lower()}"


def revive_times(recorded: Recorded, name: str) -> pd.Series | None:
    """Return, by seed, a cell's times to 85% of the best running average of FedBuff in the same column."""
    goal = target(recorded.measured, name.rpartition("/")[0] + "/fedbuff")
    window = 1 if name.endswith("/fedavg") else WINDOW
    return None if goal is None else recorded.measured.times_to(name, goal, window)


def _revive_time(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    return _times(revive_times(recorded, cell) if cell else None, cell or "")


def _times(times: pd.Series | None, cell: str) -> Ours:
    """Return a cell's times to a target as our values, or no values if no seed has a target."""
    return Ours(None if times is None or times.empty else times, cell)


def _shorter(fast: pd.Series | None, slow: pd.Series | None, source: str) -> Ours:
    """Return, by seed, the percentage of time to target that ``fast`` saves; "not measured" if a run misses it."""
    if fast is None or slow is None:
        return Ours(None, source)
    both = pd.concat([fast, slow], axis=1, join="inner").to_numpy()
    if not both.size:
        return Ours(None, source)
    if not np.isfinite(both).all():
        return Ours(None, f"{NOT_MEASURED}: not every seed reaches the target")
    return Ours(100 * (1 - both[:, 0] / both[:, 1]), source)


def _revive_reduction(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    pair = [revive_cell(row, "fedrevive"), revive_cell(row, "fedbuff")]
    return _shorter(*(revive_times(recorded, name) for name in pair), " against ".join(pair))


def _revive_gain(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    return _gap(recorded, revive_cell(row, "fedrevive"), revive_cell(row, "fedbuff"))


KUIPER_PLACES = {("HMDB51", "4"): "fig3a", ("HMDB51", "12"): "fig3b", ("UCF101", "4"): "fig3c"}


def _kuiper_gain(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return our value of a gain in KUIPER's paper, over a baseline, from the distilled start or from an assistant."""
    if row["artefact"].endswith("Fig. 14(b)"):
        method = row["method"].lower()
        return _gap(recorded, distilled(recorded.measured, method), f"kuiper/fig14b/scratch/{method}")
    if row["dataset"] == "Kinetics-400":
        return _gap(recorded, "kuiper/table3/assistants-1", "kuiper/table3/assistants-0")
    devices = row.get("devices")  # if the text does not repeat the number, it is 12 devices
    panel = KUIPER_PLACES[row["dataset"], "12" if pd.isna(devices) else devices]
    return _gap(recorded, f"kuiper/{panel}/bias1/kuiper", f"kuiper/{panel}/bias1/{row['baseline'].lower()}")


def _kuiper_alone(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return KUIPER's largest gap over all biases to clients that train alone."""
    gaps = [_gap(recorded, *alone(row["devices"], bias)) for bias in BIASES]
    known = [one for one in gaps if one.values is not None]
    return max(known, key=lambda one: one.values.mean(), default=Ours(None, "kuiper/fig2"))


def _kuiper_reduction(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return the percentage of time to target that KUIPER (bursts of 4) saves over Oort (6) or FedBuff (7)."""
    other = "kuiper/fig6/k6/oort" if row["baseline"] == "Oort" else "kuiper/fig6/k7/fedbuff"
    pair, m = ("kuiper/fig3b/bias0.8/kuiper", other), recorded.measured
    finals = [m.values(name) for name in pair]
    if any(values is None for values in finals):
        return Ours(None, " against ".join(pair))
    goal = SHARE_OF_FINAL * min(values.mean() for values in finals)
    return _shorter(*(m.times_to(name, goal) for name in pair), " against ".join(pair))


def _kuiper_drop(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    place = f"kuiper/fig9b/bias{row['noniid_bias']}"
    return _gap(recorded, f"{place}/alpha0.7", f"{place}/alpha1")


def _kuiper_accuracy(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return KUIPER's accuracy; rows of Appendix H use Table 3's cells with no or one assistant."""
    if row["method"].startswith("distillation"):
        cell = f"kuiper/table3/assistants-{int('one' in row['method'])}"
    return _summary(ACCURACY)(recorded, row, cell)


def _adt_time(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    if cell is None:
        return Ours(None, "")
    goal = targets(recorded.measured, cell.rsplit("/", 1)[0])
    return _times(recorded.measured.times_to(cell, goal), cell)


def _adt_at_ramp_end(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return accuracy at round T_g, where runs with a fixed weight end, or no numbers if it was not tested there."""
    if cell is None or not recorded.measured.curves.get(cell):
        return Ours(None, cell or "")
    config = recorded.cells[cell].config
    last = min(config.settings.alpha_versions, config.rounds or config.settings.alpha_versions)
    there = [curve.loc[curve["version"] == last, "accuracy"] for curve in recorded.measured.curves[cell]]
    values = (
        None
        if any(one.empty for one in there)
        else np.array([PERCENT.get(row["unit"], 1) * one.iloc[-1] for one in there])
    )
    return Ours(values, f"{cell}, version {last}")


_ACCURACY, _DEVICE = _summary(ACCURACY), _nothing("another device, model and data set")

MEASURES: dict[tuple[str, str], Measure] = {
    ("FedEcho", "test accuracy"): Measure("accuracy", _ACCURACY),
    ("FedEcho", "GSM8K accuracy"): Measure("accuracy", _first_or_final),
    ("FedEcho", "server distillation time per round (low end)"): Measure("time", _DEVICE),
    ("FedEcho", "server distillation time per round (high end)"): Measure("time", _DEVICE),
    ("FedEcho", "global checkpoints the server holds, maximum seen"): Measure("models", _versions_held),
    ("FedEcho", "accuracy gain, claimed minimum"): Measure("points", _smallest_gain),
    ("FedRevive", "final test accuracy"): Measure("accuracy", _summary(ACCURACY)),
    ("FedRevive", "virtual time to target"): Measure("time", _revive_time),
    ("FedRevive", "KL(true label shares || proxy)"): Measure("divergence", _proxy_divergence),
    ("FedRevive", "compute per sample per iteration"): Measure("compute", _compute_an_iteration),
    ("FedRevive", "compute per sample over all iterations"): Measure("compute", _compute_in_all),
    ("FedRevive", "time-to-target reduction, claimed maximum"): Measure("share", _revive_reduction),
    ("FedRevive", "final accuracy gain, claimed maximum"): Measure("points", _revive_gain),
    ("FedRevive", "best test accuracy"): Measure("accuracy", _summary("best_accuracy")),
    ("FedRevive", "wall-clock: client local training run, 16-core CPU"): Measure("time", _DEVICE),
    ("FedRevive", "wall-clock: client local training run, Tesla T4"): Measure("time", _DEVICE),
    ("FedRevive", "wall-clock: synthesis per server update, amortised over 10"): Measure("time", _DEVICE),
    ("FedRevive", "wall-clock: distillation, sequential"): Measure("time", _DEVICE),
    ("FedRevive", "wall-clock: distillation, non-blocking"): Measure("time", _DEVICE),
    ("KUIPER", "training time per local epoch"): Measure("time", _board_seconds),
    ("KUIPER", "time over the whole test set"): Measure("time", _board_seconds),
    ("KUIPER", "slowdown, rounded"): Measure("ratio", _board_slowdown),
    ("KUIPER", "training time"): Measure("time", _DEVICE),
    ("KUIPER", "training time increase over no assistant"): Measure("share", _DEVICE),
    ("KUIPER", "training time increase"): Measure("share", _DEVICE),
    ("KUIPER", "training time reduction"): Measure("share", _time_saved),
    ("KUIPER", "wall-clock training time"): Measure("time", _time_of_80_epochs),
    ("KUIPER", "per-clip accuracy"): Measure("accuracy", _ACCURACY),
    ("KUIPER", "per-clip top-1 accuracy"): Measure("accuracy", _kuiper_accuracy),
    ("KUIPER", "accuracy gain"): Measure("points", _kuiper_gain),
    ("KUIPER", "accuracy gain, maximum over bias"): Measure("points", _kuiper_alone),
    ("KUIPER", "accuracy drop"): Measure("points", _kuiper_drop),
    ("KUIPER", "time-to-target reduction"): Measure("share", _kuiper_reduction),
    ("FedADT", "virtual time to target"): Measure("time", _adt_time),
    ("FedADT", "final accuracy"): Measure("accuracy", _ACCURACY),
    ("FedADT", "accuracy at round T_g"): Measure("accuracy", _adt_at_ramp_end),
    ("FedADT", "accuracy at round 10 T_g"): Measure("accuracy", _ACCURACY),
}
