"""Tasks by name: data, metric, the server's own sets; importing this package registers them all."""

from asyncfl_lite.tasks import (
    characters,
    cifar10_jpeg,
    femnist,
    frames,
    gsm8k,
    images,
    modmath,
    mrpc,
    newsgroups20,
    snippets,
    text_standins,
    torchvision_images,
    video,
)
from asyncfl_lite.tasks.base import TASKS, Task, TaskSource
from asyncfl_lite.tasks.images import Digits, MNIST5k

__all__ = [
    "TASKS",
    "Digits",
    "MNIST5k",
    "Task",
    "TaskSource",
    "characters",
    "cifar10_jpeg",
    "femnist",
    "frames",
    "gsm8k",
    "images",
    "modmath",
    "mrpc",
    "newsgroups20",
    "snippets",
    "text_standins",
    "torchvision_images",
    "video",
]
