"""Image tasks read from files: MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100, STL-10 and FEMNIST.

Nothing is downloaded unless ``download`` is True. The server's unlabelled sets are FedEcho's (§5.1) where they
need no further files, or where the paper uses the data set; each is named by a setting, so that the same settings
mean the same images everywhere.
"""

from __future__ import annotations

import gzip
import string
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from asyncfl_lite.base.data_folders import data_folder, data_root
from asyncfl_lite.base.errors import DataError, needs, reason
from asyncfl_lite.base.files import DAMAGE, DAMAGE_IN_TORCH, at_home
from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks.arrays import check_labels
from asyncfl_lite.tasks.images import unlabelled
from asyncfl_lite.tasks.images.base import (
    MNIST_LICENCE,
    Labelled,
    Parts,
    digits_images,
    image_task,
    mnist_images,
    taken,
)
from asyncfl_lite.tasks.splits import balanced
from asyncfl_lite.tasks.task import TASKS, DownloadedSource, Limited, Task, UnlabelledSet
from asyncfl_lite.tasks.worlds import SeededSource


@lru_cache(maxsize=4)
def read_files(name: str, folder: str, train: bool, download: bool) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Read the training or the test part of a data set that torchvision reads and checks.

    Returns:
        ``(n, C, height, width)`` bytes, ``(n,)`` int64 labels, and the classes' names.
    """
    with needs("images", name):
        from torchvision import datasets  # a second and more to import: only when needed

    known: Any = TASKS.get(name)
    reader = getattr(datasets, known.__name__)
    how = f"get it with task_settings download=true, or put {known.title} there as torchvision lays it out"
    place = Path(folder) / known.places[0] if download else data_folder(folder, *known.places, how=how)
    part = {"split": "train" if train else "test"} if name == "stl10" else {"train": train}
    try:
        if issubclass(reader, datasets.MNIST) and not download:
            packed = _packed(reader, place / "raw", "train" if train else "t10k")
            if packed is not None:
                return *packed, _names(reader)
        data = reader(place.parent, download=download, **part)
        images = torch.as_tensor(data.data)
        if images.dim() == 3:  # MNIST's grey
            images = images[:, None]
        elif images.shape[-1] == 3:  # CIFAR's colours are last
            images = images.permute(0, 3, 1, 2)
        labels = torch.as_tensor(np.asarray(data.labels if name == "stl10" else data.targets)).long()
    except DAMAGE_IN_TORCH as error:
        raise DataError(f"{name}: {place} could not be read ({reason(error)}); {how}") from None
    check_labels(f"{name}: {place}", labels.numpy(), len(images), len(data.classes))
    return images.contiguous(), labels, _names(data)


def _names(data: Any) -> tuple[str, ...]:
    return tuple(name.split(" - ")[0] for name in data.classes)


def _packed(reader: Any, raw: Path, part: str) -> Labelled | None:
    """Read one part of an MNIST-like data set from its ``.gz`` files; None if these are unpacked or missing.

    torchvision would unpack them into the same folder. Here this is done in memory, after a check of its checksums.
    """
    with needs("images", "image files"):
        from torchvision.datasets.utils import check_integrity

    sums, arrays = dict(reader.resources), []
    for kind in ("images-idx3", "labels-idx1"):
        path = raw / f"{part}-{kind}-ubyte.gz"
        if path.with_suffix("").is_file() or not path.is_file():
            return None
        if not check_integrity(path, sums[path.name]):
            raise DataError(f"{path} is damaged: its MD5 sum is not the published one")
        content = gzip.decompress(path.read_bytes())
        axes = content[3]  # idx: 0, 0, 8 for bytes, the number of axes; their lengths; the bytes
        shape = np.frombuffer(content, ">i4", axes, offset=4)
        arrays.append(torch.from_numpy(np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape).copy()))
    return arrays[0][:, None], arrays[1].long()


Other = Literal["digits", "mnist5k", "mnist", "fashion_mnist", "cifar10", "cifar100", "stl10", "photographs"]
"""Other kinds of images for the server; ``photographs`` are crops of the two that scikit-learn ships."""


def _pool(images: Callable[[], Tensor], side: int, channels: int) -> UnlabelledSet:
    return lambda count, rng: unlabelled.fit(unlabelled.sample(images(), count, rng), side, channels)


class ImageFiles(SeededSource, Limited, DownloadedSource):
    """Abstract base of tasks with images in files."""

    title: ClassVar[str]
    """The data set's name in print, which is shown with every number measured on it."""
    about: ClassVar[dict[str, Any]]
    """Fields of the task that do not depend on the files, such as ``source`` and ``licence``."""
    not_another: ClassVar[frozenset[str]] = frozenset()
    """Data sets with the same images, which cannot serve as the task's ``cross`` or ``natural`` set."""
    defaults: ClassVar[dict[str, Any]] = {}
    """Settings -> the data set's own defaults for them."""

    side: int | None = Field(None, ge=8)
    """Pixels per side; None for the original size."""
    cross: Other
    """Images for FedEcho's unlabelled set from another data set."""
    natural: Literal["warped", Other]
    """FedEcho's set of natural images; ``warped`` means the task's own training images, distorted."""
    generated: str | None = None
    """Folder of generated images for the synthetic set, in the data folder or as a path; None for drawn strokes or
    shapes."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Give the settings the data set's own defaults."""
        super().__pydantic_init_subclass__(**options)
        for setting, default in cls.defaults.items():
            cls.model_fields[setting].default = default
        cls.model_rebuild(force=bool(cls.defaults))

    @model_validator(mode="after")
    def _another(self) -> ImageFiles:
        for setting in ("cross", "natural"):
            if (given := getattr(self, setting)) in {self.name, *self.not_another}:
                raise ValueError(f"{setting}: must be other images than {self.title}'s own, got {given!r}")
        return self

    def files(self) -> list[Path]:
        """Return the data set's folder, if it exists, and the folder of generated images, if the task uses one.

        Other data sets are left out, since torchvision has their checksums.
        """
        return super().files() + ([] if self.generated is None else [data_root(self.folder) / at_home(self.generated)])

    @abstractmethod
    def read(self) -> tuple[Labelled, Labelled, dict[str, Any]]:
        """Read the requested training and test images, and other fields of the task, such as its classes."""

    def versions(self) -> tuple[Callable[[], Task], Callable[[int], Task]]:
        """Return functions that make the task, and the version whose images a seed splits."""
        train, test, more = self.read()
        side = self.side or train[0].shape[-1]
        if side != train[0].shape[-1]:
            train, test = ((unlabelled.resize(unlabelled.unit(images), side), known) for images, known in (train, test))
        about = {**self.about, **more}

        def draw(world: int) -> Task:
            parts = Parts.of_two(train, test, world, stream(world, self.name, "images"))
            sets = self._sets(parts.unlabelled[0])
            return image_task(self.name, parts.clients, parts.test, sets, validation=parts.validation, **about)

        return lambda: image_task(self.name, train, test, self._sets(train[0]), **about), draw

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


KRIZHEVSKY = "Krizhevsky, Nair, Hinton, Learning Multiple Layers of Features from Tiny Images, 2009"
CIFAR_LICENCE = "not stated; the authors ask to cite their report of 2009"


class TorchvisionImages(ImageFiles):
    """Abstract base of tasks whose files torchvision's class of the same name reads; MNIST's may be gzipped."""

    def read(self) -> tuple[Labelled, Labelled, dict[str, Any]]:
        """Read the requested training and test images, and the number and names of the classes."""
        root = str(data_root(self.folder))
        images, labels, names = read_files(self.name, root, True, self.download)
        train = taken(images, labels, self.samples, "samples")
        images, labels, _ = read_files(self.name, root, False, self.download)
        test = taken(images, labels, self.test_samples, "test_samples")
        return train, test, {"num_classes": len(names), "class_names": names}


@TASKS.register("mnist")
class MNIST(TorchvisionImages):
    """MNIST: 28×28 grey digits (60,000 training, 10,000 test)."""

    title: ClassVar[str] = "MNIST"
    places = ("MNIST",)
    about: ClassVar[dict[str, Any]] = {
        "source": "MNIST, LeCun, Cortes, Burges, of NIST's special databases 1 and 3",
        "licence": MNIST_LICENCE,
    }
    not_another: ClassVar[frozenset[str]] = frozenset({"mnist5k"})
    defaults: ClassVar[dict[str, Any]] = {"cross": "digits", "natural": "warped"}


@TASKS.register("fashion_mnist")
class FashionMNIST(TorchvisionImages):
    """Fashion-MNIST: 28×28 grey images of clothes (60,000 training, 10,000 test)."""

    title: ClassVar[str] = "Fashion-MNIST"
    places = ("FashionMNIST",)
    about: ClassVar[dict[str, Any]] = {
        "source": "Fashion-MNIST, Xiao, Rasul, Vollgraf (Zalando Research), 2017",
        "licence": "MIT",
    }
    defaults: ClassVar[dict[str, Any]] = {"cross": "mnist5k", "natural": "warped"}


@TASKS.register("cifar10")
class CIFAR10(TorchvisionImages):
    """CIFAR-10: 32×32 colour images in 10 classes (50,000 training, 10,000 test)."""

    title: ClassVar[str] = "CIFAR-10"
    places = ("cifar-10-batches-py", "CIFAR10/cifar-10-batches-py")
    about: ClassVar[dict[str, Any]] = {"source": f"CIFAR-10, {KRIZHEVSKY}", "licence": CIFAR_LICENCE}
    defaults: ClassVar[dict[str, Any]] = {"cross": "cifar100", "natural": "stl10"}


@TASKS.register("cifar100")
class CIFAR100(TorchvisionImages):
    """CIFAR-100: 32×32 colour images in 100 classes (50,000 training, 10,000 test)."""

    title: ClassVar[str] = "CIFAR-100"
    places = ("cifar-100-python", "CIFAR100/cifar-100-python")
    about: ClassVar[dict[str, Any]] = {"source": f"CIFAR-100, {KRIZHEVSKY}", "licence": CIFAR_LICENCE}
    defaults: ClassVar[dict[str, Any]] = {"cross": "cifar10", "natural": "stl10"}


@TASKS.register("stl10")
class STL10(TorchvisionImages):
    """STL-10: 96×96 colour images scaled to 32×32, in 10 classes (5,000 training, 8,000 test)."""

    title: ClassVar[str] = "STL-10"
    places = ("stl10_binary", "STL10/stl10_binary")
    about: ClassVar[dict[str, Any]] = {
        "source": "STL-10, Coates, Ng, Lee, An Analysis of Single-Layer Networks, 2011; images of ImageNet",
        "licence": "not stated; the authors ask to cite their paper of 2011",
    }
    defaults: ClassVar[dict[str, Any]] = {"side": 32, "cross": "cifar100", "natural": "photographs"}


NAMES = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
"""FEMNIST's class names, in the order of LEAF (Caldas et al., arXiv 1812.01097)."""
REPOSITORY = "flwrlabs/femnist"
TEST_SHARE = 0.15
"""Fraction of FEMNIST's samples held out for testing, as FedRevive's authors do; the copy has no test part."""


def read_parquet(files: list[str], writers: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read FEMNIST's samples of the first ``writers`` writers of a fixed shuffle, in the copy's order.

    Args:
        files: the parquet files; if there are none, ``datasets`` downloads the copy.
        writers: number of writers; None for all.

    Returns:
        ``(n, 1, 28, 28)`` bytes, ``(n,)`` int64 labels, and the ``(n,)`` names of the writers.
    """
    with needs("text", "femnist: its parquet copy"):
        import datasets
    level = datasets.logging.get_verbosity()
    try:
        datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # the error below says what went wrong
        kind, data = ("parquet", files) if files else (REPOSITORY, None)
        table = datasets.load_dataset(kind, data_files=data, split="train")
        names = np.asarray(table["writer_id"])
        everyone = np.unique(names)
        if writers is not None and writers > len(everyone):
            raise DataError(f"writers: must be at most the {len(everyone)} that there are, got {writers}")
        chosen = everyone[np.random.default_rng(0).permutation(len(everyone))[:writers]]
        places = np.flatnonzero(np.isin(names, chosen))
        some = table.select(places).cast_column("image", datasets.Image(mode="L"))
        images = np.stack([np.asarray(image).reshape(1, 28, 28) for image in some["image"]])
        labels = np.asarray(some["character"], dtype=np.int64)
        check_labels("femnist: the parquet copy", labels, len(images), len(NAMES))
        return images, labels, names[places]
    except DataError:
        raise
    except (*DAMAGE, datasets.exceptions.DatasetsError) as error:
        first_line = str(error).split("\n")[0]
        raise DataError(f"femnist: the parquet copy could not be read ({type(error).__name__}: {first_line})") from None
    finally:
        datasets.logging.set_verbosity(level)


@TASKS.register("femnist")
class FEMNIST(ImageFiles):
    """FEMNIST: handwritten digits and letters, with their writers (28×28 grey, 62 classes).

    They are read from the parquet copy that FedRevive's authors use (flwrlabs/femnist).
    """

    title: ClassVar[str] = "FEMNIST"
    places = ("femnist", "FEMNIST")
    how = f"put the parquet files of {REPOSITORY} (Hugging Face hub) there, or set download to true"
    about: ClassVar[dict[str, Any]] = {
        "source": "FEMNIST of LEAF (Caldas et al., 2018), of NIST's special database 19",
        "licence": "BSD 2-Clause (LEAF)",
        "num_classes": 62,
        "class_names": NAMES,
    }
    writers: int | None = Field(None, ge=1)
    """Number of writers, always the same ones; None for all. FedRevive takes 1,000 of 3,597."""
    defaults: ClassVar[dict[str, Any]] = {"cross": "mnist5k", "natural": "warped"}

    def read(self) -> tuple[Labelled, Labelled, dict[str, Any]]:
        """Read training and test images of the chosen writers, and the writer of each training sample."""
        files = [] if self.is_fetched else sorted(map(str, self.home().rglob("*.parquet")))
        if not files and not self.download:
            raise DataError(f"femnist: {self.home()} has no *.parquet; {self.how}")
        images, labels, names = read_parquet(files, self.writers)
        tested = np.zeros(len(labels), dtype=bool)
        tested[np.random.default_rng(0).permutation(len(labels))[: max(1, round(TEST_SHARE * len(labels)))]] = True
        train, test = np.flatnonzero(~tested), np.flatnonzero(tested)
        train = train[balanced(labels[train], self.samples, "samples")]
        test = test[balanced(labels[test], self.test_samples, "test_samples")]
        if images[train].mean() > 127:  # dark ink on white paper; here it is light, as in MNIST
            images = 255 - images
        parts = [(torch.from_numpy(images[part]), torch.from_numpy(labels[part])) for part in (train, test)]
        return parts[0], parts[1], {"owners": np.unique(names[train], return_inverse=True)[1]}
