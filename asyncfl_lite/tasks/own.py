"""Users' own data as a task: the required format, and one-line errors for everything else."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError, reason, shown
from asyncfl_lite.base.streams import no_global_draws
from asyncfl_lite.tasks.subsets import UnlabelledSet

Pair = tuple[Tensor | np.ndarray, Tensor | np.ndarray]
OWN = "own"
"""Name of the server's unlabelled inputs that come with users' own data."""
USUAL_SETS = ("cross", "natural", "synthetic")
"""Names of unlabelled sets that methods use by default on tasks with several kinds."""
COLOURS = (1, 3, 4)
"""Possible numbers of channels of images."""
AUGMENTED = 6
"""Number of times that an augmentation is tried on the same inputs, since it may draw only sometimes."""
MOST_NAMED = 5
"""Largest number of classes that a warning lists."""
NOT_SUPPORTED = "regression and several labels a sample are not supported"
"""Message for labels that are not classes."""


class Checked(NamedTuple):
    """Users' own data, checked and ready for training.

    Attributes:
        train, test: inputs ``(n, …)``, float32 or int64, and labels ``(n,)`` int64.
        num_classes: number of classes C.
        class_names: C names, or none.
        vocabulary: number of tokens; None unless inputs are token ids.
    """

    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    num_classes: int
    class_names: tuple[str, ...]
    vocabulary: int | None


def checked(
    train: Pair,
    test: Pair,
    num_classes: int | None = None,
    class_names: Sequence[str] = (),
    vocabulary: int | None = None,
) -> Checked:
    """Convert users' own data to tensors that can be trained on, or raise a one-line error that names the problem.

    Raises:
        DataError: when the data do not fit; the message names the problem and, if possible, says what to write.
    """
    names = tuple(str(name) for name in class_names)
    answers, names = _numbered([train[1], test[1]], names)
    inputs, labels = _inputs("inputs", train[0]), _labels("labels", answers[0])
    test_inputs, test_labels = _inputs("test_inputs", test[0]), _labels("test_labels", answers[1])
    for what, left, right in (("", inputs, labels), ("test_", test_inputs, test_labels)):
        if len(left) != len(right) or not len(left):
            raise DataError(f"{what}inputs: must be as many as labels and at least 1, got {len(left)} and {len(right)}")
    if inputs.shape[1:] != test_inputs.shape[1:] or inputs.dtype != test_inputs.dtype:
        raise DataError(
            f"test_inputs: must be as inputs, {tuple(inputs.shape[1:])} of {inputs.dtype}, "
            f"got {tuple(test_inputs.shape[1:])} of {test_inputs.dtype}"
        )
    count = _count_classes(torch.cat([labels, test_labels]), num_classes, names)
    _say_what_nothing_trains(labels, test_labels, names)
    tokens = None if inputs.is_floating_point() else _count_tokens(inputs, test_inputs, vocabulary)
    return Checked((inputs, labels), (test_inputs, test_labels), count, names, tokens)


def _say_what_nothing_trains(labels: Tensor, test_labels: Tensor, names: tuple[str, ...]) -> None:
    """Warn of classes in the test set without training samples, which a model can only guess."""
    only_tested = sorted(set(test_labels.tolist()) - set(labels.tolist()))
    if only_tested:
        listed = ", ".join(names[label] if names else str(label) for label in only_tested[:MOST_NAMED])
        more = f" and {len(only_tested) - MOST_NAMED} more" if len(only_tested) > MOST_NAMED else ""
        count = int(torch.isin(test_labels, torch.tensor(only_tested)).sum())
        warnings.warn(
            f"test_labels: {count} of {len(test_labels)} are of classes that no training label has ({listed}{more}); "
            "nothing is learned of these, so accuracy is lower by them",
            stacklevel=4,
        )


def _numbered(labels: list[Any], names: tuple[str, ...]) -> tuple[list[Any], tuple[str, ...]]:
    """Convert labels that are words to numbers; return training and test labels, and the class names."""
    words = [value if isinstance(value, Tensor) else np.asarray(value) for value in labels]
    if any(isinstance(value, Tensor) or value.dtype.kind not in "UO" or value.ndim != 1 for value in words):
        return labels, names
    words = [np.asarray(value).astype(str) for value in words]
    names = names or tuple(np.unique(np.concatenate(words)).tolist())
    number = {name: place for place, name in enumerate(names)}
    unknown = sorted({word for value in words for word in value.tolist()} - set(number))
    if unknown:
        raise DataError(f"labels: must be of class_names {', '.join(names)}, got {shown(unknown[0])}")
    return [np.array([number[word] for word in value.tolist()], dtype=np.int64) for value in words], names


def _count_classes(labels: Tensor, given: int | None, names: tuple[str, ...]) -> int:
    """Return the number of classes: as given, or from the names, or from the labels, which must not skip any."""
    lowest, highest = int(labels.min()), int(labels.max())
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
        raise DataError(f"num_classes: must be a whole number of at least 1, got {shown(given)}")
    if given is not None and names and given != len(names):
        raise DataError(f"class_names: must be {given}, one for each of num_classes, got {len(names)}")
    count = given or len(names) or None
    number_them = "number them: np.unique(labels, return_inverse=True)[1], of training and test labels together"
    if lowest < 0 or (count is None and lowest > 0):
        raise DataError(f"labels: must be numbered from 0, got {lowest} to {highest}; {number_them}")
    if count is not None and highest >= count:
        raise DataError(f"labels: must be 0 to {count - 1} with {count} classes, got {highest}")
    found = len(labels.unique())
    if count is None and found <= highest:
        raise DataError(
            f"labels: {highest + 1 - found} of the classes 0 to {highest} do not occur; say that they are classes, "
            f"num_classes={highest + 1}, or {number_them}"
        )
    return count or highest + 1


def _count_tokens(inputs: Tensor, test_inputs: Tensor, given: int | None) -> int:
    """Return the number of tokens: as given, or one more than the largest token id."""
    highest = max(int(inputs.max()), int(test_inputs.max())) if inputs.numel() else 0
    if given is not None and given <= highest:
        raise DataError(f"vocabulary: must be at least {highest + 1}, as token {highest} occurs, got {given}")
    return given or highest + 1


def numbered_owners(owners: Any, count: int) -> np.ndarray | None:
    """Return the ``(n,)`` owners of samples as numbers, even if they are words; None if there are no owners.

    Raises:
        DataError: when there is not one owner for each of ``count`` samples.
    """
    if owners is None:
        return None
    check_dense("owners", owners)
    given = np.asarray(owners.cpu() if isinstance(owners, Tensor) else owners)
    if given.shape != (count,):
        raise DataError(f"owners: one for each of the {count} samples is needed, got shape {given.shape}")
    values = given.tolist() if isinstance(owners, np.ndarray | Tensor) else list(owners)
    odd = [value for value in values if value is None or value != value]  # NaN is not equal to itself
    words = [value for value in values if isinstance(value, str)]
    if odd or (words and len(words) < count):
        odd += [value for value in values if not isinstance(value, str)]
        raise DataError(f"owners: must be all numbers or all words, one for each sample, got {shown(odd[0])} too")
    if words:
        return np.unique(given.astype(str), return_inverse=True)[1].astype(np.int64)
    given = np.asarray(given.tolist()) if given.dtype == object else given
    if given.dtype.kind not in "iufb" or not np.isfinite(given).all():
        raise DataError(f"owners: must be finite numbers or words, one for each sample, got {given.dtype}")
    return given.copy()


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
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise DataError(f"{name}: must be a dense array, got a {type(values).__name__}; call its .toarray() first")


def _tensor(name: str, values: Any) -> Tensor:
    check_dense(name, values)
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{name}: must be a tensor or an array of numbers ({str(error).splitlines()[0]})") from None


def _inputs(name: str, values: Any) -> Tensor:
    """Check inputs, and convert real numbers to float32 and token ids to int64."""
    tensor = _tensor(name, values)
    if tensor.dim() < 2:
        raise DataError(f"{name}: must have one sample per row, (n, …), got shape {tuple(tensor.shape)}")
    shape = tuple(tensor.shape)
    channels_last = len(shape) == 4 and shape[-1] in COLOURS and shape[1] not in COLOURS
    as_torch = f"torch.as_tensor({name}){'.permute(0, 3, 1, 2)' * channels_last}"
    if tensor.dtype == torch.uint8 and len(shape) > 2:
        found = f"got torch.uint8 of shape {shape}"
        raise DataError(f"{name}: must be real numbers, or int64 token ids, {found}; write {as_torch} / 255")
    if tensor.dtype in (torch.uint8, torch.bool) or tensor.is_complex():
        raise DataError(f"{name}: must be real numbers, or int64 token ids, got {tensor.dtype}; scale them first")
    if tensor.is_floating_point() and channels_last:
        raise DataError(f"{name}: images must be (n, channels, height, width), got shape {shape}; write {as_torch}")
    if not tensor.is_floating_point():
        if tensor.numel() and tensor.min() < 0:
            raise DataError(f"{name}: must be real numbers, or token ids from 0, got {int(tensor.min())}")
        return tensor.to(torch.int64, copy=True)  # later changes of the user's array must not reach the task
    converted = tensor.to(torch.float32, copy=True)
    if not (sound := torch.isfinite(converted)).all():
        beyond = f"{tensor[~sound][0]:g}, too large for float32" if torch.isfinite(tensor).all() else "NaN or infinity"
        raise DataError(f"{name}: must be finite numbers, got {beyond}")
    return converted


def _labels(name: str, values: Any) -> Tensor:
    tensor = _tensor(name, values)
    if tensor.dim() != 1 or tensor.is_floating_point() or tensor.is_complex():
        found = f"shape {tuple(tensor.shape)} of {tensor.dtype}"
        raise DataError(f"{name}: must be (n,) whole numbers, got {found}; {NOT_SUPPORTED}")
    return tensor.to(torch.int64, copy=True)


def first_of(unlabelled: Tensor | np.ndarray, name: str, like: Tensor) -> UnlabelledSet:
    """Return an unlabelled set that draws from ``unlabelled``, each input at most once.

    Raises:
        DataError: when the inputs do not have the shape of ``like``, the training inputs.
    """
    inputs = _inputs("unlabelled", unlabelled)
    if inputs.shape[1:] != like.shape[1:]:
        raise DataError(f"unlabelled: must be as inputs, {tuple(like.shape[1:])}, got {tuple(inputs.shape[1:])}")

    def draw(count: int, rng: np.random.Generator) -> Tensor:
        if count > len(inputs):
            warnings.warn(
                f"distill_samples: the set {name!r} has {len(inputs)}, which are all used in place of {count}",
                stacklevel=2,
            )
        return inputs[torch.from_numpy(rng.permutation(len(inputs))[:count])]

    return draw
