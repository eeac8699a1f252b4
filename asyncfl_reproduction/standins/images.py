"""Image tasks made of real digits, which stand in for larger images, and CIFAR-10 after lossy compression.

On plain digits, every method ends above 92 %, because the classes lie so far apart that even a model that swings
between clients stays right. So another digit can be laid faintly over each digit, with noise: then a swing costs
accuracy.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from asyncfl_lite.base.data_folders import data_file, data_root
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.files import reading
from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks.arrays import check_labels
from asyncfl_lite.tasks.images.base import (
    DIGITS,
    DIGITS_LICENCE,
    MNIST,
    MNIST_LICENCE,
    Labelled,
    Parts,
    digits_images,
    image_task,
    mnist_images,
    number_names,
    split,
)
from asyncfl_lite.tasks.images.files import CIFAR_LICENCE, KRIZHEVSKY, ImageFiles, Other
from asyncfl_lite.tasks.images.unlabelled import grey_sets, moved, resize, turns
from asyncfl_lite.tasks.splits import balanced
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource, UnlabelledSet
from asyncfl_lite.tasks.video.motion import MovingDigits
from asyncfl_lite.tasks.worlds import WORLDS, Split, Worlds


@dataclass(frozen=True)
class Spoiling:
    """Strength of a second image that is laid over each image, and of the noise that is added.

    Attributes:
        overlay: weight of the image that is laid over, relative to 1 for the image itself.
        noise: standard deviation of the normal noise of each pixel, in the images' own unit.
    """

    overlay: float
    noise: float

    @classmethod
    def of(cls, images: Tensor, overlay: float, noise: float) -> Spoiling:
        """Make a :class:`Spoiling`, with ``noise`` given in standard deviations of the pixels of ``images``.

        This is the same as standardising images, laying standardised ones over them and adding ``noise`` times standard
        normal numbers, except for the scale, which a task's normalisation sets anyway.
        """
        return cls(overlay, noise * float(images.std()))

    def spoiled(self, images: Tensor, others: Tensor, rng: np.random.Generator) -> Tensor:
        """Lay ``others`` over ``images``, both ``(n, C, height, width)``, and add noise."""
        drawn = rng.standard_normal(images.shape, dtype=np.float32)
        return images + self.overlay * others + self.noise * torch.from_numpy(drawn)

    def among(self, images: Tensor, rng: np.random.Generator, copies: int = 1) -> Tensor:
        """Return ``copies`` versions of every image, each with noise and with another of the images laid over it.

        All images come once, then all come again. Without overlay and noise, these are the images themselves.
        """
        return self.chosen(images, np.tile(np.arange(len(images)), copies), rng)

    def chosen(self, images: Tensor, index: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Return the ``(k, C, …)`` images at ``index``, each with noise and with another of ``images`` laid over it.

        Args:
            images: ``(n, C, height, width)`` images.
            index: ``(k,)`` int64 indices of the images to return; they may repeat.
            rng: generator that draws overlays and noise; nothing is drawn if there are neither.

        Raises:
            ConfigError: when there is only one image, so that no other can be laid over it.
        """
        if not (self.overlay or self.noise):
            return images[torch.from_numpy(index)]
        if self.overlay and len(images) < 2:
            raise ConfigError(f"overlay: must be 0 where there is one image and no other, got {self.overlay}")
        steps = rng.integers(1, max(len(images), 2), len(index))
        return self.spoiled(
            images[torch.from_numpy(index)], images[torch.from_numpy((index + steps) % len(images))], rng
        )

    def sets(self, plain: Mapping[str, UnlabelledSet]) -> dict[str, UnlabelledSet]:
        """Return the unlabelled sets ``plain`` with another image of the set laid over each image, and with noise."""
        return {name: self._set(draw) for name, draw in plain.items()}

    def _set(self, draw: UnlabelledSet) -> UnlabelledSet:
        if not (self.overlay or self.noise):
            return draw

        def drawn(count: int, rng: np.random.Generator) -> Tensor:
            images = draw(2 * count, rng)
            return self.spoiled(images[:count], images[count:], rng)

        return drawn


def side_by_side(draw: UnlabelledSet) -> UnlabelledSet:
    """Return an unlabelled set of images that each show two images of ``draw`` side by side."""

    def drawn(count: int, rng: np.random.Generator) -> Tensor:
        images = draw(2 * count, rng)
        return torch.cat([images[:count], images[count:]], dim=-1)

    return drawn


@TASKS.register("overlaid_mnist")
class OverlaidMNIST(TaskSource):
    """MNIST digits at 10×10, under a second digit and noise; stand-in for CIFAR-10.

    There are 4,000 real digits for training and 1,000 for testing, and each is used ``copies`` times.

    The class is that of the digit with weight 1; the other digit has the weight ``overlay``. Only training
    digits are laid over training digits, and only test digits over test digits. A person reads nine in ten. The task is
    not CIFAR-10: it has ten familiar shapes, in grey, of 100 pixels. Like CIFAR-10, it has a small margin between
    classes, so that a server that swings loses accuracy; but levels of accuracy cannot be compared.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("overlaid_mnist")().load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 10, 10), 10, 8000, 2000)
    """

    title: ClassVar[str] = "overlaid MNIST"
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
    """Way to split the images: see :data:`~asyncfl_lite.tasks.worlds.Split`."""

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


def digit_pairs(pool: Labelled, count: int, rng: np.random.Generator) -> Labelled:
    """Return ``(count, 1, 8, 16)`` pairs of digits and their two-digit numbers, all 100 about equally often."""
    images, labels = pool
    numbers = turns(100, count, rng)
    sides = []
    for wanted in (numbers // 10, numbers % 10):
        places = np.empty(count, dtype=np.int64)
        for digit in range(10):
            pairs, drawings = np.flatnonzero(wanted == digit), np.flatnonzero(labels == digit)
            places[pairs] = drawings[turns(len(drawings), len(pairs), rng)]
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

    name: ClassVar[str] = "pairdigits100"
    title: ClassVar[str] = "pairdigits100"
    samples: int = Field(10_000, ge=100)
    """Number of training pairs, made of 1,437 digits."""
    test_samples: int = Field(2_000, ge=100)
    """Number of test pairs, made of 360 other digits."""

    def load(self) -> Task:
        """Load the task."""
        left, right = split(*digits_images(), 360)
        return self._made([left, right], left[0], np.random.default_rng(0))

    def _made(
        self,
        parts: Sequence[Labelled],
        free: Tensor,
        rng: np.random.Generator,
        overlay: float = 0.0,
        noise: float = 0.0,
        source: str = f"pairs made of {DIGITS}",
    ) -> Task:
        """Make the task from the digits for training, perhaps for validation, and for testing; see :class:`Spoiling`.

        The unlabelled sets are made of the digits ``free``.
        """
        counts = [self.samples, *(self.test_samples for _ in parts[1:])]
        plain = [digit_pairs(part, count, rng) for part, count in zip(parts, counts, strict=True)]
        spoiling = Spoiling.of(plain[0][0], overlay, noise)
        train, *validation, test = ((spoiling.among(images, rng), labels) for images, labels in plain)
        sets = {name: side_by_side(draw) for name, draw in grey_sets(free, lambda: mnist_images()[0]).items()}
        about: dict[str, Any] = {"source": source, "licence": DIGITS_LICENCE, "class_names": number_names(100)}
        about |= {"stands_in_for": "CIFAR-100", "num_classes": 100, "validation": validation[0] if validation else None}
        return image_task(self.name, train, test, spoiling.sets(sets), **about)


@TASKS.register("overlaid_pairs100")
class OverlaidPairs100(PairDigits100):
    """Pairs of digits under a second pair and noise (100 classes); stand-in for CIFAR-100.

    The class is the two-digit number of the pair with weight 1. Pairs are those of ``pairdigits100``; no image of a
    digit occurs in both training and test pairs, not even as an overlay. The task is not CIFAR-100: its classes are
    made of ten shapes in two positions, so that learning one class helps with eighteen others.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("overlaid_pairs100")(samples=1000, test_samples=100).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 8, 16), 100, 1000, 100)
    """

    name: ClassVar[str] = "overlaid_pairs100"
    title: ClassVar[str] = "overlaid pairs"
    overlay: float = Field(0.35, ge=0, lt=1)
    """Weight of the other pair, relative to 1 for the pair itself."""
    noise: float = Field(0.3, ge=0)
    """Standard deviation of the noise on every pixel, in standard deviations of the plain images' pixels."""
    split: Split = "fixed"
    """Way to split the images: see :data:`~asyncfl_lite.tasks.worlds.Split`."""

    def load(self) -> Task:
        """Load the task; if the seed splits the images, they are split as for seed 0."""
        if self.split == "seeded":
            return Worlds(self.draw, WORLDS).of_run(0)
        left, right = split(*digits_images(), 360)
        return self._overlaid([left, right], left[0], np.random.default_rng(0))

    def draw(self, world: int) -> Task:
        """Make version ``world`` of the task; this number is the seed that splits the images."""
        rng = stream(world, "overlaid_pairs100", "images")
        parts = Parts.of(digits_images(), 360, world, rng)
        return self._overlaid([parts.clients, parts.validation, parts.test], parts.unlabelled[0], rng)

    def _overlaid(self, parts: Sequence[Labelled], free: Tensor, rng: np.random.Generator) -> Task:
        return self._made(parts, free, rng, self.overlay, self.noise, f"pairs made of {DIGITS}, each under another")


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

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("writers")(writers=5).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 14, 14), 10, 200, 1000)
    """

    title: ClassVar[str] = "writers"
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
    """Way to split the digits: see :data:`~asyncfl_lite.tasks.worlds.Split`. The handwritings then also depend on
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
        index = torch.from_numpy(turns(len(train[1]), len(owners), rng))
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


FILE = "cifar10-jpeg75.npz"


@lru_cache(maxsize=4)
def _decoded(path: Path, part: str, count: int | None, what: str) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Decode the training or the test part: ``(n, 3, 32, 32)`` bytes, ``(n,)`` int64 labels, and class names.

    Args:
        path: path of the file, which holds one ``jpeg_header`` for all images and, for each of ``train`` and ``test``,
            a ``stream`` with the rest of each image, ``offsets`` into the stream, and ``labels``.
        part: ``train`` or ``test``.
        count: number of images, balanced over classes; None for all.
        what: name of the setting that gives ``count``, for error messages.
    """
    from PIL import Image

    with reading(path):
        with np.load(path) as packed:
            header, stream = packed["jpeg_header"].tobytes(), packed[f"{part}_stream"].tobytes()
            offsets, labels = packed[f"{part}_offsets"], packed[f"{part}_labels"].astype(np.int64)
            names = tuple(str(name) for name in packed["class_names"])
        check_labels(path, labels, len(offsets) - 1, len(names))
    places = balanced(labels, count, what)
    with reading(path):
        files = (io.BytesIO(header + stream[offsets[i] : offsets[i + 1]]) for i in places)
        images = torch.from_numpy(np.stack([np.asarray(Image.open(file)) for file in files]))
    return images.permute(0, 3, 1, 2).contiguous(), torch.from_numpy(labels[places]), names


@TASKS.register("cifar10_jpeg75")
class CIFAR10JPEG75(ImageFiles):
    """CIFAR-10 (JPEG q75): all 60,000 images, lossily compressed; stand-in for CIFAR-10."""

    name: ClassVar[str] = "cifar10_jpeg75"
    title: ClassVar[str] = "CIFAR-10 (JPEG q75)"
    about: ClassVar[dict[str, Any]] = {
        "source": f"CIFAR-10 (JPEG q75), lossy copies of the images of {KRIZHEVSKY}",
        "licence": CIFAR_LICENCE,
        "stands_in_for": "CIFAR-10",
    }
    not_another: ClassVar[frozenset[str]] = frozenset({"cifar10"})
    cross: Other = "photographs"
    natural: Literal["warped", Other] = "warped"

    def files(self) -> list[Path]:
        """Return the data file, if it exists, and the folder of generated images, if the task uses one."""
        places = [data_root(self.folder) / name for name in (FILE, f"CIFAR10/{FILE}")]
        return [path for path in places if path.is_file()][:1] + super().files()

    def read(self) -> tuple[Labelled, Labelled, dict[str, Any]]:
        """Read the requested training and test images, and the number and names of the classes."""
        how = f"it is not a public file; use cifar10, or name the folder of {FILE} in task_settings folder"
        path = data_file(data_root(self.folder), FILE, f"CIFAR10/{FILE}", how=how)
        images, labels, names = _decoded(path, "train", self.samples, "samples")
        tests, test_labels, _ = _decoded(path, "test", self.test_samples, "test_samples")
        return (images, labels), (tests, test_labels), {"num_classes": len(names), "class_names": names}


@TASKS.register("movingdigits_frames")
class MovingDigitsFrames(MovingDigits):
    """`movingdigits` under the name of KUIPER's Fig. 11; stand-in for HMDB51.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("movingdigits_frames")(frames=2).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 2, 16, 16), 40, 2000, 800)
    """
