"""FEMNIST: handwritten digits and letters by writer (Caldas et al., "LEAF", arXiv 1812.01097).

Two copies can be read. LEAF's own preparation, run with ``-t sample``, writes ``train/*.json`` and ``test/*.json``.
Each file has ``users``, ``num_samples`` and ``user_data``, in which each user has ``x`` (lists of 784 numbers from 0
to 1) and ``y``. The other is the parquet copy that ``datasets`` reads (flwrlabs/femnist), which FedRevive's authors
use. It has no test part, so a fixed share of all samples is held out (0.15, as FedRevive's authors do).
"""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from asyncfl_lite.base.errors import DataError, needs
from asyncfl_lite.base.files import DAMAGE, data_folder, data_places, reading, text_of
from asyncfl_lite.tasks.arrays import balanced, check_labels
from asyncfl_lite.tasks.images.image_files import ImageFiles, Other
from asyncfl_lite.tasks.images.image_task import Labelled
from asyncfl_lite.tasks.task import TASKS

NAMES = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
"""Class names in LEAF's order, which the parquet copy keeps."""

REPOSITORY = "flwrlabs/femnist"

Written = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Samples: ``(n, 784)`` bytes, ``(n,)`` int64 labels, ``(n,)`` names of their writers."""


def read_leaf(folder: Path) -> Written:
    """Read all samples in LEAF's JSON files in ``folder``, in the order of the file names.

    Raises:
        DataError: when there is no such file, or a file is not LEAF's.
    """
    files = sorted(folder.glob("*.json"))
    if not files:
        raise DataError(f"femnist: looked in {folder} for LEAF's *.json, found none")
    images, labels, writers = [], [], []
    for path in files:
        with reading(f"femnist: {path}", "a file of LEAF's"):
            content = json.loads(text_of(path))
            for user in content["users"]:
                own = content["user_data"][user]
                pixels = np.asarray(own["x"], dtype=np.float64).reshape(-1, 784)
                scale = 255 if pixels.max(initial=0) <= 1 else 1  # older copies have whole numbers up to 255
                if not 0 <= pixels.min(initial=0) <= pixels.max(initial=0) <= 255:  # NaN fails this, too
                    raise DataError(f"femnist: {path}: pixels of {user} must be 0 to 1, or 0 to 255")
                images.append(np.rint(pixels * scale).astype(np.uint8))
                labels.append(np.asarray(own["y"], dtype=np.int64))
                if len(pixels) or len(labels[-1]):
                    check_labels(f"femnist: {path}: {user}", labels[-1], len(pixels), len(NAMES))
                writers.append(np.full(len(pixels), user))
            counts = [len(one) for one in labels[len(labels) - len(content["users"]) :]]
            if counts != list(content["num_samples"]):
                raise DataError(f"femnist: {path} holds other numbers of samples than its num_samples says")
    if not sum(map(len, images)):
        raise DataError(f"femnist: {folder} must have samples in LEAF's *.json, has none")
    return np.concatenate(images), np.concatenate(labels), np.concatenate(writers)


def read_parquet(files: list[str], writers: int | None, *, download: bool = False) -> Written:
    """Read the samples of the chosen writers from the parquet copy, in its order.

    Args:
        files: the parquet files; if there are none and ``download`` is True, ``datasets`` downloads the copy.
        writers: number of writers; see :func:`chosen`.
        download: whether the copy may be downloaded.

    Raises:
        DataError: when the copy cannot be read.
        MissingLibraryError: when ``datasets`` is not installed.
    """
    with needs("text", "femnist: its parquet copy"):
        import datasets
    level = datasets.logging.get_verbosity()
    try:
        datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # the error below says what went wrong
        kind, data = ("parquet", files) if files or not download else (REPOSITORY, None)
        table = datasets.load_dataset(kind, data_files=data, split="train")
        names = np.asarray(table["writer_id"])
        places = np.flatnonzero(chosen(names, names, writers))
        some = table.select(places).cast_column("image", datasets.Image(mode="L"))
        images = np.stack([np.asarray(image).reshape(784) for image in some["image"]])
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


def chosen(names: np.ndarray, among: np.ndarray, writers: int | None) -> np.ndarray:
    """Return a mask of the ``names`` that belong to the first ``writers`` writers of a fixed shuffle.

    Args:
        names: ``(n,)`` writers' names.
        among: all writers' names, any number of times each.
        writers: number of writers; None for all.

    Raises:
        DataError: when there are fewer writers.
    """
    everyone = np.unique(among)
    if writers is not None and writers > len(everyone):
        raise DataError(f"writers: must be at most the {len(everyone)} that there are, got {writers}")
    return np.isin(names, everyone[np.random.default_rng(0).permutation(len(everyone))[:writers]])


@TASKS.register("femnist")
class FEMNIST(ImageFiles):
    """FEMNIST: handwritten digits and letters, with their writers (28×28 grey, 62 classes).

    They are read from LEAF's files or from a parquet copy.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="femnist", task_settings={"writers": 100})  # the files are read when a run starts
    >>> config.task, config.task_settings.writers
    ('femnist', 100)
    """

    name: ClassVar[str] = "femnist"
    title: ClassVar[str] = "FEMNIST"
    about: ClassVar[dict[str, Any]] = {
        "source": "FEMNIST of LEAF (Caldas et al., 2018), of NIST's special database 19",
        "licence": "BSD 2-Clause (LEAF)",
        "num_classes": 62,
        "class_names": NAMES,
    }
    writers: int | None = Field(None, ge=1)
    """Number of writers, always the same ones; None for all. FedRevive takes 1,000 of 3,597."""
    test_share: float = Field(0.15, gt=0, lt=1)
    """Fraction of samples held out for testing, if the copy has no test part of its own."""
    cross: Other = "mnist5k"
    natural: Literal["warped", Other] = "warped"

    def read(self) -> tuple[Labelled, Labelled, dict[str, Any]]:
        """Read training and test images of the chosen writers, and the writer of each training sample."""
        train, test = self._parts()
        train = _part(train, balanced(train[1], self.samples, "samples"))
        test = _part(test, balanced(test[1], self.test_samples, "test_samples"))
        _, owners = np.unique(train[2], return_inverse=True)
        light = train[0].mean() > 127  # LEAF's ink is dark on white paper; here it is light, as in MNIST
        pixels = (255 - part[0] if light else part[0] for part in (train, test))
        images = [torch.from_numpy(one.reshape(-1, 1, 28, 28)) for one in pixels]
        labels = [torch.from_numpy(part[1]) for part in (train, test)]
        return (images[0], labels[0]), (images[1], labels[1]), {"owners": owners}

    def files(self) -> list[Path]:
        """Return the data set's folder, if it exists, and the folder of generated images, if the task uses one."""
        return data_places(self.folder, "femnist", "FEMNIST") + super().files()

    def _parts(self) -> tuple[Written, Written]:
        """Read the training and test samples of the chosen writers."""
        how = "run LEAF's data/femnist/preprocess.sh -t sample, or put the parquet copy there"
        try:
            place = data_folder(self.folder, "femnist", "FEMNIST", how=how)
        except DataError:
            if not self.download:
                raise
            return self._held_out(read_parquet([], self.writers, download=True))
        for folder in (place, place / "data"):
            if (folder / "train").is_dir():
                return self._leaf(folder)
        files = sorted(str(path) for path in place.rglob("*.parquet"))
        if files or self.download:
            return self._held_out(read_parquet(files, self.writers, download=self.download))
        raise DataError(f"femnist: {place} has neither train/*.json nor *.parquet; {how}")

    def _leaf(self, folder: Path) -> tuple[Written, Written]:
        """Read LEAF's training and test sets of the chosen writers; keep the whole test set if none of them is in it.

        That is the case after a split with ``-t user``.
        """
        train, test = read_leaf(folder / "train"), read_leaf(folder / "test")
        mine, tested = (chosen(part[2], train[2], self.writers) for part in (train, test))
        return _part(train, mine), _part(test, tested if tested.any() else np.ones_like(tested))

    def _held_out(self, written: Written) -> tuple[Written, Written]:
        """Hold out a random share of the samples for testing; return the training and the test samples."""
        count = max(1, round(self.test_share * len(written[1])))
        test = np.isin(np.arange(len(written[1])), np.random.default_rng(0).permutation(len(written[1]))[:count])
        return _part(written, ~test), _part(written, test)


def _part(written: Written, which: np.ndarray) -> Written:
    """Return the samples at the given indices, or where the ``(n,)`` bools are true."""
    return tuple(one[which] for one in written)
