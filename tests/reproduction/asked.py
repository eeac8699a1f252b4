"""Which cells a paper has, and which a claim or a question asks for."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from asyncfl_reproduction.grid.cells import Cell, expand_grid
from asyncfl_reproduction.home import CELLS
from asyncfl_reproduction.published import published

PAPERS = {"fedecho": "FedEcho", "fedrevive": "FedRevive", "kuiper": "KUIPER", "fedadt": "FedADT"}
TIERS = ("paper", "laptop", "smoke")


@cache
def cells_of(paper: str, tier: str) -> dict[str, Cell]:
    """A paper's cells of one tier by name, without those of other columns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{tier}.yaml")
        path.write_text(json.dumps({"tier": tier, "papers": [str(CELLS / f"{paper}.yaml")]}))
        return {cell.name: cell for cell in expand_grid(path)}


@cache
def printed(paper: str, artefact: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What a paper prints in a table, none for a plot, and the same as text."""
    table = published(PAPERS[paper], artefact)
    return table, table.astype(str)


@cache
def _matching(paper: str, row: tuple[tuple[str, str], ...]) -> pd.DataFrame:
    table, text = printed(paper, dict(row)["artefact"])
    return table[np.logical_and.reduce([text[column] == value for column, value in row])] if len(table) else table


def matching(paper: str, row: dict[str, str]) -> pd.DataFrame:
    """The printed rows of a paper that a cell's row means."""
    return _matching(paper, tuple(row.items()))


class Asked(dict):
    """Recorded numbers, by default none; remembers which cells were asked for."""

    def __init__(self, *recorded: dict) -> None:
        super().__init__(*recorded)
        self.names: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> object:
        self.names.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: object = None) -> object:
        self.names.add(name)
        return super().get(name, default)
