"""Tasks by name (data, metric, the server's own sets) and partitions; importing registers them all."""

from asyncfl_lite.tasks.base import TASKS, Task, TaskSource
from asyncfl_lite.tasks.images import Digits, MNIST5k
from asyncfl_lite.tasks.partition import PARTITIONS, Partition

__all__ = ["MNIST5k", "PARTITIONS", "TASKS", "Digits", "Partition", "Task", "TaskSource"]
