"""Inputs of users' own data: one rule for every form in which they come."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from mmap import mmap
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError, reason, shown
from asyncfl_lite.tasks.labels import check_dense, flat, is_missing, listed
from asyncfl_lite.tasks.pictures import is_picture, stacked_pictures

COLOURS = (1, 3, 4)
"""Possible numbers of channels of images."""


def inputs_of(
    name: str, values: Any, columns: tuple[Hashable, ...] | None = None
) -> tuple[Tensor, tuple[Hashable, ...]]:
    """Check inputs, and return them as a tensor, with the names of their columns if they have some.

    Args:
        name: name of the inputs in messages.
        values: ``(n, …)`` inputs: a tensor, an array, a pandas table, or a sequence.
        columns: names of the columns that a table must have, in any order; None for any.

    Returns:
        The inputs, perhaps in the user's memory and of the user's type, and the names of their columns.

    Raises:
        DataError: for inputs that cannot be trained on.
    """
    table = as_table(values)
    if table is not None:
        found = list(table.columns)
        wanted = tuple(found) if columns is None else columns
        check_columns(name, found, wanted, [column for column in found if column not in wanted])
        return numbers_of_columns(name, wanted, lambda column: table[column]), wanted
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
        span = tensor.aminmax(dim=0) if by_column else tensor.aminmax()
        _check_range(name, *(one.double().reshape(-1).numpy() for one in span))
    elif tensor.numel() and tensor.min() < 0:
        raise DataError(f"{name}: must be real numbers, or token ids from 0, got {int(tensor.min())}")
    return tensor, ()


def check_columns(name: str, found: Sequence[Hashable], wanted: Sequence[Hashable], others: Sequence[Hashable]) -> None:
    """Raise an error if a set lacks columns of the training set, or has ``others``; their order does not matter.

    Raises:
        DataError: for these; the message says what is lacking and what there is instead.
    """
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


def numbers_of_columns(name: str, columns: Sequence[Hashable], read: Callable[[Hashable], Any]) -> Tensor:
    """Return columns of one number per row as ``(n, columns)`` float32, in memory of their own.

    Args:
        name: name of the inputs in messages.
        columns: names of the columns.
        read: function from a name to the column's values.

    Raises:
        DataError: for columns without numbers, and for numbers that are missing or not finite.
    """
    whole = torch.empty(0, 0)
    for place, column in enumerate(columns):
        values = read(column)
        if hasattr(values, "columns"):
            raise DataError(f"{name}: several columns are named {column!r}")
        numbers = _column(name, column, values)
        if not place:
            whole = torch.empty(len(numbers), len(columns))
        whole.numpy()[:, place] = numbers
    return whole


def _column(name: str, column: Hashable, values: Any) -> np.ndarray:
    """Return a column's values as ``(n,)`` numbers."""
    kind = getattr(values, "dtype", None)
    given: Any = flat(values) if kind is None else values
    if given.ndim != 1:
        raise DataError(f"{name}: column {column!r} must be one number per row, got shape {given.shape[1:]}")
    lacking = sum(map(is_missing, given)) if kind is None else int(values.isna().sum())
    if lacking:
        raise DataError(f"{name}: column {column!r} lacks {lacking} of {len(given)} values")
    numbers = np.array(given.tolist()) if kind is None else given.to_numpy()
    if getattr(kind, "_is_numeric", False) or getattr(kind, "_is_boolean", False):
        numbers = given.to_numpy(dtype=np.float64)  # pandas' own types, which have room for missing values
    elif numbers.dtype.kind not in "biuf" or (kind is not None and not isinstance(kind, np.dtype)):
        raise DataError(
            f"{name}: column {column!r} holds no numbers but {kind or numbers.dtype}; name the columns to take, or "
            f"write pd.get_dummies(table, columns=[{column!r}])"
        )
    if len(numbers):
        _check_range(f"{name}: column {column!r}", numbers.min(keepdims=True), numbers.max(keepdims=True))
    return numbers


def _native(array: np.ndarray) -> np.ndarray:
    """Return an array of numbers in a form that torch knows: no more than 64 bits, in the machine's order."""
    if array.dtype == np.longdouble:
        with np.errstate(over="ignore"):  # what is too large becomes infinity, which is refused
            array = array.astype(np.float64)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(array) if any(stride < 0 for stride in array.strides) else array


def tensor_of(name: str, values: Any) -> Tensor:
    """Return inputs as a tensor on the CPU, perhaps in the memory of ``values``."""
    check_dense(name, values)
    if isinstance(values, Tensor):
        tensor = values.detach().as_subclass(Tensor).cpu()
        return tensor.float() if tensor.is_floating_point() and tensor.itemsize < 2 else _signed(name, tensor)
    try:
        if isinstance(values, Sequence) and len(values) and is_picture(values[0]):
            return stacked_pictures(name, list(values))
        array = np.asarray(values)
        array = np.array(array.tolist()) if array.dtype.kind == "O" else array
        if array.dtype.kind not in "biufc":
            odd = next((value for value in array.flat if not isinstance(value, Real)), array.dtype)
            raise TypeError(f"got {shown(odd)}")
        array = _native(array)
        if array.flags.writeable:
            return _signed(name, torch.from_numpy(array))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # nothing is written to it
            return _signed(name, torch.from_numpy(array))
    except DataError:
        raise
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        raise DataError(f"{name}: must be a tensor or an array of numbers ({reason(error)})") from None


def _signed(name: str, tensor: Tensor) -> Tensor:
    """Return a tensor of unsigned numbers of 16 bits or more as int64, since torch can hardly calculate with them."""
    if tensor.dtype not in (torch.uint16, torch.uint32, torch.uint64):
        return tensor
    wide = tensor.to(torch.int64)
    if tensor.numel() and wide.min() < 0:
        raise DataError(f"{name}: must be real numbers, or token ids below 2 ** 63, got larger ones")
    return wide


def _check_range(name: str, low: Any, high: Any) -> None:
    """Raise an error unless numbers from ``low`` to ``high``, of each column or of all, stay apart as float32."""
    with np.errstate(over="ignore"):
        low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    if not (np.isfinite(low) & np.isfinite(high)).all():
        raise DataError(f"{name}: must be finite numbers, got NaN or infinity")
    far = low.min() if -low.min() > high.max() else high.max()
    if abs(far) > np.finfo(np.float32).max:
        raise DataError(f"{name}: must be finite as float32, got {far:.6g}; scale them first")
    if (same := np.flatnonzero((low < high) & (low.astype(np.float32) == high.astype(np.float32)))).size:
        span = f"{float(low[same[0]])} to {float(high[same[0]])}"
        raise DataError(f"{name}: must differ as float32, got {span}, all the same; subtract their mean, or scale them")


def private(values: Any) -> tuple[Any, bool]:
    """Map a file that the user maps for reading again, such that writes stay in memory; return True if it was done.

    A large file is thus never copied as a whole.
    """
    if isinstance(values, np.memmap) and values.mode == "r" and isinstance(values.base, mmap) and values.filename:
        order = "C" if values.flags.c_contiguous else "F"
        with suppress(OSError):
            return np.memmap(values.filename, values.dtype, "c", values.offset, values.shape, order), True
    return values, False
