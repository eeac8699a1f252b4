"""Files: written whole or not at all, read with errors that name them, and where data sets on disk are looked for.

A data set is looked for in its task's setting ``folder``, else in the folder that the environment variable
``ASYNCFL_DATA`` names, else in a cache folder.
"""

from __future__ import annotations

import csv
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from zipfile import BadZipFile

from asyncfl_lite.base.errors import AsyncFLError, DataError, ResultError, reason

DAMAGE = (OSError, ValueError, EOFError, LookupError, TypeError, AttributeError, RecursionError, AssertionError)
DAMAGE += (csv.Error, lzma.LZMAError, zlib.error, BadZipFile)
"""What readers of files raise for one that is cut off, of another format, or not there."""

VARIABLE = "ASYNCFL_DATA"
"""Environment variable that names the folder with all data sets."""

DEFAULT = "~/.cache/asyncfl_lite"
"""Where data sets are looked for when neither a setting nor the variable says."""

CACHE = "ASYNCFL_CACHE"
"""Environment variable that names the folder for what is made once and kept."""


def cache_root() -> Path:
    """Return the folder for what is made once and kept, whether it exists or not."""
    return at_home(os.environ.get(CACHE) or DEFAULT)


def at_home(place: str | Path) -> Path:
    """Return a path with ``~`` resolved.

    Raises:
        DataError: when there is no such user.
    """
    try:
        return Path(place).expanduser()
    except RuntimeError as error:
        raise DataError(f"folder: {place} cannot be found ({reason(error)})") from None


def write_atomically(
    path: str | Path, content: str | Callable[[BinaryIO], None], *, keep: str | Path | None = None
) -> None:
    """Write so that ``path`` holds all of ``content``, or what it held before.

    Args:
        path: the file; its folder is made.
        content: text, or a function that writes into an open file.
        keep: where what ``path`` held goes; a process that dies between leaves that, and no ``path``.

    Raises:
        ResultError: naming the path and the reason (full disk, no permission).
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            if isinstance(content, str):
                file.write(content.encode())
            else:
                content(file)
            file.flush()
            os.fsync(file.fileno())
        if keep is not None and path.exists():
            path.replace(keep)
        part.replace(path)
    except (OSError, RuntimeError) as error:  # torch reports a full disk as RuntimeError
        with suppress(OSError):
            part.unlink()
        raise ResultError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from None


def clear_away(path: str | Path) -> None:
    """Remove ``path``, if it is there, and what processes that were killed while they wrote it have left."""
    path = Path(path)
    for file in (path, *path.parent.glob(f".{path.name}.*.part")):
        file.unlink(missing_ok=True)


@contextmanager
def reading(path: str | Path, what: str = "") -> Iterator[None]:
    """Turn whatever goes wrong inside, because of what a file holds, into one line that names it.

    Args:
        path: the file.
        what: what it should be, such as ``"UTF-8 text"``.

    Raises:
        DataError: naming the file, what it should be, and the reason.
    """
    try:
        yield
    except AsyncFLError:
        raise
    except DAMAGE as error:
        wanted = f"is not {what}" if what else "could not be read"
        kind = "" if isinstance(error, OSError | UnicodeDecodeError) else f"{type(error).__name__}: "
        raise DataError(f"{path} {wanted} ({kind}{reason(error)})") from None


def text_of(path: Path) -> str:
    """Return the text of a file.

    Raises:
        DataError: naming it, when it is not UTF-8 or cannot be read.
    """
    with reading(path, "UTF-8 text"):
        return path.read_text(encoding="utf-8")


_HOW = f"get the data and name their folder in the task's setting `folder` or the variable {VARIABLE}"


def data_root(folder: str | None) -> Path:
    """Return the folder that holds data sets, whether it exists or not.

    Args:
        folder: a task's setting; None for the environment variable ``ASYNCFL_DATA``, else the cache folder.
    """
    return at_home(folder or os.environ.get(VARIABLE) or DEFAULT)


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
