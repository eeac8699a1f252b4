"""Recorded runs that a referee may use, and the code that records them.

``results/18_referee.csv`` holds the cases' runs: FedEcho and its rivals on images in two columns, and the second
case's runs. Each row is a run, with its cell, seed, three accuracies of its summary, the configuration's hash, and the
digests of its weights and its schedule. ``results/18_referee_tries.csv`` holds the rates that were tried for each
method, on test images.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from asyncfl_course.records import checked, keep
from asyncfl_course.referee import deaf
from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.lockstep import finish_together
from asyncfl_lite.runs.results import Result
from asyncfl_lite.runs.run import Run

RECORDED = Path(__file__).parents[1] / "results/18_referee.csv"
TRIED = RECORDED.with_name("18_referee_tries.csv")
NUMBERS = ("last5_accuracy", "final_accuracy", "best_accuracy")
"""Mean of a run's last five tests, its last test, the best of all its tests; fractions."""
DIGESTS = ("config_hash", "weights_sha256", "schedule_sha256")
TUNED, RATE_1 = COLUMNS = ("tuned", "rate 1")
"""Columns of the cells on images: every rate was searched, or the server's rate is 1 (FedAC's and FADAS' 2.5e-4)."""
AT_RATE_1 = "@rate-1"
"""Ending of the names of cells in the second column."""
RATES = {
    "fedbuff": ((0.3, 0.3), (0.01, 1.0)),
    "ca2fl": ((0.1, 0.3), (0.01, 1.0)),
    "fedac": ((0.1, 0.003), (0.03, 2.5e-4)),
    "fadas": ((0.1, 0.003), (0.1, 2.5e-4)),
    "fedecho": ((0.1, 1.0), (0.03, 1.0)),
    "noise": ((0.3, 0.3), (0.03, 1.0)),
}
"""Method or cell -> clients' and server's rates in each of the columns."""
OPTIONS: dict[str, dict[str, Any]] = {
    "fedecho-natural": {"distill_set": "natural"},
    "fedecho-synthetic": {"distill_set": "synthetic"},
    "noise": {"distill_set": "noise"},
    "no-distillation": {"distill_q": 0},
    "dynamic": {"distill_set": "cross"},
    "fixed-0.5": {"distill_set": "cross", "alpha_min": 0.5, "alpha_max": 0.5},
    "ce-only": {"distill_set": "cross", "alpha_min": 0, "alpha_max": 0},
    "kl-only": {"distill_set": "cross", "alpha_min": 1, "alpha_max": 1},
}
"""Cell of FedEcho -> its options, beside the rate of distillation."""
SEEDS = {"fedac": 10, "fadas": 10, "noise": 10, "no-distillation": 10}
"""Cell -> number of its seeds, if they are not 32."""
SEEDS_AT_RATE_1 = {"fedecho-natural": 32, "fedbuff": 32, "ca2fl": 32, "dynamic": 64, "fixed-0.5": 64}
"""The same at server rate 1, where others have 10."""
AT_ONCE = 16
"""Runs in lockstep."""


def image_config(cell: str) -> Config:
    """Return the configuration of a cell on images, such as ``images/fedbuff@rate-1``, with seed 0."""
    name, _, at_1 = cell.removeprefix("images/").partition("@")
    column, method = int(bool(at_1)), "fedecho" if name in OPTIONS else name
    client_lr, server_lr = RATES.get(name, RATES[method])[column]
    settings = {**OPTIONS[name], "distill_lr": (1e-4, 3e-5)[column]} if name in OPTIONS else {}
    return Config(task="overlaid_mnist", delay="fedecho_large", alpha=0.1, rounds=200, eval_every=5, algorithm=method,
                  client_lr=client_lr, server_lr=server_lr, settings=settings)  # fmt: skip


def image_cells() -> dict[str, int]:
    """Map each cell on images to its number of seeds."""
    names = [*(name for name in RATES if name not in ("fedecho", "noise")), *OPTIONS]
    at_1 = {f"images/{name}{AT_RATE_1}": SEEDS_AT_RATE_1.get(name, 10) for name in names}
    return {f"images/{name}": SEEDS.get(name, 32) for name in names} | at_1


def record() -> None:
    """Train and save the runs that are not recorded yet; all runs take about half an hour on one core."""
    rows = pd.read_csv(checked(RECORDED)).to_dict("records") if RECORDED.exists() else []
    there = {(row["cell"], row["seed"]) for row in rows}
    for found in _trained(there):
        rows += [_row(cell, result) for cell, result in found]
        table = pd.DataFrame(rows).sort_values(["cell", "seed"], kind="stable")
        keep(table, RECORDED, index=False)


def _trained(there: set[tuple[str, int]]) -> Iterator[list[tuple[str, Result]]]:
    """Yield the missing runs in batches, each run with its cell."""
    for seed in range(10):
        missing = [cell for cell in deaf.VARIANTS if (f"deaf/{cell}", seed) not in there]
        if missing:
            yield [(f"deaf/{cell}", result) for cell, result in deaf.trained(missing, seed).items()]
    missing = [(cell, seed) for cell, seeds in image_cells().items() for seed in range(seeds)]
    missing = [one for one in missing if one not in there]
    for begin in range(0, len(missing), AT_ONCE):
        part = missing[begin : begin + AT_ONCE]
        sessions = [Run(image_config(cell).with_seed(seed)) for cell, seed in part]
        yield [(cell, result) for (cell, _), result in zip(part, finish_together(sessions), strict=True)]


def _row(cell: str, result: Result) -> dict[str, Any]:
    numbers = {name: result.summary[name] for name in NUMBERS}
    digests = {name: result.summary[name] for name in DIGESTS[1:]}
    return {"cell": cell, "seed": result.config.seed, **numbers, "config_hash": result.config.hash, **digests}


@cache
def tries(method: str, column: str) -> pd.DataFrame:
    """Return the rates that were tried for a method on images in a column: client_lr, server_lr, distill_lr."""
    table = pd.read_csv(checked(TRIED))
    return table[(table["method"] == method) & (table["column"] == column)]


@lru_cache(maxsize=64)
def runs_of(cell: str) -> pd.DataFrame:
    """Return a cell's recorded runs by seed: :data:`NUMBERS` (accuracies as fractions) and :data:`DIGESTS`.

    Args:
        cell: ``images/…`` (``…@rate-1`` for server rate 1), or ``deaf/…``.

    Raises:
        ResultError: the cell is not recorded.
    """
    table = pd.read_csv(checked(RECORDED))
    found = table.loc[table["cell"] == cell, ["seed", *NUMBERS, *DIGESTS]]
    if found.empty:
        raise ResultError(f"{cell}: is not recorded")
    return found.set_index("seed").sort_index()
