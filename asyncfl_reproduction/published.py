"""The papers' printed numbers, their settings and the layout of their tables, from the three files in ``printed/``."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

import pandas as pd

from asyncfl_lite.base.errors import DataError
from asyncfl_reproduction.digests import checked
from asyncfl_reproduction.home import PAPERS


@lru_cache(maxsize=3)
def _read(name: str) -> pd.DataFrame:
    path = PAPERS / name
    if not path.exists():
        raise DataError(f"{path}: is not there; it holds the published numbers and comes with the package")
    return pd.read_csv(checked(path))


def published(paper: str, artefact: str) -> pd.DataFrame:
    """Return the printed numbers of one table or figure, with one column per part of ``setting``."""
    table = _read("results.csv")
    rows = table[(table["paper"] == paper) & (table["artefact"] == artefact)].reset_index(drop=True)
    parts = [
        dict(part.split("=", 1) for part in setting.split(";") if "=" in part) for setting in rows["setting"].fillna("")
    ]
    return pd.concat([rows, pd.DataFrame(parts, index=rows.index)], axis=1)


def artefacts(paper: str) -> list[str]:
    """Return the names of a paper's tables, figures and texts that have printed numbers, in the recorded order."""
    table = _read("results.csv")
    return list(dict.fromkeys(table.loc[table["paper"] == paper, "artefact"]))


def hyperparameters(paper: str) -> pd.DataFrame:
    """Return a paper's hyperparameters; in rows whose artefact is ``missing``, the paper does not print the value."""
    table = _read("hyperparameters.csv")
    return table[table["paper"] == paper].reset_index(drop=True)


class Artefact(NamedTuple):
    """The layout of a paper's table or figure, a row of ``printed/artefacts.csv``.

    Attributes:
        rows, columns: settings that form a table's rows and columns; a table without them is a plain list.
        reference: the settings of the row with which the others are compared, column by column, which is the paper's
            own method or default. Empty if rows are not compared.
        sketch: the content of a figure that shows no measurements.
    """

    rows: list[str]
    columns: list[str]
    reference: dict[str, str]
    sketch: str


@cache
def layout(paper: str, artefact: str) -> Artefact:
    """Return the layout of a table or figure; one without a recorded layout counts as a plain list.

    Example:
        >>> layout("FedADT", "Table IV")
        Artefact(rows=['method'], columns=['concurrency'], reference={'method': 'FedADT'}, sketch='')
    """
    table = _read("artefacts.csv").fillna("")
    found = table[(table["paper"] == paper) & (table["artefact"] == artefact)]
    rows, columns, reference, sketch = next(found.iloc[:, 2:].itertuples(index=False), ("",) * 4)
    named = dict(part.split("=", 1) for part in reference.split(";") if part)
    return Artefact([*filter(None, rows.split(";"))], [*filter(None, columns.split(";"))], named, sketch)
