"""Subsets of a data set, the type of unlabelled sets, and a check of class labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from torch import Tensor

from asyncfl_lite.base.errors import DataError

UnlabelledSet = Callable[[int, np.random.Generator], Tensor]
"""A function ``(count, rng) -> (count, …)`` that draws inputs like the task's own."""


def balanced(labels: np.ndarray, count: int | None, what: str = "samples") -> np.ndarray:
    """Return the sorted indices of ``count`` samples, balanced over classes, always the same ones.

    The samples of a smaller count are among those of a larger one. If a class runs out, other classes fill the rest.

    Args:
        labels: ``(n,)`` labels.
        count: number of samples; None for all.
        what: name of the setting that gives ``count``, for the error message.

    Raises:
        DataError: when there are fewer samples.
    """
    if count is None:
        return np.arange(len(labels))
    if count > len(labels):
        raise DataError(f"{what}: must be at most {len(labels)}, got {count}")
    shuffled = np.random.default_rng(0).permutation(len(labels))
    turn = np.empty(len(labels), dtype=np.int64)  # a sample's number among those of its class
    for label in np.unique(labels):
        own = shuffled[labels[shuffled] == label]
        turn[own] = np.arange(len(own))
    return np.sort(shuffled[np.argsort(turn[shuffled], kind="stable")[:count]])


def check_labels(path: str | Path, labels: np.ndarray, samples: int, classes: int) -> None:
    """Check that there is one label per sample, and that each is from 0 to ``classes`` - 1.

    Raises:
        DataError: if not; the message names the file and says what is allowed.
    """
    if len(labels) != samples or not samples:
        raise DataError(f"{path}: must have a label for each sample, at least 1, has {len(labels)} for {samples}")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise DataError(f"{path}: labels must be 0 to {classes - 1}, got {low if low < 0 else high}")
