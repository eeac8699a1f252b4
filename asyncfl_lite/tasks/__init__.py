"""Tasks by name: data, a metric and the server's unlabelled sets.

Each kind of data has a folder, and each task or family of tasks a file in it, which is imported when one of its names
is needed. Users' own data are read by ``own_tables.py`` and joined to a task by ``own_task.py``.
"""

from asyncfl_lite.tasks.images.base import Digits, MNIST5k
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource

TASKS.expect(
    __name__,
    {
        "generation.maths": ("modmath", "gsm8k", "mathinstruct"),
        "images.files": ("mnist", "fashion_mnist", "cifar10", "cifar100", "stl10", "femnist"),
        "text.files": ("mrpc", "newsgroups20", "shakespeare"),
        "text.prose": ("pydoc_topics",),
        "video.motion": ("movingdigits",),
        "video.videos": ("ucf101", "hmdb51", "kinetics"),
    },
)

__all__ = ["TASKS", "Digits", "MNIST5k", "Task", "TaskSource"]
