"""The tier in which recorded cells are compared, which is the first one that holds all of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from asyncfl_reproduction.grid.tidy import RUNS
from asyncfl_reproduction.parquet import read_table


def first_tier(cells: Iterable[str], tiers: Iterable[str], folder: Path) -> str | None:
    """Return the first of these tiers in which all cells are recorded, or None if there is none.

    Args:
        cells: cells of one paper or of the league, such as ``kuiper/fig3b/bias0/kuiper``.
        tiers: the tiers in order of preference; ``fair`` is first because each of its cells has its own search.
        folder: folder of recorded tables.
    """
    wanted = set(cells)
    group = min(wanted).split("/")[0]
    return next((tier for tier in tiers if wanted <= _recorded(folder / tier / group / RUNS)), None)


@lru_cache(maxsize=32)
def _recorded(path: Path) -> frozenset[str]:
    """Return the names of the cells in a table of runs, or none if the table does not exist."""
    return frozenset(read_table(path)["cell"]) if path.exists() else frozenset()
