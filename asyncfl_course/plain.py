"""Conversion of readers' answers to plain Python or to arrays, and a record of a function's wrong result."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

LONGEST = 90
"""Largest number of characters of a value that are shown."""


class Found(NamedTuple):
    """A wrong result of a reader's function, with its inputs and the right result.

    Attributes:
        says: a sentence with the input, the result and the expected result.
        inputs: the function's arguments.
        given: the function's result.
        wanted: the right result.
    """

    says: str
    inputs: tuple
    given: Any
    wanted: Any


def plain(value: Any) -> Any:
    """Return a tensor, array or series as a list (a number if it has no axes), and anything else unchanged."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
    if isinstance(value, torch.Tensor | np.ndarray | np.generic | pd.Series | pd.Index):
        return value.tolist()
    return value


def numbers_of(value: Any) -> np.ndarray:
    """Return numbers of any kind and shape as an array of floats; raise a TypeError for None."""
    if value is None:
        raise TypeError("None is no number")
    if isinstance(value, list | tuple):
        value = [numbers_of(one) for one in value]
    return np.asarray(plain(value), dtype=float)


def shown(value: Any) -> str:
    """Return a value on a short line: tensors, arrays, series as nested lists, numbers with at most six digits."""
    if isinstance(value, pd.DataFrame):
        return f"a table of shape {value.shape}"
    text = " ".join((getattr(value, "__name__", None) or repr(_short(plain(value)))).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _short(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_short, map(plain, value))) if type(value) in (list, tuple) else value
    return float(f"{value:.6g}") if isinstance(value, float) else value
