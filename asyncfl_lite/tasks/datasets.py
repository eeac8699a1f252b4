"""Readers for common forms of data: (input, label) pairs, rows with named columns (Hugging Face), tables (pandas)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError, reason, shown
from asyncfl_lite.tasks.arrays import (
    EIGHT_BITS,
    Samples,
    as_table,
    check_columns,
    depth_of,
    inputs_of,
    is_picture,
    labels_of,
    listed,
    numbers_of_columns,
    stacked_pictures,
    tensor_of,
)

USUAL_LABELS = ("label", "labels", "target", "class")
"""Common names of label columns, which the user need not give."""
FAILURES = (TypeError, ValueError, RuntimeError, LookupError, AttributeError, OSError)
"""Errors of items that cannot be read."""

Named = Hashable | Sequence[Hashable] | None
"""Column names: one column whose cells hold a whole input each; several columns of one number each; or None, to choose
them automatically."""


class Columns(NamedTuple):
    """Names of the columns of a data set: those of its inputs, one or several, and that of its labels."""

    inputs: Hashable | list[Hashable]
    labels: Hashable

    @property
    def listed(self) -> list[Hashable]:
        """All of them; the labels are last."""
        return [*(self.inputs if isinstance(self.inputs, list) else [self.inputs]), self.labels]


def read(
    prefix: str, data: Any, inputs: Named = None, labels: Hashable | None = None, like: Columns | None = None
) -> tuple[Samples, Columns | None]:
    """Read a data set.

    Args:
        prefix: beginning of names in messages, such as ``test_``.
        data: a map-style data set whose items are pairs ``(input, label)`` or mappings, or a pandas table.
        inputs: the columns of inputs; by default, in a table all columns but that of the labels, else the only other
            column.
        labels: the column of labels; by default one of :data:`USUAL_LABELS`.
        like: the columns of the training set, which this set must have, too, in any order.

    Returns:
        The samples, and the columns that they were read from; None if they have no names.

    Raises:
        DataError: when the data cannot be read; the message says which columns there are, or what to write.
    """
    where = f"{prefix}dataset"
    if isinstance(data, Mapping) and 0 not in data:
        several = ", ".join(map(repr, data))
        raise DataError(f"{where}: must be one data set, got {several}; write data[{shown(next(iter(data), 'train'))}]")
    table = as_table(data)
    if table is not None:
        columns = _columns(prefix, list(table.columns), inputs, labels, like, True)
        return _of_table(prefix, table, columns), columns
    if (names := getattr(data, "column_names", None)) is not None:
        columns = _columns(prefix, list(names), inputs, labels, like, False)
        return _of_rows(prefix, data, _as_values(data, columns), columns), columns
    rows = _items(where, data)
    if not isinstance(rows[0], Mapping) and inputs is None and labels is None:
        return _of_pairs(prefix, data, rows), None
    columns = _columns(prefix, list(rows[0]) if isinstance(rows[0], Mapping) else None, inputs, labels, like, False)
    return _of_rows(prefix, data, rows, columns), columns


def classes_of(where: str, data: Any, labels: Hashable | None = None) -> tuple[str, ...]:
    """Return the class names that a data set says: of Hugging Face's ``ClassLabel``, or torchvision's ``classes``.

    Args:
        where: name of the data set in messages.
        data: the data set, or torch's subset or concatenation of such data sets.
        labels: the column of labels, if columns have names.

    Raises:
        DataError: for a concatenation of data sets that number classes differently.
    """
    features = getattr(data, "features", None)
    if isinstance(features, Mapping):
        return tuple(getattr(features.get(labels), "names", None) or ())
    if isinstance(data, torch.utils.data.Subset):
        return classes_of(where, data.dataset, labels)
    if isinstance(data, torch.utils.data.ConcatDataset):
        found = list(dict.fromkeys(filter(None, (classes_of(where, part, labels) for part in data.datasets))))
        if len(found) > 1:
            told = " and ".join(map(listed, found[:2]))
            raise DataError(f"{where}: must number its classes alike in all its parts, got {told}")
        return found[0] if found else ()
    names = getattr(data, "classes", None)
    if not isinstance(names, list | tuple | np.ndarray) or getattr(data, "target_transform", None) is not None:
        return ()
    names = [", ".join(name) if isinstance(name, tuple) else name for name in names]  # ImageNet's have synonyms
    numbers = getattr(data, "class_to_idx", None)
    if isinstance(numbers, Mapping) and sorted(numbers.values()) == list(range(len(names))):
        names = sorted(numbers, key=numbers.__getitem__)
    return tuple(names) if all(isinstance(name, str) for name in names) else ()


def _columns(
    prefix: str,
    names: list[Hashable] | None,
    inputs: Named,
    labels: Hashable | None,
    like: Columns | None,
    is_table: bool,
) -> Columns:
    """Return the columns to read: the given ones, or those of the training set, or the usual ones.

    ``names`` are all columns of the data set, or None if it does not tell them. In a table, all columns but the labels
    are inputs by default. The other arguments are those of :func:`read`.
    """
    known = names or []
    told = ", ".join(map(str, known))
    if like is not None and names is not None:
        others = [name for name in names if name not in like.listed] if inputs is None else []
        check_columns(f"{prefix}dataset", names, like.listed, others)
        return like
    if labels is None:
        labels = next((name for name in USUAL_LABELS if names is None or name in names), None)
    if labels is None or (names is not None and labels not in names):
        raise DataError(f"{prefix}labels: must name one of the columns {told}, got {labels!r}{_near(labels, known)}")
    others = [name for name in known if name != labels]
    if inputs is None and (not others or (len(others) > 1 and not is_table)):
        told = ", ".join(map(str, others))
        raise DataError(f"{prefix}inputs: must name one or several of the columns {told}, such as inputs='image'")
    if inputs is None:
        return Columns(others if is_table else others[0], labels)
    is_one = isinstance(inputs, str) or not isinstance(inputs, Iterable) or (type(inputs) is tuple and inputs in known)
    wanted: list[Hashable] = [inputs] if is_one else list(cast("Iterable[Hashable]", inputs))
    for name in wanted:
        if name == labels:
            raise DataError(f"{prefix}inputs: must not name the column of labels, {name!r}")
        if names is not None and name not in names:
            found = f"{name!r}{_near(name, known)}"
            raise DataError(f"{prefix}inputs: must be one or several of the columns {told}, got {found}")
    return Columns(inputs if is_one else wanted, labels)


def _near(given: Hashable, names: Sequence[Hashable]) -> str:
    """Say which column is written like the given one, but is of another type, such as 2 and '2'."""
    return next((f"; write {name!r}" for name in names if name != given and str(name) == str(given)), "")


def _items(where: str, data: Any) -> list[Any]:
    """Return all items of a map-style data set."""
    try:
        if not len(data):
            raise ValueError("there are none")
        return [data[index] for index in range(len(data))]
    except FAILURES as error:
        raise _no_pairs(where, error) from None


def _no_pairs(where: str, error: Exception) -> DataError:
    found = f"{type(error).__name__}: {reason(error)}"
    return DataError(f"{where}: items must be (input, label) with inputs of one shape ({found})")


def _of_pairs(prefix: str, data: Any, items: list[Any]) -> Samples:
    """Read pairs of an input and a label."""
    where = f"{prefix}dataset"
    _check_loader(where, data)
    try:
        for item in items:
            if not isinstance(item, tuple | list) or len(item) != 2:
                raise TypeError(f"got {shown(item)}")
        inputs = _stack(f"{prefix}inputs", [value for value, _ in items])
    except DataError:
        raise
    except FAILURES as error:
        raise _no_pairs(where, error) from None
    labels = labels_of(f"{prefix}labels", [label for _, label in items], classes_of(where, data))
    return Samples(prefix, inputs_of(f"{prefix}inputs", inputs)[0], labels, is_fresh=True)


def _check_loader(where: str, data: Any) -> None:
    """Raise an error if torchvision's loader of folders clips images: it makes 8 bits of all that have more."""
    for part in getattr(data, "datasets", [getattr(data, "dataset", None)]):
        if part is not None:
            _check_loader(where, part)
    if getattr(getattr(data, "loader", None), "__module__", "") != "torchvision.datasets.folder":
        return
    from PIL import Image

    for path, _ in getattr(data, "samples", ()):
        with Image.open(path) as image:
            if depth_of(image) not in EIGHT_BITS:
                raise DataError(
                    f"{where}: must be read with loader=PIL.Image.open, since torchvision's own loader clips images of "
                    f"mode {image.mode}, such as {path}"
                )


def _as_values(data: Any, columns: Columns) -> Any:
    """Return a Hugging Face data set such that rows are values, and images Pillow's, which say what levels mean."""
    kinds = {type(data.features.get(name)).__name__ for name in columns.listed} if data.features else set()
    sound = (None, "custom") if "Image" in kinds else (None, "custom", "numpy", "torch")
    return data if (getattr(data, "format", None) or {}).get("type") in sound else data.with_format(None)


def _of_rows(prefix: str, data: Any, rows: Any, columns: Columns) -> Samples:
    """Read rows with named columns."""
    wanted, values = columns.listed, []
    try:
        values = [[row[name] for name in wanted] for row in rows]
    except FAILURES as error:
        told = f"{', '.join(map(str, wanted))} ({type(error).__name__}: {reason(error)})"
        raise DataError(f"{prefix}dataset: rows must hold {told}") from None
    if not values:
        raise DataError(f"{prefix}dataset: has no rows")
    classes = classes_of(f"{prefix}dataset", data, columns.labels)
    labels = labels_of(f"{prefix}labels", [row[-1] for row in values], classes)
    name = f"{prefix}inputs"
    first = values[0][0]
    if isinstance(columns.inputs, list) or isinstance(first, Real) or getattr(first, "ndim", None) == 0:
        index = {column: number for number, column in enumerate(wanted[:-1])}
        inputs = numbers_of_columns(name, wanted[:-1], lambda column: [row[index[column]] for row in values])
        return Samples(prefix, inputs, labels, tuple(wanted[:-1]), is_fresh=True)
    inputs = _stacked(name, columns.inputs, [row[0] for row in values])
    return Samples(prefix, inputs_of(name, inputs)[0], labels, is_fresh=True)


def _of_table(prefix: str, table: Any, columns: Columns) -> Samples:
    """Read a pandas table; columns of numbers become one float32 row per sample."""
    labels = labels_of(f"{prefix}labels", table[columns.labels])
    name, wanted = f"{prefix}inputs", columns.listed[:-1]
    if len(wanted) == 1 and str(getattr(table[wanted[0]], "dtype", "")) == "object":
        inputs = _stacked(name, wanted[0], list(table[wanted[0]]))
        return Samples(prefix, inputs_of(name, inputs)[0], labels, is_fresh=True)
    return Samples(prefix, numbers_of_columns(name, wanted, lambda column: table[column]), labels, tuple(wanted), True)


def _stacked(name: str, column: Hashable, values: list[Any]) -> Tensor:
    """Stack the values of a column, each of them a whole input, into one tensor."""
    if isinstance(values[0], str):
        raise DataError(
            f"{name}: column {column!r} holds words, got {shown(values[0])}; turn them into token ids first, such as "
            "data.map(lambda row: tokenizer(row['text'], padding='max_length', truncation=True)), then "
            "inputs='input_ids'"
        )
    try:
        return _stack(name, values)
    except DataError:
        raise
    except FAILURES as error:
        lengths = sorted({len(value) for value in values if np.ndim(value) == 1 or isinstance(value, list)})
        if len(lengths) > 1:
            raise DataError(
                f"{name}: column {column!r} holds {lengths[0]} to {lengths[-1]} values a row; pad them to one length, "
                "such as tokenizer(..., padding='max_length', truncation=True)"
            ) from None
        raise DataError(f"{name}: column {column!r} must hold numbers, of one shape ({reason(error)})") from None


def _stack(name: str, values: list[Any]) -> Tensor:
    """Stack values into one tensor, in memory of its own; Pillow images become levels from 0 to 1."""
    if all(map(is_picture, values)):
        return stacked_pictures(name, values)
    tensors = [tensor_of(name, value) for value in values]
    if len({one.is_floating_point() for one in tensors}) > 1 and not all(isinstance(value, list) for value in values):
        raise TypeError("some are real numbers, some whole numbers")
    return torch.stack(tensors)
