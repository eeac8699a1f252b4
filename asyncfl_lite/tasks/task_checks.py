"""Checks of a task's labels, losses and scores, made before hours of training: every label must be a class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.devices import seeded
from asyncfl_lite.base.errors import DataError, reason, shown
from asyncfl_lite.base.registry import is_ours, on_copies
from asyncfl_lite.base.streams import no_global_draws
from asyncfl_lite.tasks.task import Task, stored

SAMPLES = 2
INSTEAD = "a generator of your own with a fixed seed"
"""Source of random numbers for losses and scores."""


def check_classes(task: Task) -> None:
    """Raise a DataError if a task's labels are not classes below ``num_classes``, or its inputs are not finite."""
    for what in ("inputs", "test_inputs"):
        inputs = task.samples[0] if what == "inputs" else task.test_inputs
        few = torch.as_tensor(stored(inputs))
        if inputs.is_floating_point() and inputs.numel() and not torch.stack(few.aminmax()).isfinite().all():
            raise DataError(f"{what}: must be finite numbers, got NaN or infinity")
    for what in ("labels", "test_labels"):
        labels = getattr(task, what)
        whole = not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)
        of_sequences = task.kinds is not None and type(task).losses is not Task.losses
        if not whole or (labels.ndim != 1 and not of_sequences):
            from asyncfl_lite.tasks.arrays import NOT_SUPPORTED

            found = f"{str(labels.dtype).removeprefix('torch.')} of shape {tuple(labels.shape)}"
            raise DataError(f"{what}: must be one class for each sample, (n,) int64, got {found}; {NOT_SUPPORTED}")
        if labels.ndim == 1 and len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < task.num_classes:
            found = f"{int(labels.min())} to {int(labels.max())}"
            raise DataError(f"{what}: must be 0 to {task.num_classes - 1} with {task.num_classes} classes, got {found}")


def check_scoring(task: Task, predict: Callable[[Tensor], Tensor]) -> None:
    """Try the losses and scores of a user's own task class; the package's tests check all others.

    Losses are computed for two training samples, and the whole test set is scored once.

    Args:
        task: the run's task.
        predict: function from ``(n, …)`` inputs to the initial model's ``(n, …)`` outputs, without gradient.

    Raises:
        DataError: when one fails, or returns something else than it must; the message names the method.
    """
    if is_ours(type(task)):
        return
    inputs, labels = (values[torch.arange(SAMPLES) % len(task.own_places)] for values in task.samples)
    with seeded(0, inputs.device):
        outputs = predict(inputs)
        each = f"({len(labels)},) real numbers, one for each sample"
        for method, given in (("losses", outputs.detach().clone().requires_grad_()), ("hits", outputs)):
            values, again = (_called(task, method, given, labels) for _ in range(2))
            if not isinstance(values, Tensor) or values.shape != (len(labels),) or not values.is_floating_point():
                raise _refused(task, method, each, values)
            if given.requires_grad and not values.requires_grad:
                raise _refused(task, method, f"{each}, with a gradient", "a tensor without one")
            if not torch.equal(values.nan_to_num(), again.nan_to_num()):
                raise _refused(task, method, "the same when it is called again with the same", "something else")
        scores = _called(task, "evaluate", predict)
        numbers = scores if isinstance(scores, Mapping) else {}
        if not all(isinstance(numbers.get(name), int | float) for name in ("accuracy", "loss")):
            raise _refused(task, "evaluate", "a dict with the numbers 'accuracy' and 'loss'", scores)
        if (counts := _called(task, "evaluate_classes", predict)) is None:
            return
        shape = (task.num_classes,)
        if not isinstance(counts, tuple) or [np.shape(one) for one in counts] != [shape, shape]:
            raise _refused(task, "evaluate_classes", f"two arrays {shape}, or None", counts)
        rows = _called(task, "class_logits", outputs)
        if not isinstance(rows, Tensor) or rows.shape != (len(outputs), *shape):
            raise _refused(task, "class_logits", f"a tensor {(len(outputs), *shape)}", rows)


def _called(task: Task, method: str, *given: Any) -> Any:
    """Call a method of the task, on copies of tensors, without torch's and NumPy's own random numbers."""
    function, of_a_batch, whose = getattr(task, method), isinstance(given[0], Tensor), type(task).__name__
    try:
        with no_global_draws(type(task), f"task: {whose}.{method}", INSTEAD, DataError if of_a_batch else None):
            return on_copies(function)(*given) if of_a_batch else function(*given)
    except DataError:
        raise
    except Exception as error:
        shapes = " and ".join(str(tuple(value.shape)) for value in given if isinstance(value, Tensor))
        where = f" on {shapes}" if shapes else ""
        raise DataError(f"task: {whose}.{method} fails{where} ({type(error).__name__}: {reason(error)})") from error


def _refused(task: Task, method: str, wanted: str, found: Any) -> DataError:
    if isinstance(found, Tensor):
        found = f"{tuple(found.shape)} of {str(found.dtype).removeprefix('torch.')}"
    text = found if isinstance(found, str) else shown(found)
    return DataError(f"task: {type(task).__name__}.{method} must return {wanted}, got {text}")
