"""Where the files of data sets are.

A data set is looked for in its task's setting ``folder``, else in the folder that the environment variable
``ASYNCFL_DATA`` names, else in a cache folder.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.base.files import DEFAULT, at_home

VARIABLE = "ASYNCFL_DATA"
"""Environment variable that names the folder of all data sets."""

_HOW = f"get the data and name their folder in the task's setting `folder` or the variable {VARIABLE}"


def data_root(folder: str | None) -> Path:
    """Return the folder of all data sets, whether it exists or not; ``folder`` is a task's setting."""
    return at_home(folder or os.environ.get(VARIABLE) or DEFAULT)


def data_folder(folder: str | None, *names: str, how: str = "") -> Path:
    """Return the folder of one data set, or raise a DataError, which ends with the advice ``how`` to get it.

    ``folder`` is a task's setting (see :func:`data_root`), or the data set's own folder. ``names`` are spellings of the
    data set's folder inside it, such as ``"MRPC", "mrpc"`` or ``"MNIST/raw"``; the first that exists is taken.
    """
    root = data_root(folder)
    for name in names:
        if (root / name).is_dir():
            return root / name
    if root.is_dir() and any(root.resolve().parts[-len(Path(name).parts) :] == Path(name).parts for name in names):
        return root
    wanted = " or ".join(f"{name}/" for name in names)
    raise DataError(f"folder: looked in {root} for {wanted}, which is not there; {how or _HOW}")


def data_places(folder: str | None, *names: str) -> list[Path]:
    """Return the folder that :func:`data_folder` finds, in a list, which is empty if there is none."""
    try:
        return [data_folder(folder, *names)]
    except DataError:
        return []


def data_file(place: Path, *names: str, how: str = "") -> Path:
    """Return the first of ``names``, such as ``"train.jsonl", "train.jsonl.xz"``, that exists in a data set's folder.

    Raises:
        DataError: when none of them exists; it ends with the advice ``how`` to get the data.
    """
    for name in names:
        if (place / name).is_file():
            return place / name
    raise DataError(f"folder: looked in {place} for {' or '.join(names)}, which is not there; {how or _HOW}")


def shipped(package: str, name: str) -> Path:
    """Return a data file inside an installed package, which is not imported because that can take a second."""
    found = find_spec(package)
    for folder in (found and found.submodule_search_locations) or ():
        if (path := Path(folder, name)).is_file():
            return path
    raise DataError(
        f"{name}: must come with the package {package}, which {'lacks it' if found else 'is not installed'}"
    )
