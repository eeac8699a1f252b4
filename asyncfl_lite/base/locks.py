"""Claims, by which one of several processes has a folder or a file's path for itself.

A claim is a locked hidden file, such as ``.claim`` in a grid's cell or ``.run.pt.claim`` beside a run's checkpoint. It
contains the holder (a grid or a run), host, process and time. The system gives the lock to one process at a time, and
ends it with the process. So a file that a killed process has left behind is in nobody's way. On several machines, this
holds if the drive locks files for all of them, as NFS does.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from asyncfl_lite.base.errors import ResultError, reason

CLAIM = ".claim"


class Elsewhere(str):
    """The reason, in one line, why another process has what was to be claimed."""

    __slots__ = ()


@contextmanager
def alone_at(path: Path) -> Iterator[None]:
    """Have ``path`` for this block alone, among all threads and processes that ask for it.

    Raises:
        ResultError: if another has it, or nothing can be written beside it; the message says who, and what to do.
    """
    was_there = path.parent.exists()
    try:
        with claimed(path.with_name(f".{path.name}{CLAIM}"), "run") as elsewhere:
            if elsewhere:
                told = f"{path.name} is in use by another run ({elsewhere}); wait for it, or name another folder"
                raise ResultError(f"{path.parent}: {told}")
            yield
    finally:
        if not was_there:
            with suppress(OSError):  # it is not empty
                path.parent.rmdir()


@contextmanager
def claimed(file: Path, holder: str) -> Iterator[Elsewhere | None]:
    """Have a claim's file for this block alone; yield None, or the reason why another process has it.

    Raises:
        ResultError: if nothing can be written to the folder.
    """
    try:
        claim = _claim(file, holder)
    except OSError as error:
        raise ResultError(f"{file.parent}: cannot be written ({reason(error)})") from None
    if isinstance(claim, Elsewhere):
        yield claim
        return
    try:
        yield None
    finally:
        with suppress(OSError), claim:
            file.unlink()


def is_left_behind(file: Path, holder: str) -> bool:
    """Return whether ``file`` is a claim of ``holder``'s; if it has no workers now, one of them was lost."""
    return _content(file).get("holder") == holder


def _claim(path: Path, holder: str) -> TextIO | Elsewhere:
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as opened:
        file = opened.enter_context(path.open("a", encoding="utf-8"))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return Elsewhere(_words(_content(path)))
        if not (path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())):
            return _claim(path, holder)  # its holder had released the file in between
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        file.truncate(0)
        json.dump({"holder": holder, "host": platform.node(), "process": os.getpid(), "since": since}, file)
        file.flush()
        opened.pop_all()
    return file


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _words(who: dict[str, Any]) -> str:
    if not {"host", "process", "since"} <= who.keys():
        return "claimed by another process"
    return f"runs on {who['host']} (process {who['process']}) since {who['since']}"
