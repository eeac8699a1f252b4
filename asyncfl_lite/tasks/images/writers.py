"""Digits in generated handwriting, with one writer per client, as FedRevive uses FEMNIST."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks.images import unlabelled
from asyncfl_lite.tasks.images.image_task import Labelled, image_task, number_names
from asyncfl_lite.tasks.images.packaged import MNIST, MNIST_LICENCE, digits_images, mnist_images, split
from asyncfl_lite.tasks.images.parts import WORLDS, Parts, Split
from asyncfl_lite.tasks.images.spoiling import Spoiling
from asyncfl_lite.tasks.images.unlabelled import grey_sets, moved, resize
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource
from asyncfl_lite.tasks.worlds import Worlds


def thickened(images: Tensor, by: np.ndarray) -> Tensor:
    """Return grey images with thicker or thinner strokes.

    Args:
        images: ``(n, 1, side, side)`` images.
        by: ``(n,)`` amounts: -1 for a 3×3 erosion, 0 for no change, 1 for a 3×3 dilation, or a number in between.
    """
    thick = functional.max_pool2d(images, 3, stride=1, padding=1)
    thin = -functional.max_pool2d(-images, 3, stride=1, padding=1)
    amount = torch.tensor(by, dtype=images.dtype)[:, None, None, None]
    return torch.where(amount > 0, torch.lerp(images, thick, amount.abs()), torch.lerp(images, thin, amount.abs()))


@TASKS.register("writers")
class Writers(TaskSource):
    """MNIST digits rewritten in each writer's generated handwriting; stand-in for FEMNIST.

    A writer owns the images in their handwriting.

    The task is not FEMNIST: it has ten classes and no letters, and all writers write all digits about equally often.

    Calibration (seeds 100 to 102, ``writers.csv``; side 10, an MLP, 2,000 updates of FedRevive's federation): FedAvg on
    IID data reaches 76.5 ± 0.7 %, and FedBuff by writer, at the printed server rate of 0.025, 75.4 ± 0.9 %. With
    overlay 0.35 and noise 0.3, they reach 65.2 ± 0.8 % and 64.7 ± 0.2 %. Overlays lower both alike and open no gap
    between them.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("writers")(writers=5).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 14, 14), 10, 200, 1000)
    """

    title: ClassVar[str] = "writers"
    later: ClassVar[frozenset[str]] = frozenset({"overlay", "noise", "split"})
    writers: int = Field(200, ge=1)
    """Number of writers; a client of the partition ``natural`` is one of them."""
    samples: int = Field(40, ge=1)
    """Number of training images per writer; once all digits are used, they are used again in another handwriting."""
    side: Literal[10, 14, 28] = 14
    """Pixels per side; MNIST's own images have 28."""
    overlay: float = Field(0.0, ge=0, lt=1)
    """Weight of another writer's digit laid over each, relative to 1 for the digit itself."""
    noise: float = Field(0.0, ge=0)
    """Standard deviation of the noise on every pixel, in standard deviations of the plain images' pixels."""

    split: Split = "fixed"
    """Way to split the digits: see :data:`~asyncfl_lite.tasks.images.parts.Split`. The handwritings then also depend on
    the seed."""

    def load(self) -> Task:
        """Load the task; if the seed splits the digits, they are split as for seed 0."""
        if self.split == "seeded":
            return Worlds(self.draw, WORLDS).of_run(0)
        train, test = split(*mnist_images(), 1000)
        return self._made(np.random.default_rng(0), train, test)

    def draw(self, world: int) -> Task:
        """Make version ``world`` of the task; this number is the seed that splits the digits."""
        rng = stream(world, "writers", "images")
        parts = Parts.of(mnist_images(), 1000, world, rng)
        return self._made(rng, parts.clients, parts.test, parts)

    def _made(self, rng: np.random.Generator, train: Labelled, test: Labelled, parts: Parts | None = None) -> Task:
        """Make the task from digits in writers' handwriting; without ``parts``, unlabelled sets use clients' images."""
        hands = {
            "angle": rng.uniform(-math.pi / 6, math.pi / 6, self.writers),
            "shear": rng.uniform(-0.5, 0.5, self.writers),
            "scale": rng.uniform(0.85, 1.25, (2, self.writers)),
            "stroke": rng.uniform(-0.6, 1.0, self.writers),
        }
        owners = np.repeat(np.arange(self.writers), self.samples)
        index = torch.from_numpy(unlabelled.turns(len(train[1]), len(owners), rng))
        own = self._written(train[0][index], owners, hands), train[1][index]
        tests = self._by_anybody(test, hands, rng)
        spoiling = Spoiling.of(own[0], self.overlay, self.noise)
        free = own if parts is None else self._by_anybody(parts.unlabelled, hands, rng)
        sets = spoiling.sets(grey_sets(free[0], lambda: digits_images()[0]))
        own, tests = ((spoiling.among(part[0], rng), part[1]) for part in (own, tests))
        validation = None
        if parts is not None:
            images, labels = self._by_anybody(parts.validation, hands, rng)
            validation = spoiling.among(images, rng), labels
        about: dict[str, Any] = {
            "source": f"{MNIST}, rewritten in {self.writers} made-up hands",
            "licence": MNIST_LICENCE,
            "class_names": number_names(10),
            "stands_in_for": "FEMNIST",
            "owners": owners,
            "validation": validation,
        }
        return image_task("writers", own, tests, sets, num_classes=10, **about)

    def _by_anybody(self, part: Labelled, hands: dict[str, np.ndarray], rng: np.random.Generator) -> Labelled:
        """Return labelled digits in the handwriting of random writers."""
        return self._written(part[0], rng.integers(self.writers, size=len(part[1])), hands), part[1]

    def _written(self, images: Tensor, owners: np.ndarray, hands: dict[str, np.ndarray]) -> Tensor:
        """Return ``(n, 1, side, side)`` images in their owners' handwriting."""
        hand = {what: values[..., owners] for what, values in hands.items()}
        inked = thickened(images, hand.pop("stroke"))
        return resize(moved(inked, **hand), self.side)
