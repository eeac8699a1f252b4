"""Your own data as a task: what it must look like, and an error of one line where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import ConfigError, DataError, reason
from asyncfl_lite.tasks.subsets import UnlabelledSet

Pair = tuple[Tensor | np.ndarray, Tensor | np.ndarray]


def checked(train: Pair, test: Pair, owners: np.ndarray | None = None) -> tuple[Pair, Pair, int]:
    """Return training and test inputs and labels as tensors that can be trained on, and the number of classes.

    Raises:
        DataError: in one line that names what does not fit.
    """
    inputs, labels = _inputs("inputs", train[0]), _labels("labels", train[1])
    test_inputs, test_labels = _inputs("test_inputs", test[0]), _labels("test_labels", test[1])
    for what, left, right in (("", inputs, labels), ("test_", test_inputs, test_labels)):
        if len(left) != len(right) or not len(left):
            raise DataError(f"{what}inputs: {len(left)} of them and {len(right)} labels; as many, at least 1, needed")
    if inputs.shape[1:] != test_inputs.shape[1:] or inputs.dtype != test_inputs.dtype:
        raise DataError(
            f"test_inputs: must be as inputs, {tuple(inputs.shape[1:])} of {inputs.dtype}, "
            f"got {tuple(test_inputs.shape[1:])} of {test_inputs.dtype}"
        )
    lowest, highest = (int(f(torch.cat([labels, test_labels]))) for f in (torch.min, torch.max))
    if lowest != 0:
        raise DataError(f"labels: must be numbered from 0, got {lowest} to {highest}")
    if owners is not None and np.shape(owners) != (len(labels),):
        raise DataError(f"owners: one for each of the {len(labels)} samples is needed, got shape {np.shape(owners)}")
    return (inputs, labels), (test_inputs, test_labels), highest + 1


def _tensor(name: str, values: Any) -> Tensor:
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{name}: must be a tensor or an array of numbers ({str(error).splitlines()[0]})") from None


def _inputs(name: str, values: Any) -> Tensor:
    """Return inputs, real ones as float32 and token ids as int64."""
    tensor = _tensor(name, values)
    if tensor.dim() < 2:
        raise DataError(f"{name}: must have one sample per row, (n, …), got shape {tuple(tensor.shape)}")
    if tensor.dtype in (torch.uint8, torch.bool) or tensor.is_complex():
        raise DataError(f"{name}: must be real numbers, or int64 token ids, got {tensor.dtype}; scale them first")
    if tensor.is_floating_point() and not torch.isfinite(tensor).all():
        raise DataError(f"{name}: must be finite numbers, got NaN or infinity")
    if not tensor.is_floating_point() and tensor.numel() and tensor.min() < 0:
        raise DataError(f"{name}: must be real numbers, or token ids from 0, got {int(tensor.min())}")
    return tensor.float() if tensor.is_floating_point() else tensor.long()


def _labels(name: str, values: Any) -> Tensor:
    tensor = _tensor(name, values)
    if tensor.dim() != 1 or tensor.is_floating_point() or tensor.is_complex():
        raise DataError(f"{name}: must be (n,) whole numbers, got shape {tuple(tensor.shape)} of {tensor.dtype}")
    return tensor.long()


def stacked(data: Sequence[tuple[Any, int]]) -> tuple[Tensor, Tensor]:
    """Return the inputs and labels of a map-style data set as tensors.

    Raises:
        DataError: when an item is not a pair, or shapes differ.
    """
    try:
        if not len(data):
            raise ValueError("there are none")
        items = [
            (torch.as_tensor(np.asarray(value)), int(label)) for value, label in (data[i] for i in range(len(data)))
        ]
        return torch.stack([value for value, _ in items]), torch.tensor([label for _, label in items])
    except (TypeError, ValueError, RuntimeError, LookupError, AttributeError) as error:
        found = f"{type(error).__name__}: {reason(error)}"
        raise DataError(f"dataset: items must be (input, label) with inputs of one shape ({found})") from None


def first_of(unlabelled: Tensor | np.ndarray, name: str, like: Tensor) -> UnlabelledSet:
    """Return a set that gives random ones of ``unlabelled``, each at most once.

    Raises:
        DataError: when they are not of the shape of ``like``, the training inputs.
    """
    inputs = _inputs("unlabelled", unlabelled)
    if inputs.shape[1:] != like.shape[1:]:
        raise DataError(f"unlabelled: must be as inputs, {tuple(like.shape[1:])}, got {tuple(inputs.shape[1:])}")

    def draw(count: int, rng: np.random.Generator) -> Tensor:
        if count > len(inputs):
            raise ConfigError(f"distill_samples: the set {name!r} has {len(inputs)}, got {count}")
        return inputs[torch.from_numpy(rng.permutation(len(inputs))[:count])]

    return draw
