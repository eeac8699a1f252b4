"""Reading and checking of ``cells/tuning.yaml``, which lists the settings that each method of a study tries.

A study has one workload in one setting. Each of its methods has a grid for the column ``tuned``, and one for the column
``printed``, in which the server's settings are fixed (:mod:`~asyncfl_reproduction.grid.columns`). Within a column, all
grids have the same size. All grids of an algorithm name the same options, some with only one value, so that no search
depends on defaults that another search has chosen.
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.registry import Settings
from asyncfl_lite.runs.config import Config
from asyncfl_reproduction.grid.families import Seeds, are_different, merged
from asyncfl_reproduction.grid.yaml_files import read_yaml
from asyncfl_reproduction.tuning.grids import Grid
from asyncfl_reproduction.tuning.tuned import nested

Column = Literal["tuned", "printed"]


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
    """The search for one method's settings in one column of a study.

    Attributes:
        study, method, column: its name.
        settings: settings that all combinations share.
        grid: option -> values; all combinations are tried.
        seeds: seeds with which each combination is run.
    """

    study: str
    method: str
    column: Column
    settings: dict[str, Any]
    grid: Grid
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """The search's name, such as ``fedecho-overlaid_mnist/fedbuff-tuned``."""
        return f"{self.study}/{self.method}-{self.column}"

    def config(self, point: dict[str, Any], seed: int) -> Config:
        """Return the configuration for one combination and seed; an error names the study and the method."""
        try:
            return Config.from_mapping(merged(self.settings, nested(point), {"seed": seed}))
        except ConfigError as error:
            raise ConfigError(f"{self.name}: {error}") from None


def points_of(grid: Grid) -> list[dict[str, Any]]:
    """Return all combinations of a grid's values."""
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def read_searches(path: str | Path, only: str = "*") -> list[Search]:
    """Read the file of studies, check every setting in it, and return its searches.

    Args:
        path: ``cells/tuning.yaml``.
        only: only searches whose name matches this pattern.

    Raises:
        ConfigError: one line that names the file, the study, the method and the allowed values.
    """
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
            search.config(points_of(search.grid)[0], search.seeds[0])
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
            yield Search(study, method, column, settings, grid, tuple(seeds))
    for column, found in sizes.items():
        if len(found) > 1:
            shown = ", ".join(f"{size} of {method}" for size, method in found.items())
            raise ConfigError(f"{study}: {column}: all methods must try as many combinations, got {shown}")
