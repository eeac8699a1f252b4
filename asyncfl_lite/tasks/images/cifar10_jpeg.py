"""CIFAR-10 (JPEG q75): all of CIFAR-10's images after lossy compression, for use when the originals are not available.

The mean PSNR against the originals is about 30 dB. Accuracies on these images are not CIFAR-10 accuracies, and must
not be compared with published ones.
"""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.files import data_file, data_root, reading
from asyncfl_lite.tasks.arrays import balanced, check_labels
from asyncfl_lite.tasks.images.image_files import ImageFiles, Other
from asyncfl_lite.tasks.images.image_task import Labelled
from asyncfl_lite.tasks.images.torchvision_images import CIFAR_LICENCE, KRIZHEVSKY
from asyncfl_lite.tasks.task import TASKS

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
    """CIFAR-10 (JPEG q75): all 60,000 images, lossily compressed; stand-in for CIFAR-10.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="cifar10_jpeg75", task_settings={"samples": 5000})  # the files are read when a run starts
    >>> config.task, config.task_settings.samples
    ('cifar10_jpeg75', 5000)
    """

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
