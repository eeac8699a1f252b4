"""Tasks by name: data, metric, the server's own sets; importing this package registers them all."""

from asyncfl_lite.tasks.base import TASKS, Task, TaskSource
from asyncfl_lite.tasks.images import Digits, MNIST5k

__all__ = ["TASKS", "Digits", "MNIST5k", "Task", "TaskSource"]
