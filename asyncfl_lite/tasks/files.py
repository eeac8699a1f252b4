"""Where data sets on disk are looked for: a task's `folder`, else ``ASYNCFL_DATA``, else a cache folder."""

from __future__ import annotations

import os
from pathlib import Path

from asyncfl_lite.errors import DataError

VARIABLE = "ASYNCFL_DATA"
"""Environment variable that names the folder with all data sets."""

DEFAULT = "~/.cache/asyncfl_lite"
"""Where data sets are looked for when neither a setting nor the variable says."""

CACHE = "ASYNCFL_CACHE"
"""Environment variable that names the folder for what is made once and kept."""


def cache_root() -> Path:
    """Return the folder for what is made once and kept, whether it exists or not."""
    return Path(os.environ.get(CACHE) or DEFAULT).expanduser()


_HOW = f"get the data and name their folder in the task's setting `folder` or the variable {VARIABLE}"


def data_root(folder: str | None) -> Path:
    """Return the folder that holds data sets, whether it exists or not.

    Args:
        folder: a task's setting; None for the environment variable ``ASYNCFL_DATA``, else the cache folder.
    """
    return Path(folder or os.environ.get(VARIABLE) or DEFAULT).expanduser()


def data_folder(folder: str | None, *names: str, how: str = "") -> Path:
    """Return the folder of one data set, which exists.

    Args:
        folder: a task's setting; see :func:`data_root`. It may also be the data set's own folder.
        names: spellings of the data set's folder inside it, such as ``"MRPC", "mrpc"``; the first that is there
            is taken. ``"MNIST/raw"`` is fine too.
        how: how to get the data, the end of the error message.

    Raises:
        DataError: in one line, when there is no such folder.
    """
    root = data_root(folder)
    for name in names:
        if (root / name).is_dir():
            return root / name
    if root.is_dir() and any(root.resolve().parts[-len(Path(name).parts) :] == Path(name).parts for name in names):
        return root
    wanted = " or ".join(f"{name}/" for name in names)
    raise DataError(f"folder: looked in {root} for {wanted}, which is not there; {how or _HOW}")


def data_file(place: Path, *names: str, how: str = "") -> Path:
    """Return the first of the files ``names`` that is in the folder ``place``.

    Args:
        place: a data set's folder, from :func:`data_folder`.
        names: of the same file in different packings, such as ``"train.jsonl", "train.jsonl.xz"``.
        how: how to get the data, the end of the error message.

    Raises:
        DataError: in one line, when none is there.
    """
    for name in names:
        if (place / name).is_file():
            return place / name
    raise DataError(f"folder: looked in {place} for {' or '.join(names)}, which is not there; {how or _HOW}")
