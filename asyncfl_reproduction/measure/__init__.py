"""Measurements that need no recorded cells, from schedules without training, delay laws, short runs or counting.

The claims and the report use these numbers. Numbers that take long are kept in the cache folder, see :func:`kept`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

import asyncfl_lite
from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.base.files import cache_root, sealed, unsealed, write_atomically
from asyncfl_lite.runs.store import versions

HERE = Path(__file__).parent
CODE = (Path(asyncfl_lite.__file__).parent, HERE, HERE.parent / "standins")
"""Folders with all code and defaults on which the numbers here depend, besides the libraries."""


def kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes its number or table once, and keeps it for other processes (decorator).

    What is kept belongs to the arguments, to the text of all code in :data:`CODE` and to the versions of the libraries.
    If one of them changes, it is computed anew. Nothing is kept by a process that may not run the code as it is now,
    because a file has changed since the process began.

    Args:
        function: function of names and numbers that returns a number or a table of numbers.
    """

    @cache
    @wraps(function)
    def of(*arguments: str | int) -> Any:
        identity = [function.__module__, function.__qualname__, arguments, code(), versions()]
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        path = cache_root() / "measured" / f"{function.__name__}-{digest[:16]}.json"
        if not _is_as_it_was():
            return function(*arguments)
        with suppress(OSError, ValueError):  # there is none, or it is damaged
            found = json.loads(bytes(unsealed(path.read_bytes())))
            return pd.DataFrame(found) if isinstance(found, dict) else found
        value = function(*arguments)
        plain = value.to_dict("list") if isinstance(value, pd.DataFrame) else value
        with suppress(ResultError):  # it cannot be kept here
            write_atomically(path, lambda file: file.write(sealed(json.dumps(plain).encode())))
        return value

    return of


def code() -> str:
    """Return a digest of the files in :data:`CODE`."""
    found = hashlib.sha256()
    for path in _files():
        content = path.read_bytes()
        found.update(f"{path.name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def _files() -> Iterator[Path]:
    for folder in CODE:
        yield from sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".yaml", ".csv"))


def _is_as_it_was() -> bool:
    """Return whether no file has changed since this process began, or a process of Python that it may be a fork of."""
    own = psutil.Process()
    began = own.create_time()
    with suppress(psutil.Error):  # a parent that belongs to somebody else is no Python of ours
        for parent in own.parents():
            if parent.exe() != own.exe():
                break
            began = parent.create_time()
    return max(path.stat().st_mtime for path in _files()) < began
