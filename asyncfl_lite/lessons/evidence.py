"""Recorded runs that lessons quote: a cell's runs, and two cells compared as claims are.

Lessons read the clone's ``results/``, as ``asyncfl-lite record`` and ``grid --record`` write it; an installed package
does not carry it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pandas as pd

from asyncfl_lite.base.errors import ResultError, unknown_name
from asyncfl_lite.base.home import CLONE
from asyncfl_lite.reproduction.claims.measured import ACCURACY, TUNED, Measured
from asyncfl_lite.reproduction.grid.tidy import paper_of, read_table

RECORDED = CLONE / "results"


@lru_cache(maxsize=16)
def evidence(paper: str, tier: str = "laptop") -> Measured:
    """Return what is recorded of one paper's cells.

    Args:
        paper: ``fedecho``, ``fedrevive``, ``kuiper`` or ``fedadt``.
        tier: ``laptop`` (ten seeds), or another tier that is recorded.

    Returns:
        Summaries and curves by cell. ``.column("printed")`` has the runs with the paper's own server settings.

    Raises:
        ResultError: nothing is recorded there.
    """
    folder = RECORDED / tier / paper
    if not folder.is_dir():
        raise ResultError(f"{folder}: nothing is recorded; asyncfl-lite grid {tier} --paper {paper} --record results")
    runs, curves = (read_table(folder / name).sort_values("seed", kind="stable") for name in ("runs.csv", "curves.csv"))
    by_cell = {str(cell): rows.reset_index(drop=True) for cell, rows in runs.groupby("cell")}
    drawn = {key: rows.reset_index(drop=True) for key, rows in curves.groupby(["cell", "seed"])}
    of_cells = {cell: [drawn[cell, seed] for seed in rows["seed"]] for cell, rows in by_cell.items()}
    return Measured(by_cell, of_cells)


def scores(cell: str, column: str = TUNED, tier: str = "laptop", number: str = ACCURACY) -> pd.Series:
    """Return one number of a recorded cell's runs by seed.

    Args:
        cell: its full name, such as ``fedecho/table2/large-dir0.1/fedbuff``.
        column: ``tuned``, or ``printed`` for the paper's own server settings.
        tier: where it is recorded.
        number: of a run's summary; by default the mean of its last five tests, a fraction.

    Raises:
        ResultError: it is not recorded.
    """
    measured = evidence(paper_of(cell), tier).column(column)
    found = measured.by_seed(cell, number)
    if found is None:
        raise ResultError(f"{Path('results') / tier}: " + unknown_name("cell", cell, measured.summaries))
    return found


def compare(better: str, worse: str, margin: float = 0.0, column: str = TUNED, tier: str = "laptop") -> str:
    """Return the comparison of two recorded cells as the report's claims have it, on one line.

    Both means with deviations in percent, their difference in points, paired by seed, with its interval, the number of
    seeds and the verdict on "the first lies above the second".

    Args:
        better: the cell that shall be above.
        worse: the other.
        margin: by more than which, a fraction.
        column: ``tuned`` or ``printed``.
        tier: where they are recorded.

    Raises:
        ResultError: one of them is not recorded.

    Example:
        >>> natural, fedbuff = (f"fedecho/table2/mild-dir0.1/{name}" for name in ("fedecho-natural", "fedbuff"))
        >>> print(compare(natural, fedbuff))
        mild-dir0.1/fedecho-natural against mild-dir0.1/fedbuff: 81.3 ± 1.3, 81.6 ± 1.2, -0.3 [-1.4, 0.7], 10 seeds: undecided
    """  # noqa: E501
    for cell in (better, worse):
        scores(cell, column, tier)
    finding = evidence(paper_of(better), tier).column(column).above(better, worse, margin)
    return f"{finding.detail}: {finding.verdict}"
