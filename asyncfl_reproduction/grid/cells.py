"""Cells of a grid, read from cells/*.yaml, merged, and checked before anything runs.

A tier's file (``cells/smoke.yaml``) names papers' files; a paper's file holds its cells. A cell is one configuration
with several seeds. Cells that differ in only a few settings are written as one family
(:mod:`asyncfl_reproduction.grid.families`).
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from asyncfl_lite.base.errors import ConfigError, ResultError, nearest, shown, unknown_name
from asyncfl_lite.base.registry import Settings, import_own, located
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.results import Result, load_complete
from asyncfl_lite.runs.store import Standing, read_record, standing
from asyncfl_reproduction.grid.families import PaperCell, Seeds, members, merged, read_yaml
from asyncfl_reproduction.tuning.choices import chosen, chosen_for, tried
from asyncfl_reproduction.tuning.grids import Search, all_printed, method_of, name_of, nested, own_search

FOLDER = re.compile(r"[\w+=@-][\w .,+=@-]{0,199}")
"""Pattern for the names of tiers and the parts of cells' names, which become names of folders."""
TWIN = "@printed"
"""Ending of the name of a cell of plain FedBuff, with equal weights and a fixed server rate (see :mod:`.columns`). In
the league, every method has such a cell, in which only the clients' rate was searched."""
ALL_PRINTED = "@all-printed"
"""Ending of the name of a cell that takes all rates that its paper's table prints for its method."""
SERVER_RATE = "@server-rate"
"""Ending of the name of a cell with a fixed server rate, and everything else searched."""
ENDINGS = {"tuned": "", "printed": TWIN, "server_rate": SERVER_RATE, "all_printed": ALL_PRINTED}
"""Column -> the ending of its cells' names."""
TUNED = "tuned"
"""Key in a cell's settings: the league's study (:mod:`asyncfl_reproduction.tuning.choices`) whose choice for its method
the cell takes."""
RATES = "rates"
"""Key in a cell's settings: settings by method, of which the cell takes its method's."""
SEARCH = "search"
"""Key in a cell's settings: the grids (``cells/grids.yaml``) of the cell's own search."""
RATES_OF = "rates_of"
"""Key in a cell's settings: another cell, whose searched rates this one takes, as an ablation may take its parent's."""
SOURCES = (TUNED, RATES, SEARCH, RATES_OF)
"""Keys that say where a cell's rates come from."""
FOLDERS = "a folder's name of letters, digits and _ - + = @ . , or blanks, which begins with none of the last three"


def _folders_name(name: str) -> str:
    if not FOLDER.fullmatch(name):
        raise ValueError(f"must be {FOLDERS}")
    return name


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Imports = Annotated[list[str], BeforeValidator(_listed), Field(alias="import")]
"""Users' modules or files that register classes for cells; a file's path is relative to the YAML file."""


Column = Literal["tuned", "printed", "server_rate", "all_printed"]
Columns = Annotated[list[Column], Field(min_length=1)]
"""Columns in which cells are run; see :data:`TWIN` and :data:`ALL_PRINTED`."""


class TierFile(Settings):
    """The content of ``cells/<tier>.yaml``, or of another file that holds a part of the tier."""

    tier: Annotated[str, AfterValidator(_folders_name)]
    papers: list[str] = Field(min_length=1)
    only: list[str] = ["*"]
    """Patterns of names: the tier has the cells that match one of them, and each must match a cell."""
    imports: Imports = []
    columns: Columns = ["tuned"]
    part: Annotated[str, AfterValidator(_folders_name)] | None = None
    """Name of the folder of these cells' runs and of their report, in place of the tier's, for a part of a tier."""
    seeds: Seeds | None = None
    """Seeds of all cells, in place of those of the tier."""


class PaperTier(Settings):
    """Settings common to a paper's cells in one tier."""

    about: str = ""
    seeds: Seeds
    settings: dict[str, Any] = {}
    ours: dict[str, str] = {}
    """Settings that the paper does not print: setting -> the value taken and why. Written into every result."""
    columns: Columns | None = None
    """Replaces the tier file's columns, if these cells have fewer."""
    looks: dict[Annotated[int, Field(ge=1)], list[str]] = {}
    """Number of seeds (0, 1, …) in place of ``seeds`` -> name patterns of the cells that get this number because with
    fewer their claims were open. A name alone leaves out other columns; ``fedbuff*`` takes all. Of several numbers the
    first counts; each pattern must match a cell."""

    def seeds_of(self, name: str) -> list[int]:
        """Return the seeds of a cell."""
        for count, patterns in self.looks.items():
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                return list(range(count))
        return self.seeds


class PaperFile(Settings):
    """The content of ``cells/<paper>.yaml``."""

    paper: str
    tiers: dict[str, PaperTier]
    cells: dict[str, PaperCell] = Field(min_length=1)
    definitions: dict[str, Any] = {}
    """Space for YAML anchors; not read."""
    imports: Imports = []


@dataclass(frozen=True)
class Cell:
    """One configuration of a grid, with its seeds.

    Attributes:
        name: a stable and readable name, such as ``fedecho/table2/large-dir0.1/fedbuff``, which is also its folder.
        tier: the tier, such as ``smoke``, ``laptop`` or ``paper``.
        config: the configuration with the first seed.
        seeds: all seeds.
        published: the rows of printed numbers that it is compared with, each as column -> value.
        about: the tier's data and models, and what they stand in for.
        ours: setting that the paper does not print -> our value, and why.
        imports: users' modules and files, which every process imports before it makes the configuration.
        waits_for: the search whose choice it needs, if that search has not been made; such a cell is not run.
        search: its own search, if it has one.
        part: the part of the tier that has a folder of its own, if the cell's file names one.
    """

    name: str
    tier: str
    config: Config
    seeds: tuple[int, ...]
    published: tuple[dict[str, str], ...] = ()
    about: str = ""
    ours: Mapping[str, str] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    waits_for: str | None = None
    search: Search | None = None
    part: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "config": self.config.as_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild the configuration when unpickled, after importing the user's modules that define its classes."""
        for place in state["imports"]:
            import_own(place)
        self.__dict__.update(state, config=Config(**state["config"]))

    @property
    def column(self) -> Column:
        """The column to which the cell belongs; see :data:`ENDINGS`."""
        return next((column for column, ending in ENDINGS.items() if ending and self.name.endswith(ending)), "tuned")

    @property
    def artefacts(self) -> list[str]:
        """Tables and figures that use the cell."""
        return [row["artefact"] for row in self.published]

    @cached_property
    def configs(self) -> tuple[Config, ...]:
        """One configuration per seed."""
        return tuple(self.config.with_seed(seed) for seed in self.seeds)

    @property
    def shelf(self) -> str:
        """Name of the folder that holds the runs and the report of the cell's part, or else of its tier."""
        return self.part or self.tier

    def folder(self, runs: Path) -> Path:
        """Return the folder that holds the cell's results."""
        return runs / self.shelf / self.name

    def is_complete(self, runs: Path) -> bool:
        """Return whether every seed has a finished result of this exact configuration that is not outdated."""
        return self.state(runs) == "complete"

    def state(self, runs: Path) -> Standing:
        """Return the state of the recorded results: ``complete``, ``stale``, ``changed`` or ``missing``."""
        folders = [self.folder(runs) / f"seed-{seed}" for seed in self.seeds]
        seeds = {standing(folder, config) for folder, config in zip(folders, self.configs, strict=True)}
        if seeds == {"complete"} and self._is_summarised(runs):
            return "complete"
        return next((state for state in ("stale", "changed") if state in seeds), "missing")

    def _is_summarised(self, runs: Path) -> bool:
        try:
            return read_record(self.folder(runs) / "result.json")["status"] == "complete"
        except (ResultError, KeyError):
            return False

    def load(self, runs: Path) -> list[Result]:
        """Return the finished results of this exact configuration, in the order of seeds.

        Seeds that were not run, or whose results are incomplete or stale, are left out.
        """
        folders = [self.folder(runs) / f"seed-{seed}" for seed in self.seeds]
        found = [load_complete(folder, config) for folder, config in zip(folders, self.configs, strict=True)]
        return [result for result in found if result is not None]


def expand_grid(path: str | Path, *, paper: str = "all", only: str = "*", imports: Iterable[str] = ()) -> list[Cell]:
    """Read a tier's file and return its cells, with every name and setting checked.

    Args:
        path: ``cells/<tier>.yaml``.
        paper: the paper whose cells are returned, or ``all``.
        only: pattern that the cells' names must match.
        imports: users' modules or files that register classes for cells, in addition to those that the files import.

    Raises:
        ConfigError: one line that names the file, the cell, the field and the allowed values.
    """
    path = Path(path)
    own = _imported(imports, Path.cwd())
    tier = read_yaml(path, TierFile)
    own += _imported(tier.imports, path)
    cells = _cells_of_papers(path, tier, paper, own)
    for pattern in tier.only if paper == "all" else ():
        _matching(path, cells, pattern)
    meant = [cell for cell in cells if any(fnmatch.fnmatch(cell.name, pattern) for pattern in tier.only)]
    return _matching(path, meant, only)


def _imported(places: Iterable[str], whose: Path) -> list[str]:
    """Import modules, and return the paths under which other processes find them."""
    found = [located(place, whose if whose.is_dir() else whose.parent) for place in places]
    for place in found:
        try:
            import_own(place)
        except ConfigError as error:
            raise ConfigError(str(error) if whose.is_dir() else f"{whose}: {error}") from None
    return found


def _cells_of_papers(path: Path, tier: TierFile, paper: str, own: Sequence[str]) -> list[Cell]:
    """Return the cells of one paper, or those of all papers that a tier names."""
    files = [(path.parent / name, read_yaml(path.parent / name, PaperFile)) for name in dict.fromkeys(tier.papers)]
    papers = {file.paper for _, file in files}
    if paper not in ("all", *papers):
        raise ConfigError(unknown_name(f"{path}: paper", paper, [*papers, "all"]))
    chosen = [one for one in files if paper in ("all", one[1].paper)]
    cells = [cell for place, file in chosen for cell in _cells(place, file, tier, own)]
    if twice := [name for name, count in Counter(cell.name for cell in cells).items() if count > 1]:
        raise ConfigError(f"{path}: cell {twice[0]}: there are two of this name")
    return cells


def _matching(path: Path, cells: list[Cell], pattern: str) -> list[Cell]:
    found = [cell for cell in cells if fnmatch.fnmatch(cell.name, pattern)]
    if not found:
        such = f", such as {cells[0].name!r}" if cells else ""
        raise ConfigError(f"{path}: only: no cell of {len(cells)} matches {shown(pattern)}{such}")
    return found


def _cells(path: Path, file: PaperFile, of: TierFile, own: Sequence[str]) -> Iterator[Cell]:
    tier = of.tier
    if tier not in file.tiers:
        raise ConfigError(unknown_name(f"{path}: tier", tier, file.tiers))
    names, own = set[str](), tuple(dict.fromkeys([*own, *_imported(file.imports, path)]))
    for family in file.cells.items():
        _check_tiers(path, *family, file)
        for name, cell in members(path, *family):
            if name in names:
                raise ConfigError(f"{path}: cell {name}: there are two of this name")
            if not all(map(FOLDER.fullmatch, name.split("/"))):
                raise ConfigError(f"{path}: cell {shown(name)}: each part of its name must be {FOLDERS}")
            names.add(name)
            if cell.tiers is None or tier in cell.tiers:
                for column in file.tiers[tier].columns or of.columns:
                    if (made := _cell(path, name, cell, of, file.tiers[tier], column)) is not None:
                        yield replace(made, imports=own)
    for pattern in itertools.chain(*file.tiers[tier].looks.values()):
        if not fnmatch.filter(names, pattern):
            raise ConfigError(f"{path}: tiers.{tier}.looks: {unknown_name('cell', pattern, names)}")


def _cell(path: Path, name: str, cell: PaperCell, of: TierFile, common: PaperTier, column: Column) -> Cell | None:
    """Return a cell with its tier's settings, or None if the column has no version of this cell."""
    tier = of.tier
    given = merged(common.settings, cell.settings, (cell.tiers or {}).get(tier, {}))
    settings = {key: value for key, value in given.items() if key not in SOURCES}
    name += ENDINGS[column]
    seeds = of.seeds or cell.seeds.get(tier) or common.seeds_of(name)
    try:
        found = _rates(tier, name, given, settings, column)
        if found is None:
            return None
        rates, search, waits_for = found
        # what was searched wins over settings; but an ablation's own settings win over rates that it takes
        layers = [settings, rates] if given.get(SEARCH) else [rates, settings]
        config = Config.from_mapping({**merged(*layers), "seed": seeds[0]})
    except ConfigError as error:
        raise ConfigError(f"{path}: cell {name}: {error}") from None
    ours, published = {**common.ours, **cell.ours}, tuple(cell.published) if column == "tuned" else ()
    return Cell(name, tier, config, tuple(seeds), published, common.about, ours,
                waits_for=waits_for, search=search, part=of.part)  # fmt: skip


def _rates(
    tier: str, name: str, given: Mapping[str, Any], settings: dict[str, Any], column: Column
) -> tuple[dict[str, Any], Search | None, str | None] | None:
    """Return a cell's rates, its own search and the search for which it waits; None if the column has no such cell."""
    if given.get(SEARCH):
        if column == "all_printed":
            rates = all_printed(given[SEARCH], settings)
            return None if rates is None else (nested(rates), None, None)
        search = own_search(name, given[SEARCH], settings, column)
        choice = None if search is None else chosen_for(tier, name, column)
        return None if search is None else (nested(choice or {}), search, None if choice else f"that of {name}")
    if study := given.get(TUNED):
        search = name_of(study, method_of(settings), column)
        if column in ("tuned", "printed") and tried(search):
            return chosen(search), None, None
        return ({}, None, search) if column == "tuned" else None
    if column != "tuned":
        return None
    if parent := given.get(RATES_OF):
        choice = chosen_for(tier, parent)
        return nested(choice or {}), None, None if choice else f"that of {parent}"
    rates, method = given.get(RATES), method_of(settings)
    return rates.get(method, {}) if isinstance(rates, dict) and isinstance(method, str) else {}, None, None


def _check_tiers(path: Path, name: str, family: PaperCell, file: PaperFile) -> None:
    """Raise an error for a misspelt tier in a cell, because its settings would be ignored without notice.

    A cell may have tiers that the file does not have, unless such a name resembles one of the file's tiers.
    """
    values = [value for axis in family.over.values() for value in axis.values()]
    tiers = [tier for part in (family, *values) for tier in part.tiers or {} if nearest(tier, file.tiers) is not None]
    for setting, named in (("seeds", family.seeds), ("tiers", tiers)):
        if unknown := [tier for tier in named if tier not in file.tiers]:
            raise ConfigError(f"{path}: cell {name}: {unknown_name(setting, unknown[0], file.tiers)}")
