"""A user's own table of samples, read row by row or by columns: pandas, Hugging Face, pairs, inputs and labels."""

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
    Labels,
    array_of,
    depth_of,
    is_picture,
    labels_of,
    listed,
    private,
    stacked_pictures,
    tensor_of,
)

COLOURS = (1, 3, 4)
"""Possible numbers of channels of images."""
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


class Samples(NamedTuple):
    """One set of samples of users' own data: the training or the test samples, perhaps those of one client.

    Attributes:
        prefix: beginning of the set's names in messages, such as ``test_``.
        inputs: ``(n, …)`` real numbers, or whole numbers that are token ids, perhaps in the user's own memory.
        labels: the labels.
        columns: names of the columns of numbers that ``inputs`` were read from, or none.
        is_fresh: whether nobody else holds the memory of ``inputs``.
    """

    prefix: str
    inputs: Tensor
    labels: Labels
    columns: tuple[Hashable, ...] = ()
    is_fresh: bool = False


def samples_of(prefix: str, inputs: Any, labels: Any, like: Samples | None = None) -> Samples:
    """Check one set of samples by itself; columns that have names must be those of the set ``like``."""
    inputs, is_private = private(inputs)
    tensor, columns = inputs_of(f"{prefix}inputs", inputs, None if like is None else like.columns)
    answers = labels_of(f"{prefix}labels", labels)
    check_rows(f"{prefix}labels", inputs, labels)
    return Samples(prefix, tensor, answers, columns, is_private or bool(columns))


def check_rows(name: str, inputs: Any, values: Any) -> None:
    """Raise an error if pandas' inputs and labels (or owners) name the same rows, but in another order."""
    rows = [one.index for one in (inputs, values) if hasattr(one, "iloc")]
    if len(rows) == 2 and not rows[0].equals(rows[1]) and set(rows[0]) == set(rows[1]):
        raise DataError(
            f"{name}: must have rows in the order of inputs, whose index has another one; write "
            f"{name.rpartition(' ')[2]}.loc[inputs.index], or call reset_index(drop=True) of both"
        )


def inputs_of(
    name: str, values: Any, columns: tuple[Hashable, ...] | None = None
) -> tuple[Tensor, tuple[Hashable, ...]]:
    """Return inputs as a tensor, perhaps in the user's memory, and the names of their columns if they have some.

    Args:
        name: name of the inputs in messages.
        values: ``(n, …)`` inputs: a tensor, an array, a pandas table, or a sequence.
        columns: names of the columns that a table must have, in any order; None for any.
    """
    table = as_table(values)
    if table is not None:
        found = list(table.columns)
        wanted = tuple(found) if columns is None else columns
        check_columns(name, found, wanted, [column for column in found if column not in wanted])
        return numbers_of_columns(name, table, wanted), wanted
    check_columns(name, (), columns or (), ())
    tensor = tensor_of(name, values)
    if tensor.dim() < 2:
        raise DataError(f"{name}: must have one sample per row, (n, …), got shape {tuple(tensor.shape)}")
    shape = tuple(tensor.shape)
    channels_last = len(shape) == 4 and shape[-1] in COLOURS and shape[1] not in COLOURS
    what = name.rpartition(" ")[2]
    as_torch = f"torch.as_tensor({what}){'.permute(0, 3, 1, 2)' * channels_last}"
    if tensor.dtype == torch.uint8 and len(shape) > 2:
        told = f"got torch.uint8 of shape {shape}"
        raise DataError(f"{name}: must be real numbers, or int64 token ids, {told}; write {as_torch} / 255")
    if tensor.dtype in (torch.uint8, torch.bool) or tensor.is_complex():
        raise DataError(f"{name}: must be real numbers, or int64 token ids, got {tensor.dtype}; scale them first")
    if tensor.is_floating_point() and channels_last:
        raise DataError(f"{name}: images must be (n, channels, height, width), got shape {shape}; write {as_torch}")
    if tensor.is_floating_point() and tensor.numel():
        by_column = tensor.dim() == 2 and tensor.dtype == torch.float64
        _check_range(name, *(one.double().numpy() for one in tensor.aminmax(dim=0 if by_column else None)))
    elif tensor.numel() and tensor.min() < 0:
        raise DataError(f"{name}: must be real numbers, or token ids from 0, got {int(tensor.min())}")
    return tensor, ()


def _check_range(name: str, low: Any, high: Any) -> None:
    """Raise an error unless float32 holds numbers from ``low`` to ``high``, of each column or of all, and apart."""
    low, high = np.atleast_1d(low).astype(np.float64), np.atleast_1d(high).astype(np.float64)
    if not np.isfinite([low, high]).all():
        raise DataError(f"{name}: must be finite numbers, got NaN or infinity")
    far = max(low.min(), high.max(), key=abs)
    if abs(far) > float(np.finfo(np.float32).max):
        raise DataError(f"{name}: must be finite as float32, got {far:.6g}; scale them first")
    if (same := (low < high) & (low.astype(np.float32) == high.astype(np.float32))).any():
        told = f"{float(low[same][0])} to {float(high[same][0])}, all the same"
        raise DataError(f"{name}: must differ as float32, got {told}; subtract their mean, or scale them")


def check_columns(name: str, found: Sequence[Hashable], wanted: Sequence[Hashable], others: Sequence[Hashable]) -> None:
    """Raise an error if a set lacks columns of the training set, or has ``others``; their order does not matter."""
    lacking = [column for column in wanted if column not in found]
    if lacking or others:
        has = [f"lacks {column!r}" for column in lacking[:1]] + [f"has {column!r}" for column in others[:1]]
        told = listed(list(map(str, wanted))) or "none"
        hint = "" if found and wanted else "; give all as tables, or all as arrays"
        raise DataError(f"{name}: must have the columns of the training set, {told}, but {' and '.join(has)}{hint}")


def as_table(values: Any) -> Any:
    """Return a pandas table as it is, and tables of other libraries as one; None for what is no table."""
    if hasattr(values, "to_pandas") and not hasattr(values, "features"):  # Hugging Face's data sets are read by rows
        values = values.to_pandas()
    return values if hasattr(values, "iloc") and hasattr(values, "columns") else None


def numbers_of_columns(name: str, table: Any, columns: Sequence[Hashable]) -> Tensor:
    """Return a table's columns of one number per row as ``(n, columns)`` float32, in memory of their own."""
    whole = torch.empty(0, 0)
    for index, column in enumerate(columns):
        values = table[column]
        if hasattr(values, "columns"):
            raise DataError(f"{name}: several columns are named {column!r}")
        numbers = array_of(f"{name}: column {column!r}", values)
        kind = getattr(values, "dtype", numbers.dtype)
        if numbers.ndim != 1:
            raise DataError(f"{name}: column {column!r} must be one number per row, got shape {numbers.shape[1:]}")
        if numbers.dtype.kind not in "biuf" or hasattr(kind, "categories"):
            raise DataError(
                f"{name}: column {column!r} holds no numbers but {kind}; name the columns to take, or write "
                f"pd.get_dummies(table, columns=[{column!r}])"
            )
        if len(numbers):
            _check_range(f"{name}: column {column!r}", numbers.min(), numbers.max())
        if not index:
            whole = torch.empty(len(numbers), len(columns))
        whole.numpy()[:, index] = numbers
    return whole


def read(
    prefix: str, data: Any, inputs: Named = None, labels: Hashable | None = None, like: Columns | None = None
) -> tuple[Samples, Columns | None]:
    """Return a data set's samples, and the columns that they were read from; None if these have no names.

    Args:
        data: a map-style data set whose items are pairs ``(input, label)`` or mappings, or a pandas table.
        inputs, labels: as in :meth:`~asyncfl_lite.tasks.task.Task.from_dataset`.
        like: the columns of the training set, which this set must have, too, in any order.
    """
    where = f"{prefix}dataset"
    if isinstance(data, Mapping) and 0 not in data:
        several = ", ".join(map(repr, data))
        raise DataError(f"{where}: must be one data set, got {several}; write data[{shown(next(iter(data), 'train'))}]")
    table = as_table(data)
    if table is not None:
        columns = _columns(prefix, list(table.columns), inputs, labels, like, True)
        return _of_columns(prefix, table, columns), columns
    if (names := getattr(data, "column_names", None)) is not None:
        columns = _columns(prefix, list(names), inputs, labels, like, False)
        return _of_rows(prefix, data, _as_values(data, columns), columns), columns
    rows = _items(where, data)
    if not isinstance(rows[0], Mapping):
        return _of_pairs(prefix, data, rows), None
    columns = _columns(prefix, list(rows[0]), inputs, labels, like, False)
    return _of_rows(prefix, data, rows, columns), columns


def classes_of(where: str, data: Any, labels: Hashable | None = None) -> tuple[str, ...]:
    """Return the class names that a data set says: of Hugging Face's ``ClassLabel``, or torchvision's ``classes``.

    Args:
        where: name of the data set in messages.
        data: the data set, or torch's subset or concatenation of such data sets.
        labels: the column of labels, if columns have names.
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
    prefix: str, names: list[Hashable], inputs: Named, labels: Hashable | None, like: Columns | None, is_table: bool
) -> Columns:
    """Return the columns to read, of a data set's ``names``; see :func:`read`."""
    if like is not None:
        others = [name for name in names if name not in like.listed] if inputs is None else []
        check_columns(f"{prefix}dataset", names, like.listed, others)
        return like
    told = ", ".join(map(str, names))
    if labels is None:
        labels = next((name for name in USUAL_LABELS if name in names), None)
    if labels is None or labels not in names:
        raise DataError(f"{prefix}labels: must name one of the columns {told}, got {labels!r}{_near(labels, names)}")
    others = [name for name in names if name != labels]
    if inputs is None and (not others or (len(others) > 1 and not is_table)):
        told = ", ".join(map(str, others))
        raise DataError(f"{prefix}inputs: must name one or several of the columns {told}, such as inputs='image'")
    if inputs is None:
        return Columns(others if is_table else others[0], labels)
    is_one = isinstance(inputs, str) or not isinstance(inputs, Iterable) or (type(inputs) is tuple and inputs in names)
    wanted: list[Hashable] = [inputs] if is_one else list(cast("Iterable[Hashable]", inputs))
    if labels in wanted:
        raise DataError(f"{prefix}inputs: must not name the column of labels, {labels!r}")
    if unknown := [f"{name!r}{_near(name, names)}" for name in wanted if name not in names]:
        raise DataError(f"{prefix}inputs: must be one or several of the columns {told}, got {unknown[0]}")
    return Columns(inputs if is_one else wanted, labels)


def _near(given: Hashable, names: Sequence[Hashable]) -> str:
    return next((f"; write {name!r}" for name in names if str(name) == str(given)), "")


def _items(where: str, data: Any) -> list[Any]:
    try:
        if not len(data):
            raise ValueError("there are none")
        return [data[index] for index in range(len(data))]
    except FAILURES as error:
        found = f"{type(error).__name__}: {reason(error)}"
        raise DataError(f"{where}: items must be (input, label) with inputs of one shape ({found})") from None


def _of_pairs(prefix: str, data: Any, items: list[Any]) -> Samples:
    where = f"{prefix}dataset"
    _check_loader(where, data)
    if odd := [item for item in items if not isinstance(item, tuple | list) or len(item) != 2]:
        raise DataError(f"{where}: items must be (input, label) with inputs of one shape, got {shown(odd[0])}")
    by_column = dict(zip(("input", "label"), zip(*items, strict=True), strict=True))
    return _of_columns(prefix, by_column, Columns("input", "label"), classes_of(where, data))


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
    wanted = columns.listed
    try:
        values = [[row[name] for name in wanted] for row in rows]
    except FAILURES as error:
        told = f"{', '.join(map(str, wanted))} ({type(error).__name__}: {reason(error)})"
        raise DataError(f"{prefix}dataset: rows must hold {told}") from None
    if not values:
        raise DataError(f"{prefix}dataset: has no rows")
    by_column = dict(zip(wanted, zip(*values, strict=True), strict=True))
    return _of_columns(prefix, by_column, columns, classes_of(f"{prefix}dataset", data, columns.labels))


def _of_columns(prefix: str, table: Any, columns: Columns, classes: tuple[str, ...] = ()) -> Samples:
    labels = labels_of(f"{prefix}labels", table[columns.labels], classes)
    name, (first, *others) = f"{prefix}inputs", columns.listed[:-1]
    cells = table[first]
    if hasattr(cells, "iloc"):  # of pandas
        is_whole = str(getattr(cells, "dtype", "")) == "object"
    else:
        is_whole = not isinstance(cells[0], Real) and getattr(cells[0], "ndim", None) != 0
    if is_whole and not others:
        inputs, _ = inputs_of(name, _stacked(name, first, list(cells)))
        return Samples(prefix, inputs, labels, is_fresh=True)
    return Samples(prefix, numbers_of_columns(name, table, [first, *others]), labels, (first, *others), True)


def _stacked(name: str, column: Hashable, values: list[Any]) -> Tensor:
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
    if all(map(is_picture, values)):
        return stacked_pictures(name, values)
    tensors = [tensor_of(name, value) for value in values]
    if len({one.is_floating_point() for one in tensors}) > 1 and not all(isinstance(value, list) for value in values):
        raise TypeError("some are real numbers, some whole numbers")
    return torch.stack(tensors)
