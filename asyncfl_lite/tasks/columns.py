"""Readers for common forms of data: (input, label) pairs, rows with named columns (Hugging Face), tables (pandas)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError, reason, shown

USUAL_LABELS = ("label", "labels", "target", "class")
"""Common names of label columns, which the user need not give."""

Named = str | Sequence[str] | None
"""Column names: one column whose cells hold a whole input each; several columns of one number each; or None, to choose
them automatically."""


def read(data: Any, inputs: Named = None, labels: str | None = None) -> tuple[Tensor, Tensor | np.ndarray]:
    """Read a data set's inputs ``(n, …)`` and labels ``(n,)``; labels that are words stay words.

    Args:
        data: a map-style data set whose items are pairs ``(input, label)`` or mappings, or a pandas table.
        inputs: the columns of inputs; by default, in a table all columns but that of the labels, else the only other
            column.
        labels: the column of labels; by default one of :data:`USUAL_LABELS`.

    Raises:
        DataError: when the data cannot be read; the message says which columns there are, or what to write.
    """
    if isinstance(data, Mapping) and 0 not in data:
        several = ", ".join(map(repr, data))
        raise DataError(f"dataset: must be one data set, got {several}; write data[{shown(next(iter(data), 'train'))}]")
    names = _names(data)
    if names is None and inputs is None and labels is None:
        return _pairs(data)
    is_table = hasattr(data, "iloc")
    labels = _column_of_labels(names, labels)
    inputs = _columns_of_inputs(names, inputs, labels, is_table)
    if is_table:
        return _of_table(data, inputs, labels)
    rows = list(_rows(data, [*([inputs] if isinstance(inputs, str) else inputs), labels]))
    if not rows:
        raise DataError("dataset: has no rows")
    answers = _words_of(data, labels, [row[labels] for row in rows])
    if isinstance(inputs, str):
        return _stacked(inputs, [row[inputs] for row in rows], _is_image(data, inputs)), answers
    return torch.stack([_numbers(name, [row[name] for row in rows]) for name in inputs], dim=1), answers


def class_names_of(data: Any, labels: str | None = None) -> tuple[str, ...]:
    """Return the class names that a data set declares (Hugging Face's ``ClassLabel``); empty if it declares none."""
    features = getattr(data, "features", None)
    if not isinstance(features, Mapping):
        return ()
    column = labels or next((name for name in USUAL_LABELS if name in features), None)
    return tuple(getattr(features.get(column), "names", None) or ())


def _names(data: Any) -> list[str] | None:
    """Return the names of a data set's columns; None if it has none."""
    names = data.columns if hasattr(data, "iloc") else getattr(data, "column_names", None)
    if isinstance(data, Mapping) or names is None:
        return None
    return [str(name) for name in names]


def _column_of_labels(names: list[str] | None, given: str | None) -> str:
    if given is None:
        given = next((name for name in USUAL_LABELS if names is None or name in names), None)
    if given is None or (names is not None and given not in names):
        raise DataError(f"labels: must name one of the columns {', '.join(names or ())}, got {given!r}")
    return given


def _columns_of_inputs(names: list[str] | None, given: Named, labels: str, is_table: bool) -> str | list[str]:
    if given is None:
        others = [name for name in names or [] if name != labels]
        if not others or (len(others) > 1 and not is_table):
            raise DataError(
                f"inputs: must name one or several of the columns {', '.join(others)}, such as inputs='image'"
            )
        return others if is_table else others[0]
    wanted = [given] if isinstance(given, str) else list(given)
    for name in wanted:
        if names is not None and name not in names:
            raise DataError(f"inputs: must be one or several of the columns {', '.join(names)}, got {name!r}")
    return given if isinstance(given, str) else wanted


def _rows(data: Any, wanted: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the wanted columns of each row; Hugging Face's data sets are iterated, others are read by index."""
    try:
        rows = iter(data) if hasattr(data, "column_names") else (data[place] for place in range(len(data)))
        for row in rows:
            yield {name: row[name] for name in wanted}
    except (TypeError, LookupError, AttributeError) as error:
        raise DataError(
            f"dataset: rows must hold {', '.join(wanted)} ({type(error).__name__}: {reason(error)})"
        ) from None


def _is_image(data: Any, name: str) -> bool:
    """Return True if the column's Hugging Face feature type is `Image`."""
    return type((getattr(data, "features", None) or {}).get(name)).__name__ == "Image"


def _words_of(data: Any, name: str, values: list[Any]) -> Tensor | np.ndarray:
    """Return labels as an array of words or a tensor of numbers; raise an error for numbers without a class name."""
    names = getattr((getattr(data, "features", None) or {}).get(name), "names", None)
    if names is None and any(isinstance(value, str) for value in values):
        return np.array(values, dtype=str)
    numbers = _numbers(name, values)
    if names is None:
        return numbers
    if numbers.min() < 0 or numbers.max() >= len(names):
        raise DataError(
            f"labels: must be 0 to {len(names) - 1} as its features say, got {int(numbers.min())} (no label)"
        )
    return numbers


def _numbers(name: str, values: list[Any]) -> Tensor:
    """Return a column of one number per row as an ``(n,)`` tensor."""
    try:
        column = torch.as_tensor(np.asarray([np.asarray(value) for value in values]))
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{name}: must be one number per row ({reason(error)})") from None
    if column.dim() != 1:
        raise DataError(f"{name}: must be one number per row, got shape {tuple(column.shape[1:])}")
    return column


def _of_table(table: Any, inputs: str | list[str], labels: str) -> tuple[Tensor, Tensor | np.ndarray]:
    """Return a pandas table's inputs and labels; columns of numbers become one float32 row per sample."""
    answers = table[labels]
    if answers.isna().any():
        raise DataError(f"labels: column {labels!r} lacks {int(answers.isna().sum())} of {len(answers)}")
    words = answers.to_numpy(copy=True)
    if not np.issubdtype(words.dtype, np.number) and not np.issubdtype(words.dtype, np.bool_):
        words = answers.astype(str).to_numpy(dtype=str)
    elif np.issubdtype(words.dtype, np.floating) and (words == np.round(words)).all():
        words = words.astype(np.int64)
    if isinstance(inputs, str) and table[inputs].dtype == object:
        return _stacked(inputs, list(table[inputs]), False), words
    columns = [inputs] if isinstance(inputs, str) else inputs
    for name in columns:
        kind = table[name].dtype
        if not (isinstance(kind, np.dtype) and kind.kind in "biuf") and not getattr(kind, "_is_numeric", False):
            raise DataError(
                f"inputs: column {name!r} holds no numbers but {kind}; name the columns to take, or write "
                f"pd.get_dummies(table, columns=[{name!r}])"
            )
        if table[name].isna().any():
            raise DataError(f"inputs: column {name!r} lacks {int(table[name].isna().sum())} of {len(table)} values")
    return torch.from_numpy(table[columns].to_numpy(dtype=np.float32, copy=True)), words


def _pairs(data: Sequence[tuple[Any, int]]) -> tuple[Tensor, Tensor]:
    """Return the inputs and labels of a map-style data set of pairs."""
    try:
        if not len(data):
            raise ValueError("there are none")
        items = [(value, int(label)) for value, label in (data[i] for i in range(len(data)))]
        return _stack([value for value, _ in items], False), torch.tensor([label for _, label in items])
    except (TypeError, ValueError, RuntimeError, LookupError, AttributeError) as error:
        found = f"{type(error).__name__}: {reason(error)}"
        raise DataError(f"dataset: items must be (input, label) with inputs of one shape ({found})") from None


def _stacked(name: str, values: list[Any], are_images: bool) -> Tensor:
    """Stack the values of a column, each of them a whole input, into one tensor."""
    if isinstance(values[0], str):
        raise DataError(
            f"inputs: column {name!r} holds words, got {shown(values[0])}; turn them into token ids first, such as "
            "data.map(lambda row: tokenizer(row['text'], padding='max_length', truncation=True)), then "
            "inputs='input_ids'"
        )
    try:
        return _stack(values, are_images)
    except (TypeError, ValueError, RuntimeError) as error:
        lengths = sorted({len(value) for value in values if np.ndim(value) == 1 or isinstance(value, list)})
        if len(lengths) > 1:
            raise DataError(
                f"inputs: column {name!r} holds {lengths[0]} to {lengths[-1]} values a row; pad them to one length, "
                "such as tokenizer(..., padding='max_length', truncation=True)"
            ) from None
        raise DataError(f"inputs: column {name!r} must hold numbers, of one shape ({reason(error)})") from None


def _stack(values: list[Any], are_images: bool) -> Tensor:
    """Stack values into one tensor; values that are certainly images become ``(C, height, width)`` from 0 to 1."""
    if hasattr(values[0], "getbands"):  # a Pillow image
        modes = {value.mode for value in values}
        kept = modes.pop() if modes in ({"L"}, {"RGB"}, {"RGBA"}) else "RGB"  # palettes and mixtures become colours
        arrays = [torch.from_numpy(np.array(value.convert(kept))) for value in values]
        arrays = [value[None] if value.dim() == 2 else value.movedim(-1, 0) for value in arrays]
        are_images = True
    else:
        arrays = [value if isinstance(value, Tensor) else torch.from_numpy(np.array(value)) for value in values]
    stacked = torch.stack(arrays)
    if not are_images or stacked.dtype != torch.uint8:
        return stacked
    if stacked.dim() == 3:
        stacked = stacked[:, None]
    elif isinstance(values[0], np.ndarray):  # Hugging Face's with_format("numpy"); "torch" has channels first
        stacked = stacked.movedim(-1, 1)
    return stacked / 255
