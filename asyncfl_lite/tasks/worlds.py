"""Tasks whose data are drawn from the run's seed, so that an interval over seeds covers the choice of data too.

Runs in lockstep share cohorts only where their samples lie in the same tensors. So all worlds' samples are rows of the
same tensors, and a run is told which rows are its own. A world is drawn when a run first asks for it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import torch

from asyncfl_lite.tasks.task import Task, TaskSource


class Worlds:
    """Several versions ("worlds") of a task, whose training samples share the same tensors.

    Args:
        draw: function from a world's number to its task; all tasks have the same sizes, shapes and classes.
        count: number of worlds; the run with seed s is in world s modulo ``count``.
    """

    def __init__(self, draw: Callable[[int], Task], count: int) -> None:
        self.draw, self.count = draw, count
        first = draw(0)
        self.size = len(first.labels)
        # pages of memory are taken when they are written to: a world that no run asks for costs nothing
        self.inputs = torch.zeros(count * self.size, *first.input_shape, dtype=first.inputs.dtype)
        self.labels = torch.zeros(count * self.size, *first.labels.shape[1:], dtype=first.labels.dtype)
        self.known = {0: self._placed(0, first)}

    def of_run(self, seed: int) -> TaskInWorld:
        """Return the task for the run with this seed."""
        world = seed % self.count
        if world not in self.known:
            self.known[world] = self._placed(world, self.draw(world))
        return self.known[world]

    def _placed(self, world: int, task: Task) -> TaskInWorld:
        places = np.arange(world * self.size, (world + 1) * self.size)
        own = slice(world * self.size, (world + 1) * self.size)
        self.inputs[own], self.labels[own] = task.inputs, task.labels
        known = {field.name: getattr(task, field.name) for field in fields(Task)}  # not those of a kind of task alone
        known |= {"inputs": self.inputs, "labels": self.labels, "places": places}
        if task.owners is not None:
            known["owners"] = np.tile(task.owners, self.count)  # read only at this world's indices
        return TaskInWorld(**known, worlds=self)


WORLDS = 64
"""Number of ways to split a task's samples; the run with seed s uses split number s modulo this number."""
Split = Literal["fixed", "seeded"]
"""``fixed``: one split into training and test samples for all seeds; nothing is kept for validation, and the natural
unlabelled set is made from training samples. ``seeded``: the seed splits the samples into four parts, such as
:class:`~asyncfl_lite.tasks.images.base.Parts`."""


class SeededSource(TaskSource):
    """Abstract base of the settings of tasks whose samples the seed may split."""

    split: Split = "fixed"
    """Way to split the samples: see :data:`~asyncfl_lite.tasks.worlds.Split`. Test samples are the same for all seeds,
    or drawn from these."""

    @abstractmethod
    def versions(self) -> tuple[Callable[[], Task], Callable[[int], Task]]:
        """Return two functions: one makes the task for all seeds, the other the version that a seed splits."""

    def load(self) -> Task:
        """Load the task; if the seed splits the samples, they are split as for seed 0."""
        fixed, seeded = self.versions()
        return fixed() if self.split == "fixed" else Worlds(seeded, WORLDS).of_run(0)


@dataclass(frozen=True)
class TaskInWorld(Task):
    """One world's version of a task: its own test and unlabelled sets, and the indices of its training samples.

    Attributes:
        worlds: all worlds of the task; None if the data are on another device, to which only one world's were copied.
    """

    worlds: Worlds | None = None

    def of_run(self, seed: int) -> Task:
        """Return the task as the run with this seed sees it."""
        return self if self.worlds is None else self.worlds.of_run(seed)

    def to(self, device: str | torch.device) -> Task:
        """Return the task with its tensors on ``device``; a copy on another device has only this world's samples."""
        return self if torch.device(device) == self.inputs.device else Task.to(self._alone, device)

    @property
    def _alone(self) -> TaskInWorld:
        inputs, labels = self.samples
        return replace(self, inputs=inputs, labels=labels, places=None, worlds=None)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return Task.__reduce_ex__(self if self.worlds is None else self._alone, protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> TaskInWorld:
        return Task.__deepcopy__(self if self.worlds is None else self._alone, memo)
