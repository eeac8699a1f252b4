"""Recording of the league: first the searches of all its methods, then its cells; both can be resumed."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from pathlib import Path

from asyncfl_lite.base.errors import ConfigError
from asyncfl_reproduction.grid.cells import Cell, expand_grid
from asyncfl_reproduction.grid.cost import Estimate, estimate
from asyncfl_reproduction.grid.record import write_tidy
from asyncfl_reproduction.grid.run import Report, run_grid
from asyncfl_reproduction.league.field import Place, read_places
from asyncfl_reproduction.league.run import searched
from asyncfl_reproduction.tuning.choices import tried
from asyncfl_reproduction.tuning.grids import Search, parts_of, points_of


def record_field(
    tier_file: Path,
    runs: Path,
    kept: Path,
    *,
    only: str = "*",
    workers: int = 1,
    allowed: Callable[[Estimate], None],
    say: Callable[[str], None] = print,
) -> Report:
    """Search for the rates of the league's methods, run the league's cells, and save each result as soon as it is done.

    ``allowed`` is called with the estimated cost before anything is run, and may raise an error. The pattern ``only``
    selects cells and their searches.
    """
    left = searches_left(tier_file, only)
    known = _cells(tier_file, only)
    if not known and not left:
        raise ConfigError(f"only: no cell of {tier_file} matches {only!r}")
    waiting = [_as_cell(place, search, {cell.name for cell in known}) for place, search in left]
    allowed(estimate([*waiting, *known], runs, kept=kept, workers=workers))
    searched((search for _, search in left), None, workers, say)
    cells = _cells(tier_file, only)  # more than before, because of the searches that were made now
    return run_grid(cells, runs, workers=workers, finished=lambda cell: write_tidy([cell], runs, kept / cell.tier))


def _cells(tier_file: Path, only: str) -> list[Cell]:
    return [cell for cell in expand_grid(tier_file) if fnmatch.fnmatch(cell.name, only)]


def searches_left(tier_file: Path, only: str = "*") -> list[tuple[Place, Search]]:
    """Return the league's searches without a recorded outcome, each with its setting."""
    return [
        (place, search)
        for place in read_places(tier_file)
        for method, search in place.searches.items()
        if fnmatch.fnmatch(place.cell(method), only) and not tried(search.name)
    ]


def _as_cell(place: Place, search: Search, known: set[str]) -> Cell:
    """Return a cell with a search's runs, and those of the method's own cell if missing, to estimate their cost."""
    runs = len(points_of(search.grid)) * len(search.seeds)
    runs += 0 if place.cell(parts_of(search.name)[1]) in known else len(place.seeds)
    return Cell(f"search/{search.name}", "search", search.first(), tuple(range(runs)))
