"""A check that all sets of samples, such as the clients', measure the same inputs on the same scale."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError

FACTOR = 10
"""A set is on another scale if almost all its samples are this many times as large, or as small, as the usual ones."""
LEAST = 16
"""Smallest number of numbers by which a set's scale is judged; of samples, if columns are judged one by one."""
LOOKED_AT = 200_000
"""About the largest number of numbers that are looked at in all sets together, if :data:`LEAST` samples of each do not
have more."""
MOST_TOLD = 3
"""Largest number of sets that a warning names."""
ALMOST_ALL = (0.1, 0.9)
"""Quantiles between which most samples lie."""


def check_scales(sets: Sequence[tuple[str, Tensor]], columns: Sequence[Hashable] = ()) -> None:
    """Compare the scales of sets of samples: those of training and test, and of each client.

    A set whose samples almost all are at least :data:`FACTOR` times as large as those of the usual set is refused,
    and so is one whose samples are that small. If this holds only for one column of several, a warning says so,
    because clients may differ in one respect. A warning names sets whose inputs are all the same number.

    Args:
        sets: name and ``(n, …)`` inputs of each set; token ids are not compared.
        columns: names of the inputs' columns, if they have some.

    Raises:
        DataError: for a set on another scale; the message names both sets and their ranges.
    """
    real = [(name, inputs) for name, inputs in sets if inputs.is_floating_point() and inputs.numel() >= LEAST]
    known = [_Scale(name, inputs, *_quantiles(inputs, LOOKED_AT // len(real))) for name, inputs in real]
    if len(known) < 2:
        return
    for row, _, usual in _odd([one.samples for one in known])[:1]:
        one, other = known[row], known[usual]
        raise DataError(
            f"{one.name}: go from {_span(one.inputs)}, and {other.name} from {_span(other.inputs)}; bring all of them "
            "to one scale"
        )
    several = [one for one in known if one.columns is not None]
    if odd := _odd([one.columns for one in several if one.columns is not None]):
        row, column, usual = odd[0]
        one, other = several[row], several[usual]
        which = columns[column] if columns else column
        spans = f"{_span(one.inputs[:, column])}, and that of {other.name} from {_span(other.inputs[:, column])}"
        more = f" ({len(odd) - 1} more are like this)" * (len(odd) > 1)
        warnings.warn(
            f"{one.name}: column {which!r} goes from {spans}; if the units differ, convert them{more}", stacklevel=5
        )
    constant = [one.name for one in known if np.ptp(one.samples) == 0 and torch.equal(*one.inputs.aminmax())]
    if constant and len(constant) < len(known):
        told = ", ".join(constant[:MOST_TOLD])
        warnings.warn(f"{told}: all numbers are the same, so nothing can be learned of them", stacklevel=5)


class _Scale(NamedTuple):
    """How large a set's inputs are.

    Attributes:
        name, inputs: the set.
        samples: ``(2, 1)`` quantiles of the samples' largest absolute values.
        columns: ``(2, columns)`` quantiles of the absolute values in each column; None for other shapes, or if there
            are few samples.
    """

    name: str
    inputs: Tensor
    samples: np.ndarray
    columns: np.ndarray | None


def _quantiles(inputs: Tensor, most: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a set's ``samples`` and ``columns``, from about ``most`` numbers of evenly chosen samples."""
    rows = max(LEAST, most // inputs[0].numel())
    few = inputs[:: max(1, len(inputs) // rows)].flatten(1).abs().float().numpy()
    samples = np.quantile(few.max(1, keepdims=True), ALMOST_ALL, axis=0)
    by_column = inputs.dim() == 2 and inputs.shape[1] > 1 and len(few) >= LEAST
    return samples, np.quantile(few, ALMOST_ALL, axis=0) if by_column else None


def _odd(sizes: Sequence[np.ndarray]) -> list[tuple[int, int, int]]:
    """Return index of set, column and index of the usual set wherever a column of a set is on another scale."""
    if len(sizes) < 2:
        return []
    low, high = np.stack(sizes, axis=1)  # (sets, columns) each
    usual = np.argsort(high, axis=0, kind="stable")[(len(sizes) - 1) // 2]
    usual_low, usual_high = (np.take_along_axis(one, usual[None], axis=0) for one in (low, high))
    odd = (low > FACTOR * usual_high) | ((FACTOR * high < usual_low) & (high > 0))
    return [(int(row), int(column), int(usual[column])) for row, column in np.argwhere(odd & (usual_low > 0))]


def _span(inputs: Tensor) -> str:
    low, high = inputs.aminmax()
    return f"{float(low):.4g} to {float(high):.4g}"
