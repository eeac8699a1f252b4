"""Arrays of inputs and of labels: one rule for each, in whatever form users' own data or files hold them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from mmap import mmap
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError, reason, shown

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_NAMED = 5
"""Largest number of classes that a message lists."""
LARGEST = 2**53
"""Limit of labels: every whole number below it is the same as an integer and as a real number."""
WORDS_FOR_NOTHING = ("", "nan", "NaN", "<NA>", "NaT")
"""What NumPy and pandas make of missing values where they write them as words, and no word at all."""
NOT_SUPPORTED = "regression and several labels a sample are not supported"
"""Message for labels that are not classes."""
BITS_16 = ("I;16", "I;16L", "I;16B", "I;16N")
"""Modes of Pillow images with whole levels from 0 to 65,535."""
WITH_ALPHA = ("LA", "La", "PA", "RGBA", "RGBa")
"""Modes of levels from 0 to 255 with transparency."""
EIGHT_BITS = {"L", "RGB", "RGBA"}
"""Modes that hold all of images of 8 bits."""
DEEP = {"I;16": (0, 65535), "I": (256, 65535), "F": (0, 1)}
"""Mode of more than 8 bits -> bounds of the highest level of all images; the second one becomes 1."""


class Labels(NamedTuple):
    """Labels of one set of samples.

    Attributes:
        numbers: ``(n,)`` int64; indices in ``classes`` if there are any.
        classes: names of the classes, or none.
        declared: whether the data set says its classes itself; otherwise they are the words that occur.
    """

    numbers: np.ndarray
    classes: tuple[str, ...] = ()
    declared: bool = False


def labels_of(name: str, values: Any, classes: Sequence[str] = ()) -> Labels:
    """Read labels: words, or whole numbers of any type; every form of data comes through here.

    Args:
        name: name of the labels in messages.
        values: ``(n,)`` labels, in a tensor, an array, a pandas column or a sequence.
        classes: names of the classes 0, 1, … if the data set says them.
    """
    categories = getattr(getattr(values, "dtype", None), "categories", None)
    if categories is not None and all(isinstance(word, str) for word in categories):
        classes = tuple(categories)
    classes = tuple(classes or getattr(getattr(values, "features", None), "names", None) or ())  # Hugging Face's
    array = array_of(name, values)
    found = f"shape {array.shape} of {array.dtype}"
    if array.ndim != 1:
        raise DataError(f"{name}: must be (n,) whole numbers, got {found}{_instead(array)}; {NOT_SUPPORTED}")
    if array.dtype.kind == "U":
        if len(set(classes)) < len(classes):
            raise DataError(f"{name}: must have classes of different names, got {listed(sorted(classes))}")
        words = pd.Categorical(array, categories=list(classes) or None)
        if len(unknown := array[words.codes < 0]):
            told = f"{listed(classes)}, got {shown(unknown[0].item())}"
            raise DataError(f"{name}: must be of the data set's own classes {told}")
        return Labels(words.codes.astype(np.int64), tuple(map(str, words.categories)), declared=bool(classes))
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name}: must be all words or all numbers, got {shown(array[0])}")
    if array.dtype.kind == "f" and not (whole := array == np.round(array)).all():
        odd = f"{found}, such as {array[~whole][0]:.6g}"
        raise DataError(f"{name}: must be (n,) whole numbers, got {odd}; {NOT_SUPPORTED}")
    low, high = (float(array.min()), float(array.max())) if len(array) else (0, 0)
    if not -LARGEST < low <= high < LARGEST:
        raise DataError(f"{name}: must be whole numbers below {LARGEST}, got {low:.6g} to {high:.6g}")
    if classes and len(array) and not 0 <= low <= high < len(classes):
        odd = f"{low:.0f} (no label)" if low < 0 else f"{high:.0f}"
        raise DataError(f"{name}: must be 0 to {len(classes) - 1} as its features say, got {odd}")
    return Labels(array.astype(np.int64), classes, declared=bool(classes))


def owners_of(owners: Any, count: int) -> np.ndarray:
    """Return the owners of ``count`` samples as an ``(n,)`` array of words or of finite numbers."""
    array = array_of("owners", owners)
    if array.shape != (count,):
        raise DataError(f"owners: one for each of the {count} samples is needed, got shape {array.shape}")
    if array.dtype.kind not in "iufbU" or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        raise DataError(f"owners: must be finite numbers or words, one for each sample, got {array.dtype}")
    return array


def array_of(name: str, values: Any) -> np.ndarray:
    """Return values as an array, of words or of numbers if it has one axis; missing values are an error."""
    _check_dense(name, values)
    try:
        if isinstance(values, Tensor):
            values = values.detach().cpu()
            values = (values.double() if values.is_floating_point() else values).numpy()
        array = np.asarray(values) if hasattr(values, "__array__") else _flat(values)
        array = _flat(array) if array.dtype.kind == "O" and array.ndim == 1 else array
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{name}: must be a tensor or an array of numbers ({reason(error)})") from None
    if array.ndim != 1:
        return array
    lacks = pd.isna(array)
    if array.dtype.kind in "OU":
        lacks |= np.array([isinstance(value, str) and value.strip() in WORDS_FOR_NOTHING for value in array], bool)
    if len(lacking := np.flatnonzero(lacks)):
        raise DataError(f"{name}: lacks {len(lacking)} of {len(array)}, such as that of sample {lacking[0]}")
    if array.dtype.kind != "O":
        return array
    some = {type(value): value for value in reversed(array)}  # one of each type
    if some and all(issubclass(kind, str) for kind in some):
        return array.astype(str)
    if not all(issubclass(kind, Real | np.bool_) for kind in some):
        told = " and ".join(map(shown, list(some.values())[:2]))
        raise DataError(f"{name}: must be all words or all numbers, got {told}")
    return np.array(array.tolist())


def _check_dense(name: str, values: Any) -> None:
    """Raise an error for tensors and arrays that are sparse, nested, masked or without plain numbers."""
    if isinstance(values, Tensor):
        for odd, kind, hint in (
            (values.is_nested, "nested", "pad them to one shape"),
            (values.layout != torch.strided, str(values.layout).removeprefix("torch."), "call its .to_dense() first"),
            (values.is_meta, "meta", "it holds no numbers"),
            (values.is_quantized, "quantized", "call its .dequantize() first"),
        ):
            if odd:
                raise DataError(f"{name}: must be a dense tensor, got a {kind} one; {hint}")
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise DataError(f"{name}: must be a dense array, got a {type(values).__name__}; call its .toarray() first")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError(f"{name}: must not lack values, got {int(np.ma.getmaskarray(values).sum())} that are masked")


def _flat(values: Iterable[Any]) -> np.ndarray:
    if isinstance(values, str | Mapping | Set):
        raise TypeError(f"it is a {type(values).__name__}, not a sequence")
    plain: list[Any] = [None if value is np.ma.masked else value for value in values]
    plain = [value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value for value in plain]
    if any((isinstance(value, Sequence) and not isinstance(value, str | bytes)) or np.ndim(value) for value in plain):
        return np.array([np.asarray(value) for value in plain])
    return np.fromiter(plain, dtype=object, count=len(plain))


def _instead(array: np.ndarray) -> str:
    if array.ndim == 2 and array.shape[1] == 1:
        return ", one column; write labels[:, 0]"
    is_one_hot = array.ndim == 2 and np.isin(array, (0, 1)).all() and (array.astype(int).sum(1) == 1).all()
    return ", one column per class; write labels.argmax(1)" * bool(is_one_hot)


def listed(names: Sequence[str]) -> str:
    """Return names as text, the first few of many."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def tensor_of(name: str, values: Any) -> Tensor:
    """Return inputs as a tensor on the CPU, perhaps in the memory of ``values``."""
    _check_dense(name, values)
    try:
        if isinstance(values, Tensor):
            tensor = values.detach().as_subclass(Tensor).cpu()
        elif isinstance(values, Sequence) and len(values) and is_picture(values[0]):
            return stacked_pictures(name, list(values))
        else:
            tensor = _tensor_of_array(np.asarray(values))
        if tensor.is_floating_point() and tensor.itemsize < 2:
            return tensor.float()
        if tensor.dtype not in (torch.uint16, torch.uint32, torch.uint64):
            return tensor
        wide = tensor.to(torch.int64)
        if tensor.numel() and wide.min() < 0:
            raise ValueError("got numbers of 2 ** 63 and more")
        return wide
    except DataError:
        raise
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        raise DataError(f"{name}: must be a tensor or an array of numbers ({reason(error)})") from None


def _tensor_of_array(array: np.ndarray) -> Tensor:
    array = np.array(array.tolist()) if array.dtype.kind == "O" else array
    if array.dtype.kind not in "biufc":
        raise TypeError(f"got {shown(next((one for one in array.flat if not isinstance(one, Real)), array.dtype))}")
    if array.dtype == np.longdouble:
        with np.errstate(over="ignore"):  # what is too large becomes infinity, which is refused
            array = array.astype(np.float64)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)  # torch knows only the machine's order
    array = np.ascontiguousarray(array) if any(stride < 0 for stride in array.strides) else array
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # nothing is written to it
        return torch.from_numpy(array)


def private(values: Any) -> tuple[Any, bool]:
    """Map a file that the user maps for reading again, such that writes stay in memory; return True if it was done."""
    if isinstance(values, np.memmap) and values.mode == "r" and isinstance(values.base, mmap) and values.filename:
        order = "C" if values.flags.c_contiguous else "F"
        with suppress(OSError):
            return np.memmap(values.filename, values.dtype, "c", values.offset, values.shape, order), True
    return values, False


def is_picture(value: Any) -> bool:
    """Return True for Pillow images."""
    return hasattr(value, "getbands")


def stacked_pictures(name: str, images: Sequence[Image]) -> Tensor:
    """Return Pillow images of one size as ``(n, C, height, width)`` float32 from 0 to 1.

    Grey images have one channel, colours three, and images with transparency four. Palettes and other colour spaces
    become colours. Levels go up to 255, to 65,535 with 16 bits, or to 1 for real numbers.

    Raises:
        DataError: for images of other levels, and for mixtures.
        ValueError: for images of several sizes.
    """
    kinds = {depth_of(image) for image in images}
    if len({image.size for image in images}) > 1:
        raise ValueError("images of several sizes")
    if len(kinds) == 1:
        (mode,) = kinds
    elif kinds <= EIGHT_BITS:
        alphas = (np.asarray(image.convert("RGBA"))[..., 3] for image in images if depth_of(image) == "RGBA")
        mode = "RGBA" if any(alpha.min() < 255 for alpha in alphas) else "RGB"
    else:
        told = ", ".join(sorted(kinds))
        raise DataError(f"{name}: images must be of one depth, got the modes {told}; convert them to one")
    least, largest = DEEP.get(mode, (0, 255))
    arrays = (np.asarray(image if mode in DEEP else image.convert(mode)) for image in images)
    levels = np.stack([np.atleast_3d(array) for array in arrays])
    low, high = levels.min(), levels.max()
    if not (low >= 0 and least <= high <= largest):
        allowed = f"0 to a highest level of {least} to {largest}, got {low:.6g} to {high:.6g}"
        raise DataError(f"{name}: images of mode {mode} must go from {allowed}; scale or convert all of them alike")
    return torch.from_numpy(levels.astype(np.float32)).movedim(-1, 1).contiguous().div_(largest)


def depth_of(image: Image) -> str:
    """Return the mode that holds all of an image: L, RGB, RGBA, or one of more than 8 bits."""
    if image.mode in ("1", "L"):
        return "L"
    if image.mode in BITS_16:
        return "I;16"
    if image.mode in ("I", "F"):
        return image.mode
    return "RGBA" if image.mode in WITH_ALPHA or (image.mode == "P" and "transparency" in image.info) else "RGB"


def check_labels(path: str | Path, labels: np.ndarray, samples: int, classes: int) -> None:
    """Raise a DataError that names the file unless each sample has one label, from 0 to ``classes`` - 1."""
    if len(labels) != samples or not samples:
        raise DataError(f"{path}: must have a label for each sample, at least 1, has {len(labels)} for {samples}")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise DataError(f"{path}: labels must be 0 to {classes - 1}, got {low if low < 0 else high}")
