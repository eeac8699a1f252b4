"""Settings to try, by method, read from ``cells/grids.yaml`` and ``cells/tuning.yaml`` and checked.

A cell that names a set of grids (``search: fedecho-images``) has its own search: its configuration is run with each
combination of its method's grid, and scored on validation samples. So its rates are searched exactly where they are
used. All methods have the same number of tries, which are spent in the same way: all combinations with one seed, and
the best of them with more seeds.

A study has one workload of the league. Each of its methods has a grid for the column ``tuned``, and one for the column
``printed``, in which the server's settings are fixed (:mod:`~asyncfl_reproduction.grid.columns`). Within a column, all
grids have the same size. All grids of an algorithm name the same options, some with only one value, so that no search
depends on defaults that another search has chosen.
"""

from __future__ import annotations

import fnmatch
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from asyncfl_lite.base.errors import ConfigError, unknown_name
from asyncfl_lite.base.registry import Settings
from asyncfl_lite.runs.config import Config
from asyncfl_reproduction.grid.families import Seeds, are_different, merged, read_yaml
from asyncfl_reproduction.home import CELLS

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


class TriedMethod(Settings):
    """One method of a study, as written in ``cells/tuning.yaml``."""

    settings: dict[str, Any] = {}
    tuned: Grid = Field(min_length=1)
    printed: Grid = {}
    """Empty if the paper prints no server setting that ``tuned`` tries."""


class StudyEntry(Settings):
    """A study, as written in ``cells/tuning.yaml``."""

    about: str
    settings: dict[str, Any]
    methods: dict[str, TriedMethod] = Field(min_length=1)
    seeds: Seeds | None = None
    """Seeds in place of the file's, if a run takes minutes."""


class StudyFile(Settings):
    """The content of ``cells/tuning.yaml``."""

    seeds: Seeds
    studies: dict[str, StudyEntry] = Field(min_length=1)
    definitions: dict[str, Any] = {}
    """Space for YAML anchors; not read."""


@dataclass(frozen=True)
class Search:
    """The search for one cell's settings, or for a method's settings in one column of a study.

    Attributes:
        name: the cell's name, or such as ``fedecho-overlaid_mnist/fedbuff-tuned``.
        settings: settings that all combinations share.
        grid: option -> values; all combinations are tried.
        seeds: seeds with which each combination is run.
        stages: further stages for the best combinations; a study has none.
    """

    name: str
    settings: dict[str, Any]
    grid: Grid
    seeds: tuple[int, ...]
    stages: tuple[Stage, ...] = ()

    def config(self, point: dict[str, Any], seed: int) -> Config:
        """Return the configuration for one combination and seed; an error names the search."""
        try:
            return Config.from_mapping(merged(self.settings, nested(point), {"seed": seed}))
        except ConfigError as error:
            raise ConfigError(f"search of {self.name}: {error}") from None

    def first(self) -> Config:
        """Return the first configuration that is tried."""
        return self.config(points_of(self.grid)[0], self.seeds[0])


def nested(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a combination's settings as nested mappings, one for each group.

    >>> nested({"client_lr": 0.1, "settings.distill_lr": 0.001})
    {'client_lr': 0.1, 'settings': {'distill_lr': 0.001}}
    """
    settings: dict[str, Any] = {}
    for name, value in point.items():
        group, dot, own = name.partition(".")
        if dot:
            settings.setdefault(group, {})[own] = value
        else:
            settings[name] = value
    return settings


def points_of(grid: Grid) -> list[dict[str, Any]]:
    """Return all combinations of a grid's values."""
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


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


def own_search(cell: str, named: str, settings: dict[str, Any], column: Searched = "tuned") -> Search | None:
    """Return a cell's search, or None if its method has no search in this column.

    ``named`` is the set of grids, such as ``fedecho-images``, or ``fedecho-images/fedecho-noise`` if the cell's method
    has more than one grid there; ``settings`` are the cell's merged settings.
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
    if grid is None:
        return None
    return Search(cell, {**settings, "eval_split": "validation"}, grid, tuple(tried.seeds), tuple(tried.stages))


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


def read_searches(path: str | Path, only: str = "*") -> list[Search]:
    """Read ``cells/tuning.yaml``, check every setting in it, and return the searches whose names match a pattern."""
    path = Path(path)
    file = read_yaml(path, StudyFile)
    try:
        searches = [
            search
            for name, entry in file.studies.items()
            for search in _searches(name, entry, entry.seeds or file.seeds)
        ]
        _check_knobs(searches)
        for search in searches:
            search.first()
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    found = [search for search in searches if fnmatch.fnmatch(search.name, only)]
    if not found:
        raise ConfigError(f"{path}: only: no search of {len(searches)} matches {only!r}, such as {searches[0].name!r}")
    return found


def _check_knobs(searches: list[Search]) -> None:
    knobs: dict[str, Search] = {}
    for search in searches:
        first = knobs.setdefault(search.settings["algorithm"], search)
        if set(search.grid) != set(first.grid):
            named = "; ".join(f"{', '.join(one.grid)} in {one.name}" for one in (first, search))
            raise ConfigError(f"{search.name}: all grids of an algorithm must name the same knobs, got {named}")


def _searches(study: str, entry: StudyEntry, seeds: list[int]) -> Iterator[Search]:
    sizes: dict[str, dict[int, str]] = {"tuned": {}, "printed": {}}
    for method, tried in entry.methods.items():
        settings = merged({"algorithm": method}, entry.settings, tried.settings)
        for column, grid in (("tuned", tried.tuned), ("printed", tried.printed)):
            if not grid:
                continue
            if not all(values and are_different(values) for values in grid.values()):
                raise ConfigError(f"{study}/{method}-{column}: a knob's values must be different ones, got {grid}")
            sizes[column].setdefault(len(points_of(grid)), method)
            yield Search(name_of(study, method, column), settings, grid, tuple(seeds))
    for column, found in sizes.items():
        if len(found) > 1:
            shown = ", ".join(f"{size} of {method}" for size, method in found.items())
            raise ConfigError(f"{study}: {column}: all methods must try as many combinations, got {shown}")


def name_of(study: str, method: str, column: str) -> str:
    """Return the name of a search from its study, method and column.

    >>> name_of("fedecho-overlaid_mnist", "fedbuff", "tuned")
    'fedecho-overlaid_mnist/fedbuff-tuned'
    """
    return f"{study}/{method}-{column}"


def parts_of(name: str) -> tuple[str, str, str]:
    """Return the study, the method and the column of a study's search from its name."""
    study, _, rest = name.partition("/")
    method, _, column = rest.rpartition("-")
    return study, method, column
