"""Files: atomic writes, reads whose errors name the file, the folders of data sets, and settings in JSON or YAML.

A data set is looked for in its task's setting ``folder``, else in the folder that the environment variable
``ASYNCFL_DATA`` names, else in a cache folder.

Settings files are small. In YAML 1.1, which most libraries read, some words and numbers mean something else than in
YAML 1.2 and to most people. Here, ``yes``, ``no``, ``on`` and ``off`` are words, as in 1.2, so that ``vectorize: off``
says what it seems to say, and ``1e3`` is a number. ``010`` (8 in 1.1) and ``1:30`` (90 in 1.1) are refused. A date is a
date, which no setting takes.
"""

from __future__ import annotations

import csv
import errno
import gzip
import hashlib
import json
import lzma
import os
import re
import secrets
import stat
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, ClassVar
from zipfile import BadZipFile

import yaml

from asyncfl_lite.base.errors import AsyncFLError, ConfigError, DataError, ResultError, reason, shown

DAMAGE: tuple[type[Exception], ...] = (
    *(OSError, ValueError, EOFError, LookupError, TypeError, AttributeError, RecursionError, AssertionError),
    *(csv.Error, lzma.LZMAError, zlib.error, BadZipFile),
)
"""Errors that readers raise for a file that is cut off, in a different format, or missing."""

DAMAGE_IN_TORCH: tuple[type[Exception], ...] = (*DAMAGE, RuntimeError)
"""The same errors, and those that torch raises for damaged files."""

VARIABLE = "ASYNCFL_DATA"
"""Environment variable that names the folder of all data sets."""

DEFAULT = "~/.cache/asyncfl_lite"
"""Folder of data sets if neither a setting nor the variable names one."""

CACHE = "ASYNCFL_CACHE"
"""Environment variable that names the folder of the cache."""


def cache_root() -> Path:
    """Return the cache folder, whether it exists or not."""
    return at_home(os.environ.get(CACHE) or DEFAULT)


def at_home(place: str | Path) -> Path:
    """Return a path with ``~`` expanded.

    Raises:
        DataError: when there is no such user.
    """
    try:
        return Path(place).expanduser()
    except RuntimeError as error:
        raise DataError(f"folder: {place} cannot be found ({reason(error)})") from None


def as_path(place: object, what: str) -> Path:
    """Return ``place`` as a path, or raise if it is not one; ``what`` names it in the message.

    Raises:
        ConfigError: when ``place`` is not a path.
    """
    if not isinstance(place, str | os.PathLike) or "\0" in os.fspath(place):
        raise ConfigError(f"{what}: must be a path, got {shown(place)}")
    return Path(place)


def regular(path: Path) -> Path:
    """Return the path of a file to read, unless it is a pipe or a terminal, from which reading could wait for ever.

    Raises:
        OSError: if it is one.
    """
    mode = path.stat().st_mode if path.exists() else stat.S_IFREG
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stat.S_ISCHR(mode) and _is_terminal(path)):
        raise OSError(errno.EINVAL, "is a pipe or a terminal; write its content into a file first", str(path))
    return path


def _is_terminal(device: Path) -> bool:
    """Return whether a device is a terminal or a serial port, without waiting for it."""
    number = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        return os.isatty(number)
    finally:
        os.close(number)


def write_atomically(
    path: str | Path, content: str | Callable[[BinaryIO], object], *, keep: str | Path | None = None
) -> None:
    """Write ``content`` to ``path`` completely or not at all, even if the process is killed.

    Args:
        path: the file; its folder is made if it is missing.
        content: text, or a function that writes into an open file.
        keep: path to which the earlier content of ``path`` is moved; a process that dies in between leaves ``keep``,
            but no ``path``.

    Raises:
        ResultError: if the file cannot be written, naming the path and the reason (full disk, no permission).
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
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
    """Return a file's content with its SHA-256 digest at the end.

    Without it, damaged numbers would be read without an error.

    >>> bytes(unsealed(sealed(b"weights")))
    b'weights'
    """
    return content + hashlib.sha256(content).digest()


def unsealed(content: bytes) -> memoryview:
    """Return the content that :func:`sealed` got.

    Raises:
        ValueError: if it is cut off or damaged.
    """
    whole = memoryview(content)
    if hashlib.sha256(whole[:-DIGEST]).digest() != whole[-DIGEST:]:
        raise ValueError("cut off or damaged")
    return whole[:-DIGEST]


def clear_parts(path: str | Path) -> None:
    """Delete the partial files of ``path`` that :func:`write_atomically` leaves behind if its process is killed."""
    path = Path(path)
    part = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{16}[.]part")
    for file in path.parent.iterdir() if path.parent.is_dir() else ():
        if part.fullmatch(file.name):
            file.unlink(missing_ok=True)


LARGE = 2**30
"""Size in bytes above which :func:`fingerprint` uses sizes and modification times instead of contents."""


def fingerprint(places: Iterable[Path]) -> str | None:
    """Return 16 hexadecimal digits that identify files by name and content, wherever they are; None if no file exists.

    If the files have more than :data:`LARGE` bytes in all, sizes and modification times stand for the contents. A
    compressed file counts as its content, so it makes no difference whether a file is compressed, uncompressed or
    present in both forms.

    Args:
        places: files and folders; a folder stands for all files in it and in its subfolders, except hidden ones.
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
    """Turn any error from reading a file inside the block into a one-line error that names the file.

    Args:
        path: the file.
        what: the kind of content that it should have, such as ``"UTF-8 text"``.

    Raises:
        DataError: if reading fails, naming the file, the kind of content that it should have, and the reason.
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
    """Return a file's UTF-8 text; errors name the file.

    Raises:
        DataError: if the file is not UTF-8 or cannot be read.
    """
    with reading(path, "UTF-8 text"):
        return path.read_text(encoding="utf-8")


_HOW = f"get the data and name their folder in the task's setting `folder` or the variable {VARIABLE}"


def data_root(folder: str | None) -> Path:
    """Return the folder of all data sets, whether it exists or not.

    Args:
        folder: a task's setting; if None, the environment variable ``ASYNCFL_DATA`` names the folder, and if that is
            not set, it is the cache folder.
    """
    return at_home(folder or os.environ.get(VARIABLE) or DEFAULT)


def data_folder(folder: str | None, *names: str, how: str = "") -> Path:
    """Return the folder of one data set, or raise if it does not exist.

    Args:
        folder: a task's setting; see :func:`data_root`. It may also be the data set's own folder.
        names: spellings of the data set's folder inside that folder, such as ``"MRPC", "mrpc"``; the first that exists
            is taken. ``"MNIST/raw"`` is fine, too.
        how: advice on how to get the data, which ends the error message.

    Raises:
        DataError: when there is no such folder.
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
    """Return a list with the folder that :func:`data_folder` finds, or an empty list."""
    try:
        return [data_folder(folder, *names)]
    except DataError:
        return []


def data_file(place: Path, *names: str, how: str = "") -> Path:
    """Return the first of the files ``names`` that exists in the folder ``place``.

    Args:
        place: a data set's folder, from :func:`data_folder`.
        names: names of the same file, compressed or not, such as ``"train.jsonl", "train.jsonl.xz"``.
        how: advice on how to get the data, which ends the error message.

    Raises:
        DataError: when none of them exists.
    """
    for name in names:
        if (place / name).is_file():
            return place / name
    raise DataError(f"folder: looked in {place} for {' or '.join(names)}, which is not there; {how or _HOW}")


def shipped(package: str, name: str) -> Path:
    """Return a data file inside an installed package, which is not imported because that can take a second.

    Raises:
        DataError: when the package is not installed, or has no such file.
    """
    found = find_spec(package)
    for folder in (found and found.submodule_search_locations) or ():
        if (path := Path(folder, name)).is_file():
            return path
    raise DataError(
        f"{name}: must come with the package {package}, which {'lacks it' if found else 'is not installed'}"
    )


TAG = "tag:yaml.org,2002:"
LARGEST = 10 * 2**20
"""Size in bytes of the largest file that is read; a grid of thousands of cells is a tenth as large."""


def small_text(path: Path) -> str:
    """Return the text of a settings file, or raise if the file is too large.

    At most one byte more than :data:`LARGEST` is read, so that a file of data does not fill the memory.

    Raises:
        ConfigError: when the file is larger than :data:`LARGEST`.
        OSError: when it cannot be read.
        UnicodeDecodeError: when it is not UTF-8.
    """
    with regular(path).open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ConfigError(f"{path}: must be a file of settings of at most 10 MB, got more")
    return content.decode("utf-8").replace("\r\n", "\n")


def yaml_in(text: str) -> Any:
    """Parse YAML; raise an error for a duplicate key, whose earlier value would be lost silently.

    Raises:
        yaml.YAMLError: when the text is not YAML, or has a duplicate key.
        ValueError: for a date that does not exist, or an integer with too many digits for Python.
    """
    return yaml.load(text, _Loader)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {
        first: [pair for pair in pairs if pair[0] != f"{TAG}bool"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def whole_number(self, node: yaml.ScalarNode) -> int:
        """Return an integer; raise an error for octal numbers and for times, which YAML 1.1 takes for numbers."""
        text, value = node.value, self.construct_yaml_int(node)
        if ":" in text:
            raise _odd(node, f"is {value} in YAML 1.1; write {value}, or '{text}' in quotes")
        digits = text.lstrip("+-").replace("_", "")
        if digits.isdecimal() and int(digits) != abs(value):
            raise _odd(node, f"is {value} in YAML 1.1, and {int(text)} in 1.2; write the number that you mean")
        return value

    def number(self, node: yaml.ScalarNode) -> float:
        """Return a number; raise an error for times."""
        value = self.construct_yaml_float(node)
        if ":" in node.value:
            raise _odd(node, f"is {value} in YAML 1.1; write {value}, or '{node.value}' in quotes")
        return value

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node, keys = super().compose_mapping_node(anchor), set[Hashable]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in keys:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{shown(key.value)} is there twice", key.start_mark
                    )
                keys.add((key.tag, key.value))
        return node


def _odd(node: yaml.ScalarNode, why: str) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, f"{shown(node.value)[1:-1]} {why}", node.start_mark)


_Loader.add_implicit_resolver(f"{TAG}bool", re.compile("(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver(
    f"{TAG}float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$", re.ASCII), list("-+.0123456789")
)
_Loader.add_constructor(f"{TAG}int", _Loader.whole_number)
_Loader.add_constructor(f"{TAG}float", _Loader.number)


def settings_in(path: Path) -> Any:
    """Parse the settings in a JSON or YAML file.

    Raises:
        ConfigError: when the file cannot be read, is neither JSON nor YAML, or has a duplicate key.
    """
    try:
        text = small_text(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({reason(error)})") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: must be UTF-8 text ({reason(error)})") from None
    try:
        return json.loads(text, object_pairs_hook=_without_doubles)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        pass
    try:
        return yaml_in(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is neither JSON nor YAML ({_in_a_line(error)})") from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError(f"{shown(key)} is there twice")
        found[key] = value
    return found


def _in_a_line(error: Exception) -> str:
    """Return the reason why a text is not YAML, with line and column if they are known."""
    mark = getattr(error, "problem_mark", None)
    why = getattr(error, "problem", None) or reason(error)
    return why if mark is None else f"{why}, line {mark.line + 1}, column {mark.column + 1}"
