"""Printed numbers that need no recorded cell: counted, simulated without training, or what the delay laws take."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from asyncfl_lite.models import MODELS
from asyncfl_lite.models.base import InputSpec, forward_flop
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.reproduction.claims.fedecho_simulated import most_versions_held
from asyncfl_lite.reproduction.claims.fedrevive_probes import short_run_divergences
from asyncfl_lite.reproduction.claims.kuiper_simulated import BOARDS, LAWS
from asyncfl_lite.reproduction.report.recorded import NOT_MEASURED, Ours, Recorded
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.config import Config
from asyncfl_lite.simulator.delays import DELAYS

SEEDS = (0, 1, 2)
JOBS = 4 * round(80 / 3)
"""Of 4 boards in 80 epochs of training, 3 a job."""


def _ours(values: object, source: str) -> Ours:
    return Ours(None if values is None else np.atleast_1d(np.asarray(values, dtype=float)), source)


@lru_cache(maxsize=1)
def _most_versions() -> np.ndarray:
    planned = [schedule(Config(delay="fedecho_large", rounds=500, seed=seed)) for seed in SEEDS]
    return np.array([most_versions_held(one) for one in planned])


def versions_held(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Count the versions that clients in flight had started from, at most, in FedEcho's 500 rounds at large delay."""
    return _ours(_most_versions(), "simulated: 500 rounds at large delay, 3 seeds")


def proxy_divergence(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return KL(true shares || proxy) of short runs on a stand-in for the data set (FedRevive Table 2)."""
    return _ours(short_run_divergences(row["dataset"])["proxy"], "short runs of a stand-in, 24 clients")


@lru_cache(maxsize=1)
def _forward_gmac() -> float:
    spec = MODELS.get("resnet")(width=64, blocks="resnet18", norm="batch")
    return forward_flop(VectorModel(spec.build((3, 32, 32), 10)), InputSpec((3, 32, 32), 10)) / 2e9


def compute_an_iteration(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Count multiply-accumulates of ResNet-18: a training step is 3 forwards, a teacher 1 (FedRevive Table 3)."""
    forwards = {
        "client local training": 3,
        "distillation, sequential": 3 + int(row["c"]),
        "distillation, concurrent (blocking part)": 4,
    }
    if row["component"] not in forwards:
        return _ours(None, f"{NOT_MEASURED}: the paper does not print its generator")
    return _ours(forwards[row["component"]] * _forward_gmac(), "counted: multiply-accumulates of ResNet-18")


def compute_in_all(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Count those of all iterations that the row prints."""
    one = compute_an_iteration(recorded, row, cell)
    return _ours(None if one.values is None else one.values * int(row["horizon"].split()[0]), one.source)


def _law(dataset: str) -> type:
    return DELAYS.get(LAWS[dataset])


def _board(device: str) -> str:
    return next(short for short, long in BOARDS.items() if long == device)


def board_seconds(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return the seconds that the delay law of the boards takes: the paper's own, as an input."""
    seconds = _law(row["dataset"]).epoch_seconds if "epoch" in row["metric"] else _law(row["dataset"]).test_seconds
    return _ours(seconds[_board(row["device"])], "delay law: the paper's numbers are its input")


def board_slowdown(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return how many times as long as an AGX board one takes for an epoch, mean over the data sets."""
    laws = [_law(data).epoch_seconds for data in LAWS]
    ratios = [seconds[_board(row["device"])] / seconds["AGX"] for seconds in laws]
    return _ours(np.mean(ratios), "delay law: the paper's numbers are its input")


@lru_cache(maxsize=4)
def _simulated_seconds(law: str, algorithm: str) -> float:
    """Return the virtual seconds of 80 epochs of 4 boards, in rounds of all or in bursts of 2."""
    burst = {"buffer_size": 2, "rounds": JOBS // 2} if algorithm == "kuiper" else {"rounds": JOBS // 4}
    base = {"task": "digits", "delay": law, "partition": "iid", "clients": 4, "concurrency": 4}
    return float(schedule(Config(**base, algorithm=algorithm, **burst)).updates["arrived_at"].max())


def time_of_80_epochs(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return the virtual time of federated rows of KUIPER's Table 4: FedAvg's of its cell, KUIPER's simulated."""
    if "Jetson" not in row["setting"]:
        return _ours(None, f"{NOT_MEASURED}: another device, model and data set")
    if row["method"].startswith("asynchronous"):
        return _ours(_simulated_seconds(LAWS[row["dataset"]], "kuiper"), "simulated: as many client updates")
    return _ours(recorded.measured.values(cell, "virtual_time") if cell else None, cell or "")


def time_saved(recorded: Recorded, row: pd.Series, cell: str | None) -> Ours:
    """Return by how many percent 80 epochs in bursts of 2 are shorter than in synchronous rounds."""
    seconds = [_simulated_seconds(LAWS[row["dataset"]], algorithm) for algorithm in ("kuiper", "fedavg")]
    return _ours(100 * (1 - seconds[0] / seconds[1]), "simulated: as many client updates")
