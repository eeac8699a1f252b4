"""Generated shapes, with any number of classes and any level of difficulty."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks.images.base import Labelled, image_task, number_names
from asyncfl_lite.tasks.images.unlabelled import moved, resize, strokes, turns
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource, UnlabelledSet
from asyncfl_lite.tasks.worlds import Worlds
from asyncfl_reproduction.standins.images import Spoiling

GRAIN = 6
"""Number of independent values per side of a random field; more of them make finer shapes."""
OWN_PART = 0.6
"""Weight of a look's own part, relative to 1 for the part that all looks of a class share."""
STRANGERS = 200
"""Number of shapes in a world that belong to no class."""


def soft_shapes(fields: Tensor, side: int) -> Tensor:
    """Return ``(n, 1, side, side)`` images in [0, 1] of smooth shapes with soft edges, inside a disc.

    A shape is the region in which a smooth field lies above its median.

    Args:
        fields: ``(n, GRAIN, GRAIN)`` independent normal numbers, between which values are interpolated smoothly.
        side: number of pixels per side of an image.
    """
    smooth = functional.interpolate(fields[:, None], size=(side, side), mode="bicubic", align_corners=True)
    axis = torch.linspace(-1, 1, side)
    inside = torch.exp(-(((axis**2 + axis[:, None] ** 2) / 0.6) ** 4))
    level = smooth.flatten(1).median(1).values[:, None, None, None]
    return torch.sigmoid(4 * (smooth - level)) * inside


class Warp(NamedTuple):
    """Limits of random distortions: rotation in radians, stretch and shear, and shift in halves of the side."""

    angle: float
    scale: float
    shear: float
    shift: float

    def __call__(self, images: Tensor, rng: np.random.Generator) -> Tensor:
        """Return ``(n, 1, side, side)`` images, each distorted by random amounts."""
        count = len(images)
        angle, shear = rng.uniform(-self.angle, self.angle, count), rng.uniform(-self.shear, self.shear, count)
        scale = rng.uniform(1 - self.scale, 1 + self.scale, (2, count))
        return moved(images, angle, scale, shear, rng.uniform(-self.shift, self.shift, (2, count)))


USUAL = Warp(angle=0.35, scale=0.15, shear=0.15, shift=0.15)
FAR = Warp(angle=0.6, scale=0.2, shear=0.2, shift=0.2)
ANYWHERE = Warp(angle=np.pi, scale=0.3, shear=0.3, shift=0.8)


class Scene(NamedTuple):
    """The surroundings of shapes in images: clutter (shapes of no class) and noise.

    Attributes:
        strangers: ``(STRANGERS, 1, 2 side, 2 side)`` shapes of no class.
        spoiling: the strengths of the shape of no class that is laid over each image, and of the noise.
    """

    strangers: Tensor
    spoiling: Spoiling

    def around(self, shapes: Tensor, rng: np.random.Generator) -> Tensor:
        """Shrink ``(n, 1, 2 side, 2 side)`` shapes to ``(n, 1, side, side)`` images, and add clutter and noise."""
        chosen = torch.from_numpy(rng.integers(len(self.strangers), size=len(shapes)))
        clutter = ANYWHERE(self.strangers[chosen], rng)
        small, clutter = (resize(drawn, drawn.shape[-1] // 2) for drawn in (shapes, clutter))
        return self.spoiling.spoiled(small, clutter, rng)


@TASKS.register("glyphs")
class Glyphs(TaskSource):
    """Generated images of ten random shapes, with clutter and noise; stand-in for CIFAR-10.

    A class is a smooth random shape, of which there are several looks. An image is one look, moved and turned, with a
    shape of no class laid over it somewhere, and noise. The run's seed chooses the world: shapes, training and test
    images. So an interval over seeds is an interval over data sets of this kind. The images are not like photographs:
    a small perceptron can learn everything that they contain.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("glyphs")(samples=200, worlds=1).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 12, 12), 10, 200, 1000)
    """

    name: ClassVar[str] = "glyphs"
    title: ClassVar[str] = "glyphs"
    stands_in_for: ClassVar[str] = "CIFAR-10"

    classes: int = Field(10, ge=2, le=500)
    """Number of classes."""
    looks: int = Field(6, ge=1)
    """Number of shapes per class, which are similar but not the same."""
    clutter: float = Field(0.5, ge=0)
    """Strength of the shape of no class that is laid over each image; the image's own shape has strength 1."""
    noise: float = Field(0.1, ge=0)
    """Standard deviation of the noise on every pixel; shapes have values from 0 to 1."""
    side: Literal[8, 10, 12] = 12
    """Pixels per side."""
    samples: int = Field(8000, ge=2)
    """Number of training images, equally many per class."""
    test_samples: int = Field(1000, ge=2)
    """Number of test images, equally many per class; as many again are for validation."""
    worlds: int = Field(64, ge=1, le=1024)
    """Number of worlds; the run with seed s is in world s modulo this number."""

    def load(self) -> Task:
        """Load the task as drawn for seed 0; :meth:`~asyncfl_lite.tasks.task.Task.of_run` gives it for other seeds.

        Raises:
            ConfigError: when there are more classes than samples.
        """
        for name in ("samples", "test_samples"):
            if (given := getattr(self, name)) < self.classes:
                raise ConfigError(f"{name}: must be at least the {self.classes} classes, got {given}")
        return Worlds(self.draw, self.worlds).of_run(0)

    def draw(self, world: int) -> Task:
        """Generate version ``world`` of the task; this number is the seed of shapes and images."""
        rng = stream(world, "glyphs", "shapes")
        centres = rng.standard_normal((self.classes, 1, GRAIN, GRAIN))
        known, fresh = (self._looks(centres, rng) for _ in range(2))
        others = self._looks(rng.standard_normal(centres.shape), rng)
        strangers = soft_shapes(_normal((STRANGERS, GRAIN, GRAIN), rng), 2 * self.side)
        scene = Scene(strangers, Spoiling(self.clutter, self.noise))
        train, test, validation = (
            self._images(known, scene, count, stream(world, "glyphs", part))
            for part, count in (
                ("training", self.samples),
                ("test", self.test_samples),
                ("validation", self.test_samples),
            )
        )

        def of(looks: Tensor, warp: Warp) -> UnlabelledSet:
            shapes = looks.flatten(0, 1)
            return lambda count, rng: scene.around(warp(shapes[turns(len(shapes), count, rng)], rng), rng)

        sets: dict[str, UnlabelledSet] = {
            "cross": of(others, USUAL),
            "natural": of(torch.cat([known, fresh], dim=1), FAR),
            "synthetic": lambda count, rng: scene.around(strokes(2 * self.side, count, rng), rng),
        }
        return image_task(
            self.name,
            train,
            test,
            sets,
            validation=validation,
            num_classes=self.classes,
            source=f"drawn by a generator; world {world} of {self.worlds}",
            licence="MIT, as this package",
            class_names=number_names(self.classes),
            stands_in_for=self.stands_in_for,
        )

    def _looks(self, centres: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Return ``(classes, looks, 1, 2 side, 2 side)`` random shapes: several similar ones for each class."""
        own = rng.standard_normal((self.classes, self.looks, GRAIN, GRAIN))
        fields = torch.from_numpy((centres + OWN_PART * own).astype(np.float32))
        return soft_shapes(fields.flatten(0, 1), 2 * self.side).unflatten(0, (self.classes, self.looks))

    def _images(self, looks: Tensor, scene: Scene, count: int, rng: np.random.Generator) -> Labelled:
        """Return labelled images, with classes as balanced as possible."""
        labels = turns(self.classes, count, rng)
        chosen = looks[torch.from_numpy(labels), torch.from_numpy(rng.integers(self.looks, size=count))]
        return scene.around(USUAL(chosen, rng), rng), torch.from_numpy(labels)


@TASKS.register("glyphs50")
class Glyphs50(Glyphs):
    """Generated images of fifty random shapes; stand-in for the labels of HMDB51 and UCF101.

    Each of 12 clients can have four or five of the shapes.

    The images replace HMDB51 and UCF101 where a claim is about labels, that is, about clients that know a few of very
    many classes. Nothing moves in them, so their results say nothing about clips.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("glyphs50")(samples=200, worlds=1).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 12, 12), 50, 200, 1000)
    """

    name: ClassVar[str] = "glyphs50"
    title: ClassVar[str] = "glyphs, 50 classes"
    stands_in_for: ClassVar[str] = "HMDB51 and UCF101"

    classes: int = Field(50, ge=2, le=500)
    """Number of classes."""
    looks: int = Field(2, ge=1)
    """Number of shapes per class, which are similar but not the same."""
    clutter: float = Field(0.3, ge=0)
    """Strength of the shape of no class that is laid over each image; the image's own shape has strength 1."""
    samples: int = Field(4000, ge=2)
    """Number of training images, equally many per class."""


def _normal(shape: tuple[int, ...], rng: np.random.Generator) -> Tensor:
    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))
