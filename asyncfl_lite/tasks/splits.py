"""Choosing and splitting samples such that every class has its share."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfl_lite.base.errors import DataError


def balanced(labels: np.ndarray, count: int | None, what: str = "samples") -> np.ndarray:
    """Return the sorted indices of ``count`` samples, balanced over classes, always the same ones.

    The samples of a smaller count are among those of a larger one. If a class runs out, other classes fill the rest.
    ``what`` names the setting that gives ``count`` in the error if there are fewer samples.
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


def stratified(labels: Any, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of two parts with the same share of every class, in random order; the second has ``count``.

    They are those of scikit-learn's ``train_test_split(np.arange(n), test_size=count, stratify=labels,
    random_state=seed)``, bit for bit. Importing scikit-learn takes longer than a short run.
    """
    number_of, sizes = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)[1:]
    left = len(number_of) - count
    if not len(sizes) or sizes.min() < 2 or min(left, count) < len(sizes):
        raise DataError(
            f"labels: two samples of each class are needed, and in each part as many samples as classes, to split "
            f"{len(number_of)} samples of {len(sizes)} classes into {left} and {count}"
        )
    rng = np.random.RandomState(seed)
    first = _shared_out(sizes, left, rng)
    second = _shared_out(sizes - first, count, rng)
    by_class = np.split(np.argsort(number_of, kind="stable"), sizes.cumsum()[:-1])
    shuffled = [own[rng.permutation(len(own))] for own in by_class]
    parts = [
        [own[:end] for own, end in zip(shuffled, first, strict=True)],
        [own[end:][:more] for own, end, more in zip(shuffled, first, second, strict=True)],
    ]
    return rng.permutation(np.concatenate(parts[0])), rng.permutation(np.concatenate(parts[1]))


def _shared_out(sizes: np.ndarray, count: int, rng: np.random.RandomState) -> np.ndarray:
    """Share out ``count`` draws in proportion to ``sizes``; the largest remainders get one more, ties at random."""
    exact = sizes / sizes.sum() * count
    shares = np.floor(exact)
    rest, missing = exact - shares, int(count - shares.sum())
    for value in np.unique(rest)[::-1]:
        if not missing:
            break
        tied = np.flatnonzero(rest == value)
        chosen = rng.choice(tied, size=min(len(tied), missing), replace=False)
        shares[chosen] += 1
        missing -= len(chosen)
    return shares.astype(int)
