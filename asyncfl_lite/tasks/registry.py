"""The registry of tasks."""

from __future__ import annotations

from asyncfl_lite.base.registry import Registry, Settings

TASKS: Registry[Settings] = Registry("task")
"""Name -> the settings of a task, which load it (:class:`~asyncfl_lite.tasks.task.TaskSource`)."""
