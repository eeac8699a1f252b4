"""Reader of torchvision's image data sets as uint8 tensors; the files of MNIST-like ones may stay gzipped."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError, needs, reason
from asyncfl_lite.base.files import DAMAGE_IN_TORCH, data_folder
from asyncfl_lite.tasks.arrays import check_labels
from asyncfl_lite.tasks.images.image_task import Labelled


@dataclass(frozen=True)
class Known:
    """A data set that torchvision can read.

    Attributes:
        title: the data set's name in print.
        reader: name of torchvision's class.
        places: its possible folders in the data folder; torchvision's ``root`` is the folder that contains this one.
    """

    title: str
    reader: str
    places: tuple[str, ...]


TORCHVISION_SETS = {
    "mnist": Known("MNIST", "MNIST", ("MNIST",)),
    "fashion_mnist": Known("Fashion-MNIST", "FashionMNIST", ("FashionMNIST",)),
    "cifar10": Known("CIFAR-10", "CIFAR10", ("cifar-10-batches-py", "CIFAR10/cifar-10-batches-py")),
    "cifar100": Known("CIFAR-100", "CIFAR100", ("cifar-100-python", "CIFAR100/cifar-100-python")),
    "stl10": Known("STL-10", "STL10", ("stl10_binary", "STL10/stl10_binary")),
}


@lru_cache(maxsize=4)
def read_files(name: str, folder: str, train: bool, download: bool) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Read the training or the test part of a data set of :data:`TORCHVISION_SETS`, checked by torchvision.

    Args:
        name: the data set's name.
        folder: the folder of data sets, with ``~`` expanded.
        train: whether to read the training part; if False, read the test part.
        download: download the data set first if it is missing.

    Returns:
        ``(n, C, height, width)`` bytes, ``(n,)`` int64 labels, and the classes' names.

    Raises:
        DataError: when files are missing or damaged.
    """
    with needs("images", name):
        from torchvision import datasets  # a second and more to import: only when needed

    known, reader = TORCHVISION_SETS[name], getattr(datasets, TORCHVISION_SETS[name].reader)
    how = f"get it with task_settings download=true, or put {known.title} there as torchvision lays it out"
    place = Path(folder) / known.places[0] if download else data_folder(folder, *known.places, how=how)
    part = {"split": "train" if train else "test"} if name == "stl10" else {"train": train}
    try:
        if issubclass(reader, datasets.MNIST) and not download:
            packed = _packed(reader, place / "raw", "train" if train else "t10k")
            if packed is not None:
                return *packed, _names(reader)
        data = reader(place.parent, download=download, **part)
        images, labels = _channels_first(torch.as_tensor(data.data)), _labels(data)
    except DAMAGE_IN_TORCH as error:
        raise DataError(f"{name}: {place} could not be read ({reason(error)}); {how}") from None
    check_labels(f"{name}: {place}", labels.numpy(), len(images), len(data.classes))
    return images, labels, _names(data)


def _names(data: Any) -> tuple[str, ...]:
    """Return class names; MNIST's ``0 - zero`` and so on become just the digit."""
    return tuple(name.split(" - ")[0] for name in data.classes)


def _channels_first(images: Tensor) -> Tensor:
    """Convert torchvision's arrays (grey, channels last or first) to ``(n, C, height, width)`` bytes."""
    if images.dim() == 3:
        return images[:, None]
    return images.permute(0, 3, 1, 2).contiguous() if images.shape[-1] == 3 else images.contiguous()


def _labels(data: Any) -> Tensor:
    """Return the ``(n,)`` int64 labels, which torchvision stores under one of two names."""
    return torch.as_tensor(np.asarray(data.labels if hasattr(data, "labels") else data.targets)).long()


def _packed(reader: Any, raw: Path, part: str) -> Labelled | None:
    """Read one part of an MNIST-like data set from its ``.gz`` files; None if these are unpacked or missing.

    torchvision unpacks the files into the same folder; here, they are unpacked in memory, after a check of
    torchvision's checksums.

    Raises:
        DataError: when a file is damaged.
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
