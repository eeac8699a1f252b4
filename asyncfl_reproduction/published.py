"""The papers' printed numbers and settings: ``printed/results.csv`` and ``printed/hyperparameters.csv``."""

from __future__ import annotations

from functools import lru_cache

import pandas as pd

from asyncfl_lite.base.errors import DataError
from asyncfl_reproduction.home import PAPERS


@lru_cache(maxsize=2)
def _read(name: str) -> pd.DataFrame:
    path = PAPERS / name
    if not path.exists():
        raise DataError(f"{path}: is not there; it holds the published numbers and comes with the package")
    return pd.read_csv(path)


def published(paper: str, artefact: str) -> pd.DataFrame:
    """Return the printed numbers of one table or figure, with one column per part of ``setting``.

    Args:
        paper: ``FedEcho``, ``FedRevive``, ``KUIPER`` or ``FedADT``.
        artefact: ``Table 2``.

    Raises:
        DataError: when the numbers are not there.
    """
    table = _read("results.csv")
    rows = table[(table["paper"] == paper) & (table["artefact"] == artefact)].reset_index(drop=True)
    parts = [
        dict(part.split("=", 1) for part in setting.split(";") if "=" in part) for setting in rows["setting"].fillna("")
    ]
    return pd.concat([rows, pd.DataFrame(parts, index=rows.index)], axis=1)


def hyperparameters(paper: str) -> pd.DataFrame:
    """Return the printed settings of a paper; rows of artefact ``missing`` are not printed there."""
    table = _read("hyperparameters.csv")
    return table[table["paper"] == paper].reset_index(drop=True)
