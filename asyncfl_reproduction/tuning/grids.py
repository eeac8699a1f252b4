"""Grids of settings to try for a cell, by method, read from ``cells/grids.yaml`` and checked.

A cell that names a set of grids (``search: fedecho-images``) has its own search: its configuration is run with each
combination of its method's grid, and scored on validation samples. So its rates are searched exactly where they are
used. All methods have the same number of tries, which are spent in the same way: all combinations with one seed, and
the best of them with more seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from asyncfl_lite.base.errors import ConfigError, unknown_name
from asyncfl_lite.base.registry import Settings
from asyncfl_lite.runs.config import Config
from asyncfl_reproduction.grid.families import Seeds, are_different, merged
from asyncfl_reproduction.grid.yaml_files import read_yaml
from asyncfl_reproduction.home import CELLS
from asyncfl_reproduction.tuning.tuned import nested

Grid = dict[str, list[Any]]
"""Option -> its values in order; an option in a group is written ``settings.distill_lr``."""


Searched = Literal["tuned", "printed", "server_rate"]
"""Columns whose settings are searched."""


class Stage(Settings):
    """A stage of a search, in which the best combinations so far continue with more seeds."""

    keep: int = Field(ge=1)
    seeds: Seeds


class ColumnOfGrids(Settings):
    """The grids of one column, and the stages of their search."""

    tries: int = Field(ge=1)
    """Number of combinations in every grid."""
    seeds: Seeds
    """Seeds with which every combination is run."""
    stages: list[Stage]
    grids: dict[str, dict[str, Grid]] = Field(min_length=1)
    """Name of a set -> method -> its grid."""

    @model_validator(mode="after")
    def _different_seeds(self) -> ColumnOfGrids:
        """Raise an error for a seed that a stage repeats, because it would count twice."""
        seeds = [*self.seeds, *(seed for stage in self.stages for seed in stage.seeds)]
        if not are_different(seeds):
            raise ValueError(f"stages: must have other seeds than the stages before, got {seeds}")
        return self


class GridsFile(Settings):
    """The content of ``cells/grids.yaml``."""

    tuned: ColumnOfGrids
    printed: ColumnOfGrids
    """Grids with the server's options fixed; see :mod:`asyncfl_reproduction.grid.columns`."""
    server_rate: ColumnOfGrids
    """Grids with the server's rate fixed, and everything else searched."""
    all_printed: dict[str, dict[str, dict[str, Any]]]
    """Name of a set -> method -> every rate that its paper's table prints for it, as option -> value."""
    definitions: dict[str, Any] = {}
    """Space for YAML anchors; not read."""


@dataclass(frozen=True)
class OwnSearch:
    """The search for one cell's settings.

    Attributes:
        cell: the cell's name.
        settings: the cell's configuration without the searched options.
        grid: option -> values; all combinations are tried.
        seeds: seeds with which all combinations are run.
        stages: further stages for the best combinations.
    """

    cell: str
    settings: dict[str, Any]
    grid: Grid
    seeds: tuple[int, ...]
    stages: tuple[Stage, ...]

    @property
    def name(self) -> str:
        """Name of the cell."""
        return self.cell

    def config(self, point: dict[str, Any], seed: int) -> Config:
        """Return the configuration of one combination, which is scored on validation samples."""
        try:
            return Config.from_mapping(merged(self.settings, nested(point), {"seed": seed, "eval_split": "validation"}))
        except ConfigError as error:
            raise ConfigError(f"search of {self.cell}: {error}") from None


def read_grids(path: Path | None = None) -> GridsFile:
    """Read and check ``cells/grids.yaml`` or another such file."""
    path = CELLS / "grids.yaml" if path is None else path
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _read(path: Path, _: int) -> GridsFile:
    file = read_yaml(path, GridsFile)
    for column in (file.tuned, file.printed, file.server_rate):
        for name, methods in column.grids.items():
            for method, grid in methods.items():
                tries = math.prod(map(len, grid.values()))
                if tries != column.tries or not all(map(are_different, grid.values())):
                    raise ConfigError(
                        f"{path}: {name}/{method}: must be {column.tries} different combinations, got {tries}"
                    )
    return file


def own_search(cell: str, named: str, settings: dict[str, Any], column: Searched = "tuned") -> OwnSearch | None:
    """Return a cell's search, or None if its method has no search in this column.

    Args:
        cell: the cell's name.
        named: the set of grids, such as ``fedecho-images``, or ``fedecho-images/fedecho-noise`` if the cell's method
            has more than one grid there.
        settings: the cell's merged settings.
        column: the cell's column.

    Raises:
        ConfigError: if there is no such set, or it has no grid for the method.
    """
    file = read_grids()
    group, _, method = named.partition("/")
    if group not in file.tuned.grids:
        raise ConfigError(unknown_name("search", group, file.tuned.grids))
    method = method or method_of(settings)
    if method not in file.tuned.grids[group]:
        raise ConfigError(unknown_name(f"search: {group}", method, file.tuned.grids[group]))
    tried: ColumnOfGrids = getattr(file, column)
    grid = tried.grids.get(group, {}).get(method)
    return None if grid is None else OwnSearch(cell, settings, grid, tuple(tried.seeds), tuple(tried.stages))


def all_printed(named: str, settings: dict[str, Any]) -> dict[str, Any] | None:
    """Return all rates that a paper's table prints for a cell's method, or None if it does not print all of them."""
    group, _, method = named.partition("/")
    return read_grids().all_printed.get(group, {}).get(method or method_of(settings))


def study_of(cell: str) -> str:
    """Return the study to which a cell belongs, which is the cell's folder, such as ``fedecho/table2/large-dir0.1``."""
    return cell.rpartition("/")[0]


def method_of(settings: dict[str, Any]) -> str:
    """Return a method's name in studies, which is its client selection if that is not uniform, as with Oort."""
    by_selection = settings.get("selection", "uniform") != "uniform"
    return settings.get("selection" if by_selection else "algorithm", "fedbuff")
