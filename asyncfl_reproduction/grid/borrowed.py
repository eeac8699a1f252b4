"""Borrowed rates, which are learning rates that a cell takes from a search made elsewhere; such cells decide no claim.

A cell may take the rates that a study chose (``tuned: fedecho-overlaid_mnist``). These rates are borrowed if the
study's configuration differs from the cell's in anything but the searched settings, such as data, clients, delays or
versions. This is found by comparing the two configurations, and is not declared. The rates of a cell with its own
search are never borrowed, and those taken from another cell (``rates_of``) always are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from asyncfl_lite.runs.config import NOT_IN_HASH
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.home import CELLS
from asyncfl_reproduction.tuning.studies import Search, points_of, read_searches

HOW = NOT_IN_HASH | {"seed", "eval_every", "cohort"}
"""Settings in which a cell may differ from a search without borrowing its rates."""


def borrowed_from(cell: Cell) -> tuple[str, ...]:
    """Return why a cell's rates are borrowed, usually the settings in which the search differs; empty if they are not.

    Returns:
        The names of these settings, such as ``("alpha", "delay")``; the other cell's name if its rates are taken on
        purpose; or ``("study",)`` if the search is not in ``cells/tuning.yaml``.
    """
    if cell.rates_of is not None:
        return (cell.rates_of,)
    if cell.tuned is None:
        return ()
    searches = _searches(CELLS / "tuning.yaml")
    if cell.tuned not in searches:
        return ("study",)
    search, there = searches[cell.tuned]
    here = _flat(cell.config.as_dict())
    left_out = HOW | set(search.grid)
    names = sorted((here.keys() | there.keys()) - left_out)
    return tuple(name for name in names if here.get(name) != there.get(name))


def borrowed(cells: Iterable[Cell]) -> frozenset[str]:
    """Return the names of the cells whose rates are borrowed."""
    return frozenset(cell.name for cell in cells if borrowed_from(cell))


@cache
def _searches(path: Path) -> dict[tuple[str, str, str], tuple[Search, dict[str, Any]]]:
    """Map each (study, method, column) to its search and to the settings of the first combination in it."""
    return {
        (one.study, one.method, one.column): (one, _flat(one.config(points_of(one.grid)[0], one.seeds[0]).as_dict()))
        for one in read_searches(path)
    }


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as a flat mapping with names such as ``settings.distill_lr``."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return found
