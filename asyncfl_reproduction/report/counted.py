"""Our values of printed numbers that need no recorded cell, from :mod:`asyncfl_reproduction.measure`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from asyncfl_reproduction.measure import fedecho, fedrevive, kuiper
from asyncfl_reproduction.report.recorded import NOT_MEASURED, Ours, Recorded

SEEDS = 3
"""Number of seeds of a simulated number, as many as recorded cells have."""


def _ours(values: object, source: str) -> Ours:
    return Ours(None if values is None else np.atleast_1d(np.asarray(values, dtype=float)), source)


def versions_held(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return the largest number of model versions that clients hold at once in FedEcho's 500 rounds at large delay."""
    return _ours(fedecho.versions_held(fedecho.LARGE)[:SEEDS], "simulated: 500 rounds at large delay, 3 seeds")


def proxy_divergence(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return KL(true shares || proxy) from short runs on a stand-in for the data set (FedRevive Table 2)."""
    return _ours(fedrevive.short_run_divergences(row["dataset"])["proxy"], "short runs of a stand-in, 24 clients")


def compute_an_iteration(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
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


def compute_in_all(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Count the multiply-accumulates of all iterations in a printed row."""
    one = compute_an_iteration(recorded, row, cell)
    return _ours(None if one.values is None else one.values * int(row["horizon"].split()[0]), one.source)


def _board(device: str) -> str:
    return next(short for short, printed in kuiper.BOARDS.items() if printed == device)


def board_seconds(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return the seconds in the boards' delay law, which are the paper's own numbers."""
    seconds = kuiper.epoch_seconds if "epoch" in row["metric"] else kuiper.test_set_seconds
    return _ours(seconds(row["dataset"])[_board(row["device"])], "delay law: the paper's numbers are its input")


def board_slowdown(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return a board's time per epoch divided by an AGX board's, averaged over the data sets."""
    laws = map(kuiper.epoch_seconds, kuiper.LAWS)
    ratios = [seconds[_board(row["device"])] / seconds["AGX"] for seconds in laws]
    return _ours(np.mean(ratios), "delay law: the paper's numbers are its input")


def time_of_80_epochs(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return our virtual time for a federated row of KUIPER's Table 4: recorded for FedAvg, simulated for KUIPER."""
    if "Jetson" not in row["setting"]:
        return _ours(None, f"{NOT_MEASURED}: another device, model and data set")
    if row["method"].startswith("asynchronous"):
        return _ours(kuiper.seconds_of_80_epochs(row["dataset"], "kuiper"), "simulated: as many client updates")
    return _ours(recorded.measured.values(cell, "virtual_time") if cell else None, cell or "")


def time_saved(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return the percentage of time that bursts of 2 save over synchronous rounds in 80 epochs."""
    seconds = [kuiper.seconds_of_80_epochs(row["dataset"], algorithm) for algorithm in ("kuiper", "fedavg")]
    return _ours(100 * (1 - seconds[0] / seconds[1]), "simulated: as many client updates")
