"""Labels of users' own data: one rule for every form in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError, reason, shown

MOST_NAMED = 5
"""Largest number of classes that a message lists."""
LARGEST = 2**53
"""Limit of labels: every whole number below it is the same as an integer and as a real number."""
WORDS_FOR_NOTHING = ("nan", "NaN", "<NA>", "NaT")
"""What NumPy and pandas make of missing values where they write them as words."""
NOT_SUPPORTED = "regression and several labels a sample are not supported"
"""Message for labels that are not classes."""


class Labels(NamedTuple):
    """Labels of one set of samples.

    Attributes:
        numbers: ``(n,)`` int64; indices in ``classes`` if there are any.
        classes: names of the classes, or none.
        are_words: whether the labels came as words; otherwise as numbers.
        declared: whether the data set says its classes itself; otherwise they are the words that occur.
    """

    numbers: np.ndarray
    classes: tuple[str, ...] = ()
    are_words: bool = False
    declared: bool = False


def labels_of(name: str, values: Any, classes: Sequence[str] = (), column: str = "") -> Labels:
    """Read labels: words, or whole numbers of any type; every form of data comes through here.

    Args:
        name: name of the labels in messages.
        values: ``(n,)`` labels, in a tensor, an array, a pandas column or a sequence.
        classes: names of the classes 0, 1, … if the data set says them.
        column: name of the labels' column in messages, if they have one.

    Raises:
        DataError: for missing labels, real numbers, several labels per sample, and mixtures.
    """
    check_dense(name, values)
    categories = getattr(getattr(values, "dtype", None), "categories", None)
    if categories is not None and all(isinstance(word, str) for word in categories):
        classes = tuple(categories)
    classes = classes or getattr(getattr(values, "features", None), "names", None) or ()  # Hugging Face's columns
    array = _array(name, values)
    if array.ndim != 1:
        raise DataError(f"{name}: must be (n,) whole numbers, got {_found(array)}{_instead(array)}; {NOT_SUPPORTED}")
    lacking = np.flatnonzero([is_missing(value) for value in array] if array.dtype.kind in "OU" else array != array)
    if len(lacking):
        whose = f"column {column!r} " if column else ""
        raise DataError(
            f"{name}: {whose}lacks {len(lacking)} of {len(array)}, such as the label of sample {lacking[0]}"
        )
    if array.dtype.kind == "U":
        return _of_words(name, array, tuple(classes))
    numbers = _whole(name, array)
    if classes and len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(classes):
        odd = numbers[(numbers < 0) | (numbers >= len(classes))][0]
        no_label = " (no label)" * int(odd < 0)
        raise DataError(f"{name}: must be 0 to {len(classes) - 1} as its features say, got {odd}{no_label}")
    return Labels(numbers, tuple(classes), declared=bool(classes))


def is_missing(value: object) -> bool:
    """Return True for None, NaN, pandas' NA and NaT, and for words that are blank or stand for these."""
    if isinstance(value, str):
        return not value.strip() or value in WORDS_FOR_NOTHING
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither equal nor unequal to itself
        return True


def check_dense(name: str, values: Any) -> None:
    """Raise an error for sparse and nested tensors, and for SciPy's sparse matrices.

    Raises:
        DataError: for these; the message says how to make them dense.
    """
    if isinstance(values, Tensor) and values.is_nested:
        raise DataError(f"{name}: must be samples of one shape, got a nested tensor; pad them to one shape")
    if isinstance(values, Tensor) and values.layout != torch.strided:
        kind = str(values.layout).removeprefix("torch.")
        raise DataError(f"{name}: must be a dense tensor, got a {kind} one; call its .to_dense() first")
    if isinstance(values, Tensor) and (values.is_meta or values.is_quantized):
        kind = "meta" if values.is_meta else "quantized"
        raise DataError(f"{name}: must be a tensor or an array of numbers, got a {kind} tensor")
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise DataError(f"{name}: must be a dense array, got a {type(values).__name__}; call its .toarray() first")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError(f"{name}: must not lack values, got {int(np.ma.getmaskarray(values).sum())} that are masked")


def _array(name: str, values: Any) -> np.ndarray:
    """Return labels as an array: of words, of numbers, of objects that lack some, or of several values per sample."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return (values.double() if values.is_floating_point() else values).numpy()
    try:
        array = np.asarray(values) if hasattr(values, "__array__") else flat(values)
        array = flat(array) if array.dtype.kind == "O" and array.ndim == 1 else array
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{name}: must be a tensor or an array of numbers ({reason(error)})") from None
    if array.dtype.kind != "O" or array.ndim != 1:
        return array
    given = [value for value in array if not is_missing(value)]
    words = [value for value in given if isinstance(value, str)]
    odd = [value for value in given if not isinstance(value, str | Real | np.bool_)]
    if odd or 0 < len(words) < len(given):
        odd += [value for value in given if not isinstance(value, str)]
        beside = f" beside {shown(words[0])}" if words else ""
        raise DataError(f"{name}: must be all words or all whole numbers, got {shown(odd[0])}{beside}")
    if len(given) < len(array):
        return array
    return array.astype(str) if words else np.array(array.tolist())


def flat(values: Iterable[Any]) -> np.ndarray:
    """Return a sequence of values as an array of objects, or with more dimensions if they are not single values."""
    if isinstance(values, str | Mapping | Set):
        raise TypeError(f"it is a {type(values).__name__}, not a sequence")
    plain: list[Any] = [None if value is np.ma.masked else value for value in values]
    plain = [value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value for value in plain]
    if any((isinstance(value, Sequence) and not isinstance(value, str | bytes)) or np.ndim(value) for value in plain):
        return np.array([np.asarray(value) for value in plain])
    return np.fromiter(plain, dtype=object, count=len(plain))


def _whole(name: str, array: np.ndarray) -> np.ndarray:
    """Return numbers as int64; raise an error for those that are not whole."""
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name}: must be all words or all whole numbers, got {shown(array[0])}")
    if array.dtype.kind == "f" and not (whole := array == np.round(array)).all():
        found = f"{_found(array)}, such as {array[~whole][0]:.6g}"
        raise DataError(f"{name}: must be (n,) whole numbers, got {found}; {NOT_SUPPORTED}")
    low, high = (float(array.min()), float(array.max())) if len(array) else (0, 0)
    if not -LARGEST < low <= high < LARGEST:
        raise DataError(f"{name}: must be whole numbers below {LARGEST}, got {low:.6g} to {high:.6g}")
    return array.astype(np.int64)


def _of_words(name: str, words: np.ndarray, classes: tuple[str, ...]) -> Labels:
    """Return words as indices in the classes that the data set says, or else in the sorted words."""
    if not classes:
        known, numbers = np.unique(words, return_inverse=True)
        return Labels(numbers.astype(np.int64), tuple(known.tolist()), are_words=True)
    number = {word: index for index, word in enumerate(classes)}
    if unknown := sorted(set(words.tolist()) - set(number)):
        raise DataError(f"{name}: must be of the data set's own classes {listed(classes)}, got {shown(unknown[0])}")
    return Labels(np.array([number[word] for word in words.tolist()], np.int64), classes, are_words=True, declared=True)


def _found(array: np.ndarray) -> str:
    return f"shape {array.shape} of {array.dtype}"


def _instead(array: np.ndarray) -> str:
    """Say how labels with one column, or with one column per class, become one number per sample."""
    if array.ndim == 2 and array.shape[1] == 1:
        return ", one column; write labels[:, 0]"
    is_one_hot = array.ndim == 2 and np.isin(array, (0, 1)).all() and (array.astype(int).sum(1) == 1).all()
    return ", one column per class; write labels.argmax(1)" * bool(is_one_hot)


def listed(names: Sequence[str]) -> str:
    """Return names as text, the first few of many."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
