"""MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100 and STL-10 as tasks, read and checked by torchvision.

Nothing is downloaded unless ``download`` is True. The server's unlabelled sets are FedEcho's (§5.1) where they
need no further files, or where the paper uses the data set; each is named by a setting, so that the same settings
mean the same images everywhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from asyncfl_lite.base.files import data_places, data_root
from asyncfl_lite.tasks.images.image_files import ImageFiles, Other
from asyncfl_lite.tasks.images.image_task import Labelled, taken
from asyncfl_lite.tasks.images.packaged import MNIST_LICENCE
from asyncfl_lite.tasks.images.torchvision_files import TORCHVISION_SETS, read_files
from asyncfl_lite.tasks.task import TASKS

KRIZHEVSKY = "Krizhevsky, Nair, Hinton, Learning Multiple Layers of Features from Tiny Images, 2009"
CIFAR_LICENCE = "not stated; the authors ask to cite their report of 2009"


class TorchvisionImages(ImageFiles):
    """Abstract base of tasks whose files torchvision reads."""

    def files(self) -> list[Path]:
        """Return the data set's folder, if it exists, and the folder of generated images, if the task uses one."""
        return data_places(self.folder, *TORCHVISION_SETS[self.name].places) + super().files()

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
    """MNIST: 28×28 grey digits (60,000 training, 10,000 test).

    torchvision reads the files, gzipped or not.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="mnist", task_settings={"samples": 5000})  # the files are read when a run starts
    >>> config.task, config.task_settings.samples
    ('mnist', 5000)
    """

    name: ClassVar[str] = "mnist"
    title: ClassVar[str] = "MNIST"
    about: ClassVar[dict[str, Any]] = {
        "source": "MNIST, LeCun, Cortes, Burges, of NIST's special databases 1 and 3",
        "licence": MNIST_LICENCE,
    }
    not_another: ClassVar[frozenset[str]] = frozenset({"mnist5k"})
    cross: Other = "digits"
    natural: Literal["warped", Other] = "warped"


@TASKS.register("fashion_mnist")
class FashionMNIST(TorchvisionImages):
    """Fashion-MNIST: 28×28 grey images of clothes (60,000 training, 10,000 test).

    torchvision reads the files, gzipped or not.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="fashion_mnist", task_settings={"samples": 5000})  # the files are read when a run starts
    >>> config.task, config.task_settings.samples
    ('fashion_mnist', 5000)
    """

    name: ClassVar[str] = "fashion_mnist"
    title: ClassVar[str] = "Fashion-MNIST"
    about: ClassVar[dict[str, Any]] = {
        "source": "Fashion-MNIST, Xiao, Rasul, Vollgraf (Zalando Research), 2017",
        "licence": "MIT",
    }
    cross: Other = "mnist5k"
    natural: Literal["warped", Other] = "warped"


@TASKS.register("cifar10")
class CIFAR10(TorchvisionImages):
    """CIFAR-10: 32×32 colour images in 10 classes (50,000 training, 10,000 test).

    torchvision reads the files.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="cifar10", task_settings={"samples": 5000})  # the files are read when a run starts
    >>> config.task, config.task_settings.samples
    ('cifar10', 5000)
    """

    name: ClassVar[str] = "cifar10"
    title: ClassVar[str] = "CIFAR-10"
    about: ClassVar[dict[str, Any]] = {"source": f"CIFAR-10, {KRIZHEVSKY}", "licence": CIFAR_LICENCE}
    cross: Other = "cifar100"
    natural: Literal["warped", Other] = "stl10"


@TASKS.register("cifar100")
class CIFAR100(TorchvisionImages):
    """CIFAR-100: 32×32 colour images in 100 classes (50,000 training, 10,000 test).

    torchvision reads the files.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="cifar100", task_settings={"samples": 5000})  # the files are read when a run starts
    >>> config.task, config.task_settings.samples
    ('cifar100', 5000)
    """

    name: ClassVar[str] = "cifar100"
    title: ClassVar[str] = "CIFAR-100"
    about: ClassVar[dict[str, Any]] = {"source": f"CIFAR-100, {KRIZHEVSKY}", "licence": CIFAR_LICENCE}
    cross: Other = "cifar10"
    natural: Literal["warped", Other] = "stl10"


@TASKS.register("stl10")
class STL10(TorchvisionImages):
    """STL-10: 96×96 colour images scaled to 32×32, in 10 classes (5,000 training, 8,000 test).

    torchvision reads the files.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="stl10", task_settings={"side": 32})  # the files are read when a run starts
    >>> config.task, config.task_settings.side
    ('stl10', 32)
    """

    name: ClassVar[str] = "stl10"
    title: ClassVar[str] = "STL-10"
    about: ClassVar[dict[str, Any]] = {
        "source": "STL-10, Coates, Ng, Lee, An Analysis of Single-Layer Networks, 2011; images of ImageNet",
        "licence": "not stated; the authors ask to cite their paper of 2011",
    }
    side: int | None = Field(32, ge=8)
    cross: Other = "cifar100"
    natural: Literal["warped", Other] = "photographs"
