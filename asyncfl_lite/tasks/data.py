"""The data of a task, shared by the task itself and by the code that describes and draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.tasks.subsets import UnlabelledSet


@dataclass(frozen=True)
class TaskData:
    """The fields of a task: samples, the server's sets, and facts about them.

    :class:`~asyncfl_lite.tasks.task.Task` describes each field.
    """

    name: str
    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    num_classes: int
    source: str = "given by the user"
    unlabelled: Mapping[str, UnlabelledSet] = field(default_factory=dict)
    owners: np.ndarray | None = None
    kinds: np.ndarray | None = None
    vocabulary: int | None = None
    class_names: tuple[str, ...] = ()
    licence: str = "not stated"
    stands_in_for: str = ""
    metric: str = "accuracy"
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None
    clients: tuple[str, ...] = ()
    test_owners: np.ndarray | None = None
    places: np.ndarray | None = None
    validation: tuple[Tensor, Tensor] | None = None

    @property
    def own_places(self) -> np.ndarray:
        """Indices, ``(k,)`` int64, of the run's training samples in ``inputs``; all if :attr:`places` is None."""
        return np.arange(len(self.labels)) if self.places is None else self.places

    @property
    def samples(self) -> tuple[Tensor, Tensor]:
        """Inputs and labels of the samples in :attr:`own_places`."""
        if self.places is None:
            return self.inputs, self.labels
        own = torch.from_numpy(self.places).to(self.labels.device)
        return self.inputs[own], self.labels[own]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.inputs.shape[1:])


def stored(values: torch.Tensor | np.ndarray) -> torch.Tensor | np.ndarray:
    """Return what is in memory of a tensor whose numbers are repeated, as by ``expand``; others as they are."""
    if not isinstance(values, torch.Tensor) or 0 not in values.stride():
        return values
    return values[tuple(slice(0, 1 if stride == 0 else None) for stride in values.stride())]
