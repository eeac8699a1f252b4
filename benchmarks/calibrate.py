"""Measure how hard the small tasks are: FedAvg on IID data, and FedBuff on non-IID data at the printed server rate.

    python benchmarks/calibrate.py [--only overlaid_mnist] [--record]

A task in place of a paper's is of use where FedAvg on IID data ends at 80 to 95 % and FedBuff, at the server rate that
the papers print and the best of its client rates, 15 to 30 points below: there methods have room to differ. The tasks'
knobs are chosen by these two alone, before any other method is run on them.

Every setting of the knobs is run with every client rate and the seeds 100 to 102, which no recorded result uses, and
with as many client updates for both methods. The figure is the mean of the last five of twenty tests; ``swing`` is the
standard deviation of the last ten. With ``--record`` every run becomes a row of ``results/calibration/TASK.csv``; what
is there is not run again.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from asyncfl_lite import Config, Result, run_many, tasks
from asyncfl_reproduction.digests import checked, keep

RESULTS = Path(__file__).parent / "results" / "calibration"
SEEDS = (100, 101, 102)
SGD_RATES = (0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
ADAM_RATES = (0.0003, 0.001, 0.003, 0.01, 0.03)


@dataclass(frozen=True)
class Calibration:
    """The runs that are tried on one task.

    Attributes:
        knobs: setting of the task -> its values; all combinations are run.
        common: settings of all runs.
        methods: name in the table -> settings of its runs.
        client_lrs: rates that each is given.
        controls: as ``methods``, but run only where the knobs have the task's defaults.
    """

    knobs: Mapping[str, tuple[float, ...]]
    common: Mapping[str, Any]
    methods: Mapping[str, Mapping[str, Any]]
    client_lrs: tuple[float, ...]
    controls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def _fedecho(versions: int, hidden: int) -> dict[str, Any]:
    """Return settings of FedEcho's federation: 50 clients, 25 in flight, a buffer of 5, large delay."""
    common = {"clients": 50, "concurrency": 25, "delay": "fedecho_large", "batch_size": 10, "local_epochs": 2}
    common |= {"model": "mlp", "model_settings": {"hidden": (hidden,)}, "server_lr": 1.0}
    # a round of FedAvg takes 25 updates, a version of FedBuff 5
    iid = {"algorithm": "fedavg", "partition": "iid", "rounds": versions // 5, "eval_every": versions // 100}
    fedbuff = {"algorithm": "fedbuff", "buffer_size": 5, "rounds": versions, "eval_every": versions // 20}
    return {
        "common": common,
        "methods": {"FedAvg, IID": iid, "FedBuff, α = 0.1": {**fedbuff, "alpha": 0.1}},
        "controls": {
            "FedBuff, α = 0.03": {**fedbuff, "alpha": 0.03},
            "FedBuff, IID": {**fedbuff, "partition": "iid"},
        },
        "client_lrs": SGD_RATES,
    }


def _fedrevive(updates: int, task_settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of FedRevive on FEMNIST: 1,000 writers, 100 in flight, Adam, the server rate of Table 4."""
    common = {"clients": 1000, "concurrency": 100, "delay": "fedrevive", "batch_size": 32, "local_steps": 25}
    common |= {"client_optimizer": "adam", "weight_decay": 0.0, "model": "mlp", "model_settings": {"hidden": (32,)}}
    common["task_settings"] = task_settings
    iid = {"algorithm": "fedavg", "partition": "iid", "server_lr": 1.0, "rounds": updates // 100}
    fedbuff = {"algorithm": "fedbuff", "partition": "natural", "scheduling": "after_agg", "server_lr": 0.025}
    methods = {
        "FedAvg, IID": {**iid, "eval_every": updates // 2000},
        "FedBuff, by writer": {**fedbuff, "buffer_size": 1, "rounds": updates, "eval_every": updates // 20},
    }
    return {"common": common, "methods": methods, "client_lrs": ADAM_RATES}


def _kuiper(versions: int, hidden: int) -> dict[str, Any]:
    """Return settings of KUIPER's federation: 12 boards, all in flight, a buffer of 4, labels by non-IID bias."""
    common = {"clients": 12, "concurrency": 12, "delay": "kuiper_hmdb51", "batch_size": 16, "local_epochs": 3}
    common |= {"model": "mlp", "model_settings": {"hidden": (hidden,)}, "server_lr": 1.0, "partition": "noniid_bias"}
    iid = {"algorithm": "fedavg", "partition": "iid", "rounds": versions // 3, "eval_every": versions // 50}
    fedbuff = {"algorithm": "fedbuff", "buffer_size": 4, "rounds": versions, "eval_every": versions // 20}
    return {
        "common": common,
        "methods": {"FedAvg, IID": iid, "FedBuff, bias 1": {**fedbuff, "partition_settings": {"bias": 1.0}}},
        "controls": {"FedBuff, bias 0": {**fedbuff, "partition_settings": {"bias": 0.0}}},
        "client_lrs": (*SGD_RATES, 0.4),
    }


SPOILED = {"overlay": (0.25, 0.35, 0.5), "noise": (0.2, 0.3, 0.5)}
TASKS = {
    "overlaid_mnist": Calibration(SPOILED, **_fedecho(200, 32)),
    "overlaid_pairs100": Calibration({"overlay": (0.35, 0.25, 0.5), "noise": (0.3,)}, **_fedecho(300, 64)),
    "glyphs": Calibration({"clutter": (0.3, 0.5, 0.8), "looks": (3, 6)}, **_fedecho(200, 32)),
    "glyphs50": Calibration({"clutter": (0.3,), "looks": (1, 2)}, **_kuiper(150, 64)),
    "topics20_bags": Calibration({"sides": (5,)}, **_fedecho(200, 32)),
    "writers": Calibration(
        {"overlay": (0.0, 0.35), "noise": (0.0, 0.3)}, **_fedrevive(2000, {"writers": 1000, "side": 10})
    ),
}


def runs(task: str, knobs: Mapping[str, float], method: str) -> list[dict[str, Any]]:
    """Return a row for every client rate and seed of a method on a task with these knobs; all are run in lockstep."""
    tried = TASKS[task]
    base = {**tried.common, **{**tried.methods, **tried.controls}[method], "task": task}
    base["task_settings"] = {**base.get("task_settings", {}), **knobs}
    configs = [Config(**base, client_lr=rate, seed=seed) for rate in tried.client_lrs for seed in SEEDS]
    return [{"task": task, **knobs, "method": method, **figures(result)} for result in run_many(configs)]


def figures(result: Result) -> dict[str, Any]:
    """Return the values of one run that are recorded."""
    names = ("algorithm", "partition", "alpha", "client_lr", "server_lr", "seed")
    return {
        **{name: getattr(result.config, name) for name in names},
        "last5_accuracy": round(result.summary["last5_accuracy"], 5),
        "swing": round(float(result.curve["accuracy"].iloc[-10:].std()), 5),
        "cpu_seconds": round(result.timing["cpu_seconds"], 2),
    }


def wanted(task: str) -> Iterator[tuple[dict[str, float], str]]:
    """Yield each combination of knobs with each method that is run on a task."""
    tried = TASKS[task]
    usual = tasks.TASKS.get(task)()
    for values in itertools.product(*tried.knobs.values()):
        knobs = dict(zip(tried.knobs, values, strict=True))
        default = all(getattr(usual, name) == value for name, value in knobs.items())
        for method in (*tried.methods, *(tried.controls if default else ())):
            yield knobs, method


def best(rows: pd.DataFrame, knobs: list[str]) -> pd.DataFrame:
    """Return the best client rate for each setting of the knobs and each method, with mean, deviation and swing in %.

    The best rate has the highest mean over seeds; the deviation is over seeds too.
    """
    tried = rows.groupby([*knobs, "method", "client_lr"], sort=False)
    accuracy = 100 * tried["last5_accuracy"].agg(["mean", "std"])
    means = accuracy.assign(swing=100 * tried["swing"].mean()).round(2).reset_index()
    return means.loc[means.groupby([*knobs, "method"], sort=False)["mean"].idxmax()].set_index([*knobs, "method"])


def main() -> None:
    """Run the calibration, print its figures, and record them if asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=TASKS, action="append", help="only this task; may be repeated")
    parser.add_argument("--record", action="store_true", help="keep every run in results/calibration/TASK.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for task in options.only or TASKS:
        file, names = RESULTS / f"{task}.csv", list(TASKS[task].knobs)
        table = (
            pd.read_csv(checked(file)) if options.record and file.exists() else pd.DataFrame(columns=[*names, "method"])
        )
        there = {tuple(row) for row in table[[*names, "method"]].itertuples(index=False)}
        for knobs, method in wanted(task):
            if (*knobs.values(), method) not in there:
                found = pd.DataFrame(runs(task, knobs, method))
                print(best(found, names).to_string(header=table.empty), flush=True)
                table = found if table.empty else pd.concat([table, found])
                if options.record:
                    keep(table.sort_values(names, kind="stable"), file, index=False)
        print(f"\n{task}\n{best(table.sort_values(names, kind='stable'), names).to_string()}")
        print(f"{table['cpu_seconds'].sum():.0f} s of processor time\n")


if __name__ == "__main__":
    main()
