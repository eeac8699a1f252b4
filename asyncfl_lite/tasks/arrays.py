"""Arrays of inputs and of labels: one rule for each, in whatever form users' own data or files hold them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from mmap import mmap
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError, reason, shown
from asyncfl_lite.base.streams import no_global_draws

if TYPE_CHECKING:
    from PIL.Image import Image

OWN = "own"
"""Name of the server's unlabelled inputs that come with users' own data."""
AUGMENTED = 6
"""Number of times that an augmentation is tried on the same inputs, since it may draw only sometimes."""
MOST_NAMED = 5
"""Largest number of classes that a message lists."""
LARGEST = 2**53
"""Limit of labels: every whole number below it is the same as an integer and as a real number."""
WORDS_FOR_NOTHING = ("nan", "NaN", "<NA>", "NaT")
"""What NumPy and pandas make of missing values where they write them as words."""
NOT_SUPPORTED = "regression and several labels a sample are not supported"
"""Message for labels that are not classes."""
COLOURS = (1, 3, 4)
"""Possible numbers of channels of images."""
BITS_16 = ("I;16", "I;16L", "I;16B", "I;16N")
"""Modes of Pillow images with whole levels from 0 to 65,535."""
WITH_ALPHA = ("LA", "La", "PA", "RGBA", "RGBa")
"""Modes of levels from 0 to 255 with transparency."""
EIGHT_BITS = {"L", "RGB", "RGBA"}
"""Modes that hold all of images of 8 bits."""
BYTE, TWO_BYTES = 255, 65535
"""Largest levels of 8 and of 16 bits."""


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
    """Check one set of samples by itself, whatever its inputs and labels come in.

    Args:
        prefix: beginning of the set's names in messages.
        inputs, labels: as in :meth:`~asyncfl_lite.tasks.task.Task.from_tensors`.
        like: the set whose columns ``inputs`` must have, if they have names.

    Raises:
        DataError: when they cannot be trained on; the message names the set.
    """
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


def labels_of(name: str, values: Any, classes: Sequence[str] = ()) -> Labels:
    """Read labels: words, or whole numbers of any type; every form of data comes through here.

    Args:
        name: name of the labels in messages.
        values: ``(n,)`` labels, in a tensor, an array, a pandas column or a sequence.
        classes: names of the classes 0, 1, … if the data set says them.

    Raises:
        DataError: for missing labels, real numbers, several labels per sample, and mixtures.
    """
    categories = getattr(getattr(values, "dtype", None), "categories", None)
    if categories is not None and all(isinstance(word, str) for word in categories):
        classes = tuple(categories)
    classes = tuple(classes or getattr(getattr(values, "features", None), "names", None) or ())  # Hugging Face's
    array = array_of(name, values)
    found = f"shape {array.shape} of {array.dtype}"
    if array.ndim != 1:
        raise DataError(f"{name}: must be (n,) whole numbers, got {found}{_instead(array)}; {NOT_SUPPORTED}")
    if array.dtype.kind == "U" and not classes:
        known, numbers = np.unique(array, return_inverse=True)
        return Labels(numbers.astype(np.int64), tuple(known.tolist()), are_words=True)
    if array.dtype.kind == "U":
        index = {word: number for number, word in enumerate(classes)}
        if unknown := sorted(set(array.tolist()) - set(index)):
            raise DataError(f"{name}: must be of the data set's own classes {listed(classes)}, got {shown(unknown[0])}")
        return Labels(np.array([index[word] for word in array.tolist()], np.int64), classes, True, True)
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
    """Return the owners of ``count`` samples as an ``(n,)`` array of words or of finite numbers.

    Raises:
        DataError: when there is not one owner for each sample.
    """
    array = array_of("owners", owners)
    if array.shape != (count,):
        raise DataError(f"owners: one for each of the {count} samples is needed, got shape {array.shape}")
    if array.dtype.kind not in "iufbU" or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        raise DataError(f"owners: must be finite numbers or words, one for each sample, got {array.dtype}")
    return array


def array_of(name: str, values: Any) -> np.ndarray:
    """Return values as an array: one word or one number per sample, or what else there is.

    Raises:
        DataError: for missing values, for words beside numbers, and for other objects.
    """
    _check_dense(name, values)
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        values = (values.double() if values.is_floating_point() else values).numpy()
    try:
        array = np.asarray(values) if hasattr(values, "__array__") else _flat(values)
        array = _flat(array) if array.dtype.kind == "O" and array.ndim == 1 else array
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{name}: must be a tensor or an array of numbers ({reason(error)})") from None
    if array.ndim != 1:
        return array
    lacking = np.flatnonzero([_is_missing(value) for value in array] if array.dtype.kind in "OU" else array != array)
    if len(lacking):
        raise DataError(f"{name}: lacks {len(lacking)} of {len(array)}, such as that of sample {lacking[0]}")
    if array.dtype.kind != "O":
        return array
    words = [value for value in array if isinstance(value, str)]
    odd = [value for value in array if not isinstance(value, str | Real | np.bool_)]
    if odd or 0 < len(words) < len(array):
        odd += [value for value in array if not isinstance(value, str)]
        beside = f" beside {shown(words[0])}" if words else ""
        raise DataError(f"{name}: must be all words or all numbers, got {shown(odd[0])}{beside}")
    return array.astype(str) if words else np.array(array.tolist())


def _is_missing(value: object) -> bool:
    """Return True for None, NaN, pandas' NA and NaT, and for words that are blank or stand for these."""
    if isinstance(value, str):
        return not value.strip() or value in WORDS_FOR_NOTHING
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither equal nor unequal to itself
        return True


def _check_dense(name: str, values: Any) -> None:
    """Raise an error for tensors and arrays that are sparse, nested, masked or without plain numbers."""
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


def _flat(values: Iterable[Any]) -> np.ndarray:
    """Return a sequence of values as an array of objects, or with more dimensions if they are not single values."""
    if isinstance(values, str | Mapping | Set):
        raise TypeError(f"it is a {type(values).__name__}, not a sequence")
    plain: list[Any] = [None if value is np.ma.masked else value for value in values]
    plain = [value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value for value in plain]
    if any((isinstance(value, Sequence) and not isinstance(value, str | bytes)) or np.ndim(value) for value in plain):
        return np.array([np.asarray(value) for value in plain])
    return np.fromiter(plain, dtype=object, count=len(plain))


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


def numbers_of_columns(name: str, table: Any, columns: Sequence[Hashable]) -> Tensor:
    """Return columns of one number per row as ``(n, columns)`` float32, in memory of their own.

    Args:
        name: name of the inputs in messages.
        table: the columns by name.
        columns: names of those that are wanted.

    Raises:
        DataError: for columns without numbers, and for numbers that are missing or not finite.
    """
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
            _check_range(f"{name}: column {column!r}", numbers.min(keepdims=True), numbers.max(keepdims=True))
        if not index:
            whole = torch.empty(len(numbers), len(columns))
        whole.numpy()[:, index] = numbers
    return whole


def tensor_of(name: str, values: Any) -> Tensor:
    """Return inputs as a tensor on the CPU, perhaps in the memory of ``values``."""
    _check_dense(name, values)
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
        if array.dtype == np.longdouble:
            with np.errstate(over="ignore"):  # what is too large becomes infinity, which is refused
                array = array.astype(np.float64)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)  # torch knows only the machine's order
        array = np.ascontiguousarray(array) if any(stride < 0 for stride in array.strides) else array
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


def check_augment(augment: Callable[[Tensor, torch.Generator], Tensor] | None, inputs: Tensor) -> None:
    """Check, on a few inputs, that an augmentation returns inputs of the same shape and type, the same each time.

    Raises:
        DataError: when it cannot be called with ``(inputs, generator)``, returns anything else, or takes random numbers
            from another source than the generator.
    """
    if augment is None:
        return
    few, source = inputs[:2].clone(), "the torch.Generator that it is given"
    try:
        with no_global_draws(augment, "augment:", source, DataError):
            generators = (torch.Generator(inputs.device).manual_seed(0) for _ in range(AUGMENTED))
            given, *others = [augment(few.clone(), generator) for generator in generators]
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"augment: must take (inputs, generator), a batch {tuple(few.shape)} and a torch.Generator; it failed with "
            f"{type(error).__name__}: {reason(error)}"
        ) from None
    if not isinstance(given, Tensor) or given.shape != few.shape or given.dtype != few.dtype:
        found = f"{tuple(given.shape)} of {given.dtype}" if isinstance(given, Tensor) else shown(given)
        raise DataError(f"augment: must return inputs as it was given, {tuple(few.shape)} of {few.dtype}, got {found}")
    if not all(torch.equal(given.nan_to_num(), other.nan_to_num()) for other in others):
        raise DataError(f"augment: must give the same when it is called again on the same inputs; draw from {source}")


def is_picture(value: Any) -> bool:
    """Return True for Pillow images."""
    return hasattr(value, "getbands")


def stacked_pictures(name: str, images: Sequence[Image]) -> Tensor:
    """Return Pillow images of one size as ``(n, C, height, width)`` float32 from 0 to 1.

    Grey images have one channel, colours three, and images with transparency four. Palettes and other colour spaces
    become colours. The mode says the largest level: 255, 65,535 with 16 bits, or 1 for real numbers.

    Args:
        name: name of the inputs in messages.
        images: the images.

    Raises:
        DataError: for images whose largest level is not known, and for mixtures of 8 bits, 16 bits and real numbers.
        ValueError: for images of several sizes.
    """
    kinds, mode, largest = {depth_of(image) for image in images}, None, TWO_BYTES
    if len({image.size for image in images}) > 1:
        raise ValueError("images of several sizes")
    if kinds <= EIGHT_BITS:
        mode, largest = kinds.pop() if len(kinds) == 1 else _common(images), BYTE
    elif len(kinds) > 1:
        raise DataError(
            f"{name}: images must be of one depth, got the modes {', '.join(sorted(kinds))}; convert them to one"
        )
    elif "I;16" not in kinds:
        spans = [(array.min(), array.max()) for array in map(np.asarray, images)]
        low, high = float(np.min(spans)), float(np.max(spans))
        if "F" in kinds and not 0 <= low <= high <= 1:
            raise DataError(
                f"{name}: images of mode F must go from 0 to 1, got {low:.6g} to {high:.6g}; scale all of them alike, "
                "with the same numbers for training and test"
            )
        if "I" in kinds and not (low >= 0 and BYTE < high <= TWO_BYTES):
            raise DataError(
                f"{name}: images of mode I must hold 16 bits, 0 to {TWO_BYTES}, got {low:.0f} to {high:.0f}; convert "
                "them to mode I;16 if they have 16 bits, or to mode L if they have 8"
            )
        largest = TWO_BYTES if "I" in kinds else 1
    tensor = torch.empty(0)
    for index, image in enumerate(images):
        array = np.array(image if mode is None else image.convert(mode))
        if not index:
            tensor = torch.empty(len(images), *np.atleast_3d(array).shape[2:], *array.shape[:2])
        levels = torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
        tensor[index] = (levels[None] if levels.dim() == 2 else levels.movedim(-1, 0)) / largest
    return tensor


def depth_of(image: Image) -> str:
    """Return the mode that holds all of an image: L, RGB, RGBA, or one of more than 8 bits (I;16, I, F)."""
    if image.mode in ("1", "L"):
        return "L"
    if image.mode in BITS_16:
        return "I;16"
    if image.mode in ("I", "F"):
        return image.mode
    return "RGBA" if image.mode in WITH_ALPHA or (image.mode == "P" and "transparency" in image.info) else "RGB"


def _common(images: Sequence[Image]) -> str:
    """Return the mode that holds all of several images; transparency counts where some pixel is transparent."""
    clear = (np.asarray(image.convert("RGBA"))[..., 3].min() < BYTE for image in images if depth_of(image) == "RGBA")
    return "RGBA" if any(clear) else "RGB"


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


def stratified(labels: Any, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Split samples into two parts with the same share of every class, in random order.

    The indices are those of scikit-learn's ``train_test_split(np.arange(n), test_size=count, stratify=labels,
    random_state=seed)``, bit for bit. Importing scikit-learn takes longer than a short run.

    Args:
        labels: ``(n,)`` whole numbers.
        count: number of samples in the second part.
        seed: seed of the split.

    Returns:
        The indices of the first part and of the second.

    Raises:
        DataError: if a class has fewer than two samples, or a part would have fewer samples than there are classes.
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
