"""Tasks by name, and the settings that load one."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from asyncfl_lite.base.registry import Registry, Settings
from asyncfl_lite.tasks.task import Task


class TaskSource(Settings):
    """A task's settings, from which it is loaded."""

    revision: ClassVar[int] = 1
    """Raised when its numbers change in meaning, so that older results count as stale."""

    @abstractmethod
    def load(self) -> Task:
        """Read the data and return the task, on the CPU.

        Raises:
            DataError: when the data are not available.
            MissingLibraryError: when an optional library that holds it is not installed.
        """


TASKS: Registry[TaskSource] = Registry("task")
