"""The common base of tasks with images in files: settings, and images of other kinds for the server."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator
from torch import Tensor

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.base.files import at_home, data_root
from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks.images import unlabelled
from asyncfl_lite.tasks.images.augment import CropAndFlip
from asyncfl_lite.tasks.images.image_task import Labelled, image_task
from asyncfl_lite.tasks.images.packaged import digits_images, mnist_images
from asyncfl_lite.tasks.images.parts import WORLDS, Parts, Split
from asyncfl_lite.tasks.images.torchvision_files import read_files
from asyncfl_lite.tasks.task import Task, TaskSource, UnlabelledSet
from asyncfl_lite.tasks.worlds import Worlds

Other = Literal["digits", "mnist5k", "mnist", "fashion_mnist", "cifar10", "cifar100", "stl10", "photographs"]
"""Other kinds of images for the server; ``photographs`` are crops of the two that scikit-learn ships."""


def _pool(images: Callable[[], Tensor], side: int, channels: int) -> UnlabelledSet:
    """Return an unlabelled set that draws from ``images``, which are read on first use."""
    return lambda count, rng: unlabelled.fit(unlabelled.sample(images(), count, rng), side, channels)


class ImageFiles(TaskSource):
    """Abstract base of tasks with images in files."""

    name: ClassVar[str]
    """The task's name in configurations."""
    title: ClassVar[str]
    """The data set's name in print, which is shown with every number measured on it."""
    about: ClassVar[dict[str, Any]]
    """Fields of the task that do not depend on the files, such as ``source`` and ``licence``."""
    not_another: ClassVar[frozenset[str]] = frozenset()
    """Data sets with the same images, which cannot serve as the task's ``cross`` or ``natural`` set."""

    folder: str | None = None
    """Folder of data sets; by default the one that ASYNCFL_DATA names, else ~/.cache/asyncfl_lite."""
    download: bool = False
    """Whether to download data that do not exist locally."""
    side: int | None = Field(None, ge=8)
    """Pixels per side; None for the original size."""
    samples: int | None = Field(None, ge=1)
    """Number of training images, balanced over classes, always the same ones; None for all."""
    test_samples: int | None = Field(None, ge=1)
    """Number of test images, balanced over classes, always the same ones; None for all."""
    cross: Other
    """Images for FedEcho's unlabelled set from another data set."""
    natural: Literal["warped", Other]
    """FedEcho's set of natural images; ``warped`` means the task's own training images, distorted."""
    generated: str | None = None
    """Folder of generated images for the synthetic set, in the data folder or as a path; None for drawn strokes or
    shapes."""
    augment: bool = False
    """Whether to crop and mirror training images at random. No paper says whether it does; FedRevive's code does on
    CIFAR."""
    later: ClassVar[frozenset[str]] = frozenset({"split"})
    split: Split = "fixed"
    """Way to split the training images: see :data:`~asyncfl_lite.tasks.images.parts.Split`. If the seed splits them,
    ``warped`` images are made from unlabelled ones, and the seed draws the test images from the files' test images."""

    @model_validator(mode="after")
    def _another(self) -> ImageFiles:
        for setting in ("cross", "natural"):
            if (given := getattr(self, setting)) in {self.name, *self.not_another}:
                raise ValueError(f"{setting}: must be other images than {self.title}'s own, got {given!r}")
        return self

    def files(self) -> list[Path]:
        """Return the folder of generated images, if the task uses one.

        Other data sets are left out, since torchvision has their checksums.
        """
        return [] if self.generated is None else [data_root(self.folder) / at_home(self.generated)]

    @abstractmethod
    def read(self) -> tuple[Labelled, Labelled, dict[str, Any]]:
        """Read the requested training and test images, and other fields of the task, such as its classes."""

    def load(self) -> Task:
        """Load the task; if the seed splits the images, they are split as for seed 0.

        Raises:
            DataError: when files are missing or damaged.
        """
        train, test, more = self.read()
        side = self.side or train[0].shape[-1]
        if side != train[0].shape[-1]:
            train, test = ((unlabelled.resize(unlabelled.unit(images), side), known) for images, known in (train, test))
        crop = (lambda black: CropAndFlip(max(1, side // 8), black)) if self.augment else None
        about = {"augment": crop, **self.about, **more}
        if self.split == "fixed":
            return image_task(self.name, train, test, self._sets(train[0]), **about)

        def draw(world: int) -> Task:
            parts = Parts.of_two(train, test, world, stream(world, self.name, "images"))
            sets = self._sets(parts.unlabelled[0])
            return image_task(self.name, parts.clients, parts.test, sets, validation=parts.validation, **about)

        return Worlds(draw, WORLDS).of_run(0)

    def _sets(self, own: Tensor) -> dict[str, UnlabelledSet]:
        """Return FedEcho's three unlabelled sets in the format of ``own``, images that may be warped for one set."""
        channels, side = own.shape[1], own.shape[-1]
        if self.generated is not None:
            folder = data_root(self.folder) / at_home(self.generated)
            synthetic = _pool(lambda: unlabelled.folder_images(folder, side, channels), side, channels)
        else:
            drawn = unlabelled.shapes if channels == 3 else unlabelled.strokes

            def synthetic(count: int, rng: np.random.Generator) -> Tensor:
                return drawn(side, count, rng)

        warped = {"warped": lambda count, rng: unlabelled.warped(own, count, rng)}
        return {
            "cross": self._others("cross", side, channels),
            "natural": warped.get(self.natural) or self._others("natural", side, channels),
            "synthetic": synthetic,
        }

    def _others(self, setting: str, side: int, channels: int) -> UnlabelledSet:
        """Return the unlabelled set of images that the option ``setting`` names, read on first use."""
        name = getattr(self, setting)
        if name == "photographs":
            return lambda count, rng: unlabelled.fit(unlabelled.photographs(side, count, rng), side, channels)
        shipped = {"digits": digits_images, "mnist5k": mnist_images}
        if name in shipped:
            return _pool(lambda: shipped[name]()[0], side, channels)

        def read() -> Tensor:
            try:
                return read_files(name, str(data_root(self.folder)), True, self.download)[0]
            except DataError as error:
                message = f"{setting} images of {self.name}: {error}, or choose others, such as {setting}=photographs"
                raise DataError(message) from None

        return _pool(read, side, channels)
