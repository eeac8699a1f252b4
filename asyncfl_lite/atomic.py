"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from asyncfl_lite.errors import ResultError


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
