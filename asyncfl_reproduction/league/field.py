"""The league's settings, and the tuning of every method in them.

A place is one workload under one delay law in one column ("tuned", "printed"). Its cells,
``league/<workload>/<law>/<method>``, are those of a tier's file, ``cells/league.yaml``. The file ``tuning.yaml`` beside
it has the studies ``league-<workload>-<law>``, whose searches define what each method tries there. A newcomer's
settings and budget come from the same searches.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from asyncfl_lite.algorithms import ALGORITHMS, Algorithm
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs.config import Config
from asyncfl_reproduction.grid.cells import TWIN, expand_grid
from asyncfl_reproduction.tuning.grids import Grid, Search, name_of, parts_of, points_of, read_searches

TIER = "league"
"""First part of the names of cells and, before a dash, of studies."""
REFERENCE = "fedbuff"
"""The method that sets the target accuracy for times and, by its searches, the rates that a newcomer tries."""
OWN = ("algorithm", "settings", "selection", "selection_settings")
"""Settings of a search that belong to its method, not to the workload."""


@dataclass(frozen=True)
class Place:
    """A setting of the league: one workload under one delay law in one column of results.

    Attributes:
        workload, law, column: such as ``overlaid_mnist``, ``large``, ``tuned``.
        searches: method -> its search there; every method of the place has one.
        seeds: seeds of the runs that are compared.
    """

    workload: str
    law: str
    column: Literal["tuned", "printed"]
    searches: Mapping[str, Search]
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of the setting without its column, such as ``overlaid_mnist, large``."""
        return f"{self.workload}, {self.law}"

    @property
    def study(self) -> str:
        """Name of the study that holds this setting's searches."""
        return f"{TIER}-{self.workload}-{self.law}"

    @property
    def tries(self) -> int:
        """Number of combinations that each method may try before its grid grows."""
        return len(points_of(self.searches[REFERENCE].grid))

    @property
    def updates(self) -> int:
        """Number of client updates in each run."""
        config = self.config_of(REFERENCE)
        return config.rounds * config.buffer_size

    def cell(self, method: str) -> str:
        """Return the name of a method's cell in this setting."""
        return f"{TIER}/{self.workload}/{self.law}/{method}{TWIN if self.column == 'printed' else ''}"

    def config_of(self, method: str) -> Config:
        """Return the first configuration that a method's search tries."""
        return self.searches[method].first()

    def search_for(self, name: str, method: type[Algorithm], grid: Grid) -> Search:
        """Return a newcomer's search in this setting, with its own grid and the settings and seeds of all methods.

        How often the model is replaced and tested depends on the newcomer's kind, as for the field: it makes versions
        in rounds, from a buffer, or of one update each. In the column "printed" the newcomer has its own defaults, and
        tries the same client learning rates as all methods. It may not try more combinations than they do.
        """
        rates = {"client_lr": self.searches[REFERENCE].grid["client_lr"]}
        own = {**rates, **grid} if self.column == "tuned" else rates
        if len(points_of(own)) > self.tries:
            knobs = " × ".join(f"{len(values)} of {knob}" for knob, values in own.items())
            raise ConfigError(f"GRID: must be at most {self.tries} combinations, as many as others try; got {knobs}")
        like = self.searches[self._of_its_kind(method)]
        settings = {key: value for key, value in like.settings.items() if key not in OWN}
        search = Search(name_of(self.study, name, self.column), {"algorithm": name, **settings}, own, like.seeds)
        for point in points_of(own):
            search.config(point, search.seeds[0])
        return search

    def usual_grid(self, method: type[Algorithm]) -> Grid:
        """Return the grid of a newcomer that declares none: FedBuff's server rates, if the method uses one."""
        return {"server_lr": self.searches[REFERENCE].grid["server_lr"]} if method.uses_server_lr else {}

    def _of_its_kind(self, method: type[Algorithm]) -> str:
        """Return the league's first method that makes versions in the same way as this method."""
        wanted = _kind(method)
        for name, search in self.searches.items():
            if _kind(ALGORITHMS.get(search.settings["algorithm"])) == wanted:
                return name
        raise ConfigError(f"league: no method of the field makes versions {wanted}, as {method.__name__} does")


def _kind(method: type[Algorithm]) -> str:
    if method.scheduling == "rounds":
        return "in rounds"
    return "from a buffer" if method.buffered else "of one update each"


def read_places(tier_file: Path, *, quick: bool = False) -> list[Place]:
    """Return the league's settings, beginning with those in the column "tuned".

    If ``quick``, there are only those of the first workload in this column. The cells are in the tier's file,
    ``cells/league.yaml``; the studies are in ``tuning.yaml`` beside it.
    """
    searches: dict[tuple[str, str], dict[str, Search]] = {}
    for search in read_searches(tier_file.parent / "tuning.yaml", f"{TIER}-*"):
        study, method, column = parts_of(search.name)
        searches.setdefault((study, column), {})[method] = search
    seeds: dict[tuple[str, ...], tuple[int, ...]] = {}
    for cell in expand_grid(tier_file, paper=TIER):
        seeds.setdefault(tuple(cell.name.split("/")[1:-1]), cell.seeds)
    places = []
    for column, (where, own) in itertools.product(("tuned", "printed"), seeds.items()):
        tried = searches.get((f"{TIER}-{'-'.join(where)}", column), {})
        if REFERENCE in tried:
            places.append(Place(*where, column, tried, own))
    if not places:
        raise ConfigError(f"{tier_file}: no place of its cells has a study of {REFERENCE} in tuning.yaml beside it")
    chosen = [place for place in places if (place.workload, place.column) == (places[0].workload, "tuned")]
    return chosen if quick else places
