"""The cells of a grid: experiments/*.yaml read, merged and checked before anything runs.

A tier's file (``experiments/smoke.yaml``) names papers' files; a paper's file holds its cells. A cell is one
configuration with several seeds. Cells that differ in few things are written as one family
(:mod:`asyncfl_lite.families`).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from asyncfl_lite.config import Config
from asyncfl_lite.errors import ConfigError, ResultError, unknown_name
from asyncfl_lite.families import PaperCell, Seeds, members, merged
from asyncfl_lite.registry import Settings
from asyncfl_lite.results import Result, Standing, load_complete, read_record, standing


class TierFile(Settings):
    """``experiments/<tier>.yaml``, or a part of a tier with a file of its own."""

    tier: str
    papers: list[str] = Field(min_length=1)
    only: list[str] = ["*"]
    """Patterns of the cells that are meant; each must match one."""


class PaperTier(Settings):
    """What a paper's cells have in common at one tier."""

    about: str = ""
    seeds: Seeds
    settings: dict[str, Any] = {}
    ours: dict[str, str] = {}
    """Settings that the paper does not print: setting -> what was taken and why. Written into every result."""


class PaperFile(Settings):
    """``experiments/<paper>.yaml``."""

    paper: str
    tiers: dict[str, PaperTier]
    cells: dict[str, PaperCell] = Field(min_length=1)
    definitions: dict[str, Any] = {}
    """A place for YAML anchors; not read."""


@dataclass(frozen=True)
class Cell:
    """One configuration of a grid, with its seeds.

    Attributes:
        name: stable and readable, ``fedecho/table2/large-dir0.1/fedbuff``; its folder.
        tier: ``smoke``, ``laptop`` or ``paper``.
        config: with the first seed.
        seeds: all of them.
        published: the printed numbers that it stands beside, each as column -> value.
        about: what the tier's data and model stand for.
        ours: setting -> what was taken, and why, where the paper prints nothing.
    """

    name: str
    tier: str
    config: Config
    seeds: tuple[int, ...]
    published: tuple[dict[str, str], ...] = ()
    about: str = ""
    ours: Mapping[str, str] = field(default_factory=dict)

    @property
    def artefacts(self) -> list[str]:
        """Tables and figures that it serves."""
        return [row["artefact"] for row in self.published]

    @property
    def configs(self) -> list[Config]:
        """One configuration a seed."""
        return [self.config.with_seed(seed) for seed in self.seeds]

    def folder(self, runs: Path) -> Path:
        """Where its results lie."""
        return runs / self.tier / self.name

    def is_complete(self, runs: Path) -> bool:
        """Whether every seed has a finished result of just this configuration, of today's meaning."""
        return self.state(runs) == "complete"

    def state(self, runs: Path) -> Standing:
        """Return how what is recorded stands: ``stale`` or ``changed`` if a seed's result is, else ``missing``."""
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
        """Return the finished results of just this configuration, in the order of seeds.

        A seed that was not run, or whose result is cut off or stale, is left out.
        """
        folders = [self.folder(runs) / f"seed-{seed}" for seed in self.seeds]
        found = [load_complete(folder, config) for folder, config in zip(folders, self.configs, strict=True)]
        return [result for result in found if result is not None]


def expand_grid(path: str | Path, *, paper: str = "all", only: str = "*") -> list[Cell]:
    """Read a tier's file and return its cells, every name and setting in them checked.

    Args:
        path: ``experiments/<tier>.yaml``.
        paper: only the cells of this paper.
        only: only cells whose name matches this pattern.

    Raises:
        ConfigError: one line that names file, cell, field and what is allowed.
    """
    path = Path(path)
    tier = _read(path, TierFile)
    files = {name: _read(path.parent / name, PaperFile) for name in tier.papers}
    papers = {file.paper for file in files.values()}
    if paper != "all" and paper not in papers:
        raise ConfigError(unknown_name(f"{path}: paper", paper, [*papers, "all"]))
    cells = [
        cell
        for name, file in files.items()
        if paper in ("all", file.paper)
        for cell in _cells(path.parent / name, file, tier.tier)
    ]
    for pattern in tier.only if paper == "all" else ():
        if not any(fnmatch.fnmatch(cell.name, pattern) for cell in cells):
            raise ConfigError(f"{path}: only: no cell of {len(cells)} matches {pattern!r}, such as {cells[0].name!r}")
    meant = [cell for cell in cells if any(fnmatch.fnmatch(cell.name, pattern) for pattern in tier.only)]
    chosen = [cell for cell in meant if fnmatch.fnmatch(cell.name, only)]
    if not chosen:
        raise ConfigError(f"{path}: no cell of {len(cells)} matches {only!r}, such as {cells[0].name!r}")
    return chosen


def _read(path: Path, kind: type[Settings]) -> Any:
    """Read and check a YAML file."""
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        there = sorted(p.name for p in path.parent.glob("*.yaml"))
        raise ConfigError(f"{path}: {error.strerror}; there are: {', '.join(there) or 'none'}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: no YAML ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: must be a mapping of {', '.join(kind.model_fields)}")
    try:
        return kind(**content)
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"{path}: {error}") from None


def _cells(path: Path, file: PaperFile, tier: str) -> Iterator[Cell]:
    """Merge a paper's settings for one tier."""
    if tier not in file.tiers:
        raise ConfigError(unknown_name(f"{path}: tier", tier, file.tiers))
    common, names = file.tiers[tier], set()
    for name, cell in (member for family in file.cells.items() for member in members(path, *family)):
        if name in names:
            raise ConfigError(f"{path}: cell {name}: there are two of this name")
        names.add(name)
        if cell.tiers is not None and tier not in cell.tiers:
            continue
        if unknown := [other for other in cell.seeds if other not in file.tiers]:
            raise ConfigError(f"{path}: cell {name}: {unknown_name('seeds', unknown[0], file.tiers)}")
        seeds = cell.seeds.get(tier, common.seeds)
        settings = merged(common.settings, cell.settings, (cell.tiers or {}).get(tier, {}))
        try:
            config = Config(**{**settings, "seed": seeds[0]})
        except (ConfigError, TypeError) as error:
            raise ConfigError(f"{path}: cell {name}: {error}") from None
        ours = {**common.ours, **cell.ours}
        yield Cell(name, tier, config, tuple(seeds), tuple(cell.published), common.about, ours)
