"""Outcomes of searches, with one row per combination and seed, in tables that grow during a search.

The searches of studies are in ``results/searches.parquet``, named as ``fedecho-overlaid_mnist/fedbuff-tuned``; those of
cells in ``results/<tier>/<paper>/searches.parquet``, named as their cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from asyncfl_reproduction import home
from asyncfl_reproduction.parquet import alone_in, read_table, write_table

METRIC = "last5_accuracy"
"""Selection metric, averaged over seeds."""
FIELDS = ("search", "point", "seed", METRIC, "final_accuracy", "config_hash", "meaning", "cpu_seconds")
"""Columns of the tables; ``point`` is the combination, as JSON: ``{"client_lr": 0.1, "settings.distill_lr": 1e-3}``.

A run that diverged has no accuracy: ``nan``.
"""
SEARCHES, UNFINISHED = "searches.parquet", "unfinished.parquet"
Row = dict[str, Any]
"""One outcome."""


def of_studies(folder: Path | None = None, file: str = SEARCHES) -> Path:
    """Return the path of the table with the outcomes of studies; ``folder`` is the package's own if None."""
    return (home.RESULTS if folder is None else folder) / file


def of_cells(tier: str, cell: str, folder: Path | None = None) -> Path:
    """Return the path of the table that holds a cell's search outcomes; all searches of a paper share one table."""
    return (home.RESULTS if folder is None else folder) / tier / cell.split("/", 1)[0] / SEARCHES


def rows_of(path: Path, search: str) -> list[Row]:
    """Return the kept outcomes of a search, or an empty list."""
    return kept_in(path).get(search, [])


def kept_in(path: Path) -> Mapping[str, list[Row]]:
    """Map each search in a table to its rows; the table need not exist."""
    if not path.exists():
        return {}
    status = path.stat()
    return _read(path, (status.st_mtime_ns, status.st_ino, status.st_size))


@lru_cache(maxsize=64)
def _read(path: Path, _: tuple[int, int, int]) -> Mapping[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in read_table(path).to_dict("records"):
        found.setdefault(row["search"], []).append(row)
    return found


def keep(path: Path, search: str, rows: Sequence[Row]) -> None:
    """Write a search's rows into a table; they replace all earlier rows of that search."""
    with alone_in(path.parent):
        kept = {**kept_in(path), search: rows}
        every = [{**row, "search": name} for name in sorted(kept) for row in kept[name]]
        if every:
            write_table(path, pd.DataFrame(every)[list(FIELDS)])
        else:
            path.unlink(missing_ok=True)
