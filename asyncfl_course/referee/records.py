"""Recorded runs that a referee may use, and the code that records them.

``results/18_referee.csv`` holds runs that no tier has: the second case's runs, and the seeds beyond ten of two laptop
cells at server rate 1. Each row is a run, with its cell, seed, three accuracies of its summary, the configuration's
hash, and the digests of its weights and its schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from asyncfl_course.evidence import evidence
from asyncfl_course.records import CELLS, TWIN, Cell, checked, expand_grid, keep
from asyncfl_course.referee import deaf
from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.runs.lockstep import finish_together
from asyncfl_lite.runs.results import Result
from asyncfl_lite.runs.run import Run

RECORDED = Path(__file__).parents[1] / "results/18_referee.csv"
NUMBERS = ("last5_accuracy", "final_accuracy", "best_accuracy")
"""Mean of a run's last five tests, its last test, the best of all its tests; fractions."""
DIGESTS = ("config_hash", "weights_sha256", "schedule_sha256")
MORE_SEEDS = {
    f"fedecho/table2/large-dir0.1/fedecho-cross{TWIN}": range(10, 64),
    f"fedecho/table7/fixed-0.5{TWIN}": range(10, 64),
}
"""Laptop cells -> the seeds that are recorded beyond that tier's."""
AT_ONCE = 16
"""Runs in lockstep."""


def record() -> None:
    """Train and save the runs that are not recorded yet; all runs take about ten minutes on one core."""
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
    missing = [(cell, seed) for cell, seeds in MORE_SEEDS.items() for seed in seeds if (cell, seed) not in there]
    for begin in range(0, len(missing), AT_ONCE):
        part = missing[begin : begin + AT_ONCE]
        sessions = [Run(laptop_cell(cell).config.with_seed(seed)) for cell, seed in part]
        yield [(cell, result) for (cell, _), result in zip(part, finish_together(sessions), strict=True)]


def _row(cell: str, result: Result) -> dict[str, Any]:
    numbers = {name: result.summary[name] for name in NUMBERS}
    digests = {name: result.summary[name] for name in DIGESTS[1:]}
    return {"cell": cell, "seed": result.config.seed, **numbers, "config_hash": result.config.hash, **digests}


@cache
def laptop_cells() -> dict[str, Cell]:
    """Return the cells of FedEcho at laptop scale by name."""
    return {cell.name: cell for cell in expand_grid(CELLS / "laptop.yaml", paper="fedecho")}


def laptop_cell(name: str) -> Cell:
    """Return a laptop-scale cell of FedEcho; names that end in ``@printed`` mean server rate 1."""
    return laptop_cells()[name]


@lru_cache(maxsize=64)
def runs_of(cell: str) -> pd.DataFrame:
    """Return a cell's recorded runs by seed: :data:`NUMBERS` (accuracies as fractions) and :data:`DIGESTS`.

    Args:
        cell: a laptop cell of FedEcho (``…@printed`` for server rate 1), or ``deaf/…``.

    Raises:
        ResultError: the cell is not recorded.
    """
    tables = [pd.read_csv(checked(RECORDED))]
    if cell in laptop_cells():
        tables.append(evidence("fedecho").summaries.get(cell, tables[0][:0]).assign(cell=cell))
    found = pd.concat([table.loc[table["cell"] == cell, ["seed", *NUMBERS, *DIGESTS]] for table in tables])
    if found.empty:
        raise ResultError(f"{cell}: is not recorded")
    return found.set_index("seed").sort_index()
