"""Tasks by name: data, a metric and the server's unlabelled sets; importing this package registers them all.

Each kind of data has a folder, and each task or family of tasks a file in it.
"""

from asyncfl_lite.tasks import generation, images, text, video  # noqa: F401 - they register
from asyncfl_lite.tasks.images.base import Digits, MNIST5k
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource

__all__ = ["TASKS", "Digits", "MNIST5k", "Task", "TaskSource"]
