"""Files: atomic writes, digests of contents, and reads whose errors name the file."""

from __future__ import annotations

import csv
import errno
import glob
import gzip
import hashlib
import lzma
import os
import secrets
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

from asyncfl_lite.base.errors import AsyncFLError, ConfigError, DataError, ResultError, reason, shown

DAMAGE: tuple[type[Exception], ...] = (
    *(OSError, ValueError, EOFError, LookupError, TypeError, AttributeError, RecursionError, AssertionError),
    *(csv.Error, lzma.LZMAError, zlib.error, BadZipFile),
)
"""Errors that readers raise for a file that is cut off, in a different format, or missing."""

DAMAGE_IN_TORCH: tuple[type[Exception], ...] = (*DAMAGE, RuntimeError)
"""The same errors, and those that torch raises for damaged files."""

DEFAULT = "~/.cache/asyncfl_lite"
"""Folder of data sets, and of the cache, if no setting or variable names another."""

CACHE = "ASYNCFL_CACHE"
"""Environment variable that names the folder of the cache."""


def cache_root() -> Path:
    """Return the cache folder, whether it exists or not."""
    return at_home(os.environ.get(CACHE) or DEFAULT)


def at_home(place: str | Path) -> Path:
    """Return a path with ``~`` expanded."""
    try:
        return Path(place).expanduser()
    except RuntimeError as error:
        raise DataError(f"folder: {place} cannot be found ({reason(error)})") from None


def as_path(place: object, what: str) -> Path:
    """Return ``place`` as a path, or raise a ConfigError if it is not one; ``what`` names it in the message."""
    if not isinstance(place, str | os.PathLike) or "\0" in os.fspath(place):
        raise ConfigError(f"{what}: must be a path, got {shown(place)}")
    return Path(place)


def regular(path: Path) -> Path:
    """Return the path of a file to read; raise an OSError for a pipe or a device, which might never end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "is a pipe or a device; write its content into a file first", str(path))
    return path


def write_atomically(
    path: str | Path, content: str | Callable[[BinaryIO], object], *, keep: str | Path | None = None
) -> None:
    """Write text, or what a function writes into an open file, to ``path`` completely or not at all.

    The earlier content is moved to ``keep``, if given; a process that dies in between leaves ``keep``, but no ``path``.
    A partial file that a killed process left of ``path`` is deleted once it is :data:`ABANDONED`.

    Raises:
        ResultError: if the file cannot be written, naming the path and the reason (full disk, no permission).
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_parts(path, untouched=ABANDONED)
        with part.open("xb") as file:  # "x" never overwrites a file, nor follows a link
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
        raise ResultError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from None
    finally:
        with suppress(OSError):  # the part exists only if something went wrong
            part.unlink()


DIGEST = hashlib.sha256().digest_size
"""Number of bytes of the digest at the end of a sealed file."""


def sealed(content: bytes) -> bytes:
    """Return a file's content with its SHA-256 digest at the end, by which damage is noticed."""
    return content + hashlib.sha256(content).digest()


def unsealed(content: bytes) -> memoryview:
    """Return the content that :func:`sealed` got; raise a ValueError if it is cut off or damaged."""
    whole = memoryview(content)
    if hashlib.sha256(whole[:-DIGEST]).digest() != whole[-DIGEST:]:
        raise ValueError("cut off or damaged")
    return whole[:-DIGEST]


ABANDONED = 3600.0
"""Seconds without a write after which a partial file's process must be dead."""


def clear_parts(path: str | Path, *, untouched: float = 0.0) -> None:
    """Delete the partial files of ``path`` that :func:`write_atomically` leaves behind if its process is killed.

    Where others may be writing the same file, ``untouched`` spares what was written within so many seconds.
    """
    path = Path(path)
    for part in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 16}.part"):
        with suppress(OSError):  # another process may have finished or deleted it
            if time.time() - part.lstat().st_mtime >= untouched:
                part.unlink()


LARGE = 2**30
"""Size in bytes above which :func:`fingerprint` uses sizes and modification times instead of contents."""


def fingerprint(places: Iterable[Path]) -> str | None:
    """Return 16 hexadecimal digits that identify files by name and content, wherever they are; None if no file exists.

    A folder stands for all visible files in it and in its subfolders. A compressed file counts as its content. If the
    files have more than :data:`LARGE` bytes in all, sizes and modification times stand for the contents.
    """
    found: dict[str, tuple[str, int, int]] = {}
    for place in map(os.path.abspath, places):
        for path in _files_in(Path(place)):
            name = path.relative_to(Path(place).parent).as_posix()
            status = path.stat()
            found[name.removesuffix(".gz").removesuffix(".xz")] = (str(path), status.st_size, status.st_mtime_ns)
    return _fingerprint(tuple(sorted(found.items()))) if found else None


def _files_in(place: Path) -> Iterator[Path]:
    """Yield ``place`` if it is a file, or else all visible files below it, in each folder compressed ones first."""
    if place.is_file():
        yield place
        return
    for folder, inside, names in os.walk(place):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        for name in sorted(names, key=lambda name: (not name.endswith((".gz", ".xz")), name)):
            path = Path(folder, name)
            if not name.startswith(".") and path.is_file():
                yield path


@lru_cache(maxsize=256)
def _fingerprint(found: tuple[tuple[str, tuple[str, int, int]], ...]) -> str:
    """Return one digest of several files, from names and contents, or from names, sizes and times if they are large."""
    digest, large = hashlib.sha256(), sum(size for _, (_, size, _) in found) > LARGE
    for name, (path, size, changed) in found:
        if large:
            content = f"{size} {changed}"
        else:
            openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
            opened = openers.get(Path(path).suffix, open)
            try:
                with opened(path, "rb") as file:
                    content = hashlib.file_digest(file, "sha256").hexdigest()
            except (EOFError, OSError, lzma.LZMAError, zlib.error):  # the task that reads it will say what is wrong
                content = "unreadable"
        digest.update(f"{name}\0{content}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]


@contextmanager
def reading(path: str | Path, what: str = "") -> Iterator[None]:
    """Turn any error from reading a file inside the block into a one-line :class:`.DataError` that names the file.

    ``what`` is the kind of content that it should have, such as ``"UTF-8 text"``.
    """
    try:
        regular(Path(path))
        yield
    except AsyncFLError:
        raise
    except DAMAGE as error:
        opened = getattr(error, "errno", None) is None  # else the system could not read it, whatever its content
        wanted = f"is not {what}" if what and opened else "could not be read"
        kind = "" if isinstance(error, OSError | UnicodeDecodeError) else f"{type(error).__name__}: "
        raise DataError(f"{path} {wanted} ({kind}{reason(error)})") from None


def text_of(path: Path) -> str:
    """Return a file's UTF-8 text; errors name the file."""
    with reading(path, "UTF-8 text"):
        return path.read_text(encoding="utf-8")
