"""Tasks by name."""

from __future__ import annotations

from asyncfl_lite.base.registry import Registry, Settings

TASKS: Registry[Settings] = Registry("task")
"""Name -> a task's settings, which load it (:class:`~asyncfl_lite.tasks.task.TaskSource`)."""
