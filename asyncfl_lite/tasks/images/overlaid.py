"""Digits overlaid by other digits: small images that train quickly and leave methods room to differ.

On plain digits, every method ends above 92 %, because the classes lie so far apart that even a model that swings
between clients stays right. Here, another digit lies faintly over each digit, with noise, so a swing costs accuracy.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks.images.image_task import Labelled, image_task, number_names
from asyncfl_lite.tasks.images.packaged import (
    DIGITS,
    DIGITS_LICENCE,
    MNIST,
    MNIST_LICENCE,
    digit_pairs,
    digits_images,
    mnist_images,
    split,
)
from asyncfl_lite.tasks.images.parts import WORLDS, Parts, Split
from asyncfl_lite.tasks.images.spoiling import Spoiling
from asyncfl_lite.tasks.images.unlabelled import grey_sets, resize, side_by_side, turns
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource
from asyncfl_lite.tasks.worlds import Worlds


@TASKS.register("overlaid_mnist")
class OverlaidMNIST(TaskSource):
    """MNIST digits at 10×10, under a second digit and noise; stand-in for CIFAR-10.

    There are 4,000 real digits for training and 1,000 for testing, and each is used ``copies`` times.

    The class is that of the digit with weight 1; the other digit has the weight ``overlay``. Only training
    digits are laid over training digits, and only test digits over test digits. A person reads nine in ten. The task is
    not CIFAR-10: it has ten familiar shapes, in grey, of 100 pixels. Like CIFAR-10, it has a small margin between
    classes, so that a server that swings loses accuracy; but levels of accuracy cannot be compared.

    Calibration (seeds 100 to 102, ``overlaid_mnist.csv``): FedAvg on IID data reaches 85.8 ± 0.5 %. At server rate 1
    and large delay, with its best client rate, FedBuff reaches 67.4 ± 4.4 % at α = 0.1, and 73.5 ± 2.0 % on IID data.
    So stale steps at the full server rate alone account for about two thirds of the gap.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("overlaid_mnist")().load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 10, 10), 10, 8000, 2000)
    """

    title: ClassVar[str] = "overlaid MNIST"
    later: ClassVar[frozenset[str]] = frozenset({"split"})
    overlay: float = Field(0.35, ge=0, lt=1)
    """Weight of the other digit, relative to 1 for the digit itself."""
    noise: float = Field(0.3, ge=0)
    """Standard deviation of the noise on every pixel, in standard deviations of the plain images' pixels."""
    copies: int = Field(2, ge=1)
    """Number of times that each digit occurs, each time under another digit and with other noise. There are
    4,000 times this number of training samples, and 1,000 times this number of test samples. Copies of a digit may go
    to different clients."""
    side: Literal[10, 14, 28] = 10
    """Pixels per side; MNIST's own images have 28."""
    split: Split = "fixed"
    """Way to split the images: see :data:`~asyncfl_lite.tasks.images.parts.Split`."""

    def load(self) -> Task:
        """Load the task; if the seed splits the images, they are split as for seed 0."""
        if self.split == "seeded":
            return Worlds(self.draw, WORLDS).of_run(0)
        images, labels = mnist_images()
        train, test = split(resize(images, self.side), labels, 1000)
        spoiling, rng = Spoiling.of(train[0], self.overlay, self.noise), np.random.default_rng(0)
        train, test = (
            (spoiling.among(images, rng, self.copies), labels.repeat(self.copies)) for images, labels in (train, test)
        )
        sets = spoiling.sets(grey_sets(train[0], lambda: digits_images()[0]))
        return image_task("overlaid_mnist", train, test, sets, **self._about)

    @property
    def _about(self) -> dict[str, Any]:
        about = {"source": f"{MNIST}, each under another", "licence": MNIST_LICENCE, "class_names": number_names(10)}
        return {**about, "stands_in_for": "CIFAR-10, MNIST, Fashion-MNIST", "num_classes": 10}

    def draw(self, world: int) -> Task:
        """Make version ``world`` of the task; this number is the seed that splits the images."""
        rng = stream(world, "overlaid_mnist", "images")
        images, labels = mnist_images()
        parts = Parts.of((resize(images, self.side), labels), 1000, world, rng)
        spoiling = Spoiling.of(parts.clients[0], self.overlay, self.noise)

        def spoiled(part: Labelled, count: int) -> Labelled:
            index = turns(len(part[1]), count, rng)
            return spoiling.chosen(part[0], index, rng), part[1][torch.from_numpy(index)]

        train, validation, test = (
            spoiled(part, self.copies * count)
            for part, count in ((parts.clients, 4000), (parts.validation, 1000), (parts.test, 1000))
        )
        sets = spoiling.sets(grey_sets(parts.unlabelled[0], lambda: digits_images()[0]))
        return image_task("overlaid_mnist", train, test, sets, validation=validation, **self._about)


@TASKS.register("overlaid_pairs100")
class OverlaidPairs100(TaskSource):
    """Pairs of digits under a second pair and noise (100 classes); stand-in for CIFAR-100.

    The class is the two-digit number of the pair with weight 1. Pairs are those of ``pairdigits100``; no image of a
    digit occurs in both training and test pairs, not even as an overlay. The task is not CIFAR-100: its classes are
    made of ten shapes in two positions, so that learning one class helps with eighteen others.

    Calibration (seeds 100 to 102, ``overlaid_pairs100.csv``): FedAvg on IID data reaches 82.1 ± 0.4 %. At server rate 1
    and large delay, with its best client rate, FedBuff reaches 64.6 ± 1.8 % at α = 0.1, 64.4 ± 2.8 % at 0.03, and
    64.6 ± 0.3 % on IID data. So the gap comes from stale steps at the full server rate, not from unequal labels.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("overlaid_pairs100")(samples=1000, test_samples=100).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 8, 16), 100, 1000, 100)
    """

    title: ClassVar[str] = "overlaid pairs"
    later: ClassVar[frozenset[str]] = frozenset({"split"})
    overlay: float = Field(0.35, ge=0, lt=1)
    """Weight of the other pair, relative to 1 for the pair itself."""
    noise: float = Field(0.3, ge=0)
    """Standard deviation of the noise on every pixel, in standard deviations of the plain images' pixels."""
    samples: int = Field(10_000, ge=100)
    """Number of training pairs, made of 1,437 digits."""
    test_samples: int = Field(2_000, ge=100)
    """Number of test pairs, made of 360 other digits."""
    split: Split = "fixed"
    """Way to split the images: see :data:`~asyncfl_lite.tasks.images.parts.Split`."""

    def load(self) -> Task:
        """Load the task; if the seed splits the images, they are split as for seed 0."""
        if self.split == "seeded":
            return Worlds(self.draw, WORLDS).of_run(0)
        left, right = split(*digits_images(), 360)
        rng = np.random.default_rng(0)
        train, test = digit_pairs(left, self.samples, rng), digit_pairs(right, self.test_samples, rng)
        spoiling = Spoiling.of(train[0], self.overlay, self.noise)
        train, test = ((spoiling.among(images, rng), labels) for images, labels in (train, test))
        plain = grey_sets(left[0], lambda: mnist_images()[0])
        sets = spoiling.sets({name: side_by_side(draw) for name, draw in plain.items()})
        return image_task("overlaid_pairs100", train, test, sets, **self._about)

    @property
    def _about(self) -> dict[str, Any]:
        about = {"source": f"pairs made of {DIGITS}, each under another", "licence": DIGITS_LICENCE}
        return {**about, "class_names": number_names(100), "stands_in_for": "CIFAR-100", "num_classes": 100}

    def draw(self, world: int) -> Task:
        """Make version ``world`` of the task; this number is the seed that splits the images."""
        rng = stream(world, "overlaid_pairs100", "images")
        parts = Parts.of(digits_images(), 360, world, rng)
        train, validation, test = (
            digit_pairs(part, count, rng)
            for part, count in (
                (parts.clients, self.samples),
                (parts.validation, self.test_samples),
                (parts.test, self.test_samples),
            )
        )
        spoiling = Spoiling.of(train[0], self.overlay, self.noise)
        train, validation, test = ((spoiling.among(part[0], rng), part[1]) for part in (train, validation, test))
        plain = grey_sets(parts.unlabelled[0], lambda: mnist_images()[0])
        sets = spoiling.sets({name: side_by_side(draw) for name, draw in plain.items()})
        return image_task("overlaid_pairs100", train, test, sets, validation=validation, **self._about)
