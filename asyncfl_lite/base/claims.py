"""Claims, by which one of several processes, on any machines, has a folder or a file's path for itself.

A claim is a hidden file, such as ``.claim-1`` in a grid's cell or ``.run.pt.claim-1`` beside a run's checkpoint, with
its holder (a grid or a run), host and process, and the time when it was made. It is created exclusively, so only one
process has it, on whatever machine. Meanwhile the file's modification time is renewed. A claim by a process on this
host is void if the process is gone; a claim from another host is void if it has not been renewed for a long time. Then
the process that creates the file with the next number has the claim, and again only one process can.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from asyncfl_lite.base.errors import ResultError, reason

CLAIM = ".claim-"
RENEWED = 20.0
"""Seconds after which a claim is renewed."""
VOID = 600.0
"""Seconds without renewal after which a claim of another host is void; network drives may report changes late."""
SAME_START = 5.0
"""Seconds by which a process's start time may differ between two readings."""


class Elsewhere(str):
    """The reason, in one line, why another process has what was to be claimed."""

    __slots__ = ()


@contextmanager
def alone_at(path: Path) -> Iterator[None]:
    """Have ``path`` for this block alone, among all threads and processes that ask for it.

    Raises:
        ResultError: if another has it, or nothing can be written beside it; the message says who, and what to do.
    """
    beginning, was_there = path.with_name(f".{path.name}{CLAIM}"), path.parent.exists()
    try:
        # a cell's claim is void after VOID, and then its runs' claims must not be in the way
        claimed = claim(beginning, f"run {secrets.token_hex(8)}", VOID / 2)
    except OSError as error:
        raise ResultError(f"{path.parent}: cannot be written ({reason(error)})") from None
    if isinstance(claimed, Elsewhere):
        last = f"{beginning.name}{max(_numbers(beginning), default=1)}"
        raise ResultError(
            f"{path.parent}: {path.name} is in use by another run ({claimed}); wait for it, or name another folder; if "
            f"that process is gone, remove {last}"
        )
    try:
        with held(claimed):
            yield
    finally:
        if not was_there:
            with suppress(OSError):  # it is not empty
                path.parent.rmdir()


def claim(beginning: Path, holder: str, void: float = VOID) -> Path | Elsewhere:
    """Make a claim; return its file, or the reason why another holds it.

    Args:
        beginning: path of the claims' files up to their numbers, such as ``folder / CLAIM``.
        holder: name of the grid or run that asks. An earlier claim by the same holder is void, because its process was
            lost.
        void: seconds without renewal after which another host's claim is void.

    Raises:
        OSError: if nothing can be written to the folder.
    """
    beginning.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(3):
        before = max(_numbers(beginning), default=0)
        who = _holder(beginning, before)
        if before and not _is_void(_file(beginning, before), who, holder, void):
            return Elsewhere(_words(who))
        path = _file(beginning, before + 1)
        try:
            with path.open("x", encoding="utf-8") as file:
                json.dump({"holder": holder, **_this_process()}, file)
        except FileExistsError:  # another process was faster
            continue
        if not before or before in _numbers(beginning):
            return path
        path.unlink(missing_ok=True)  # another process has taken over the void claim, and released it, in between
    return Elsewhere(_words({}))


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Renew a claim while the block runs, and release the claim afterwards."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(RENEWED):
            with suppress(OSError):  # the drive may be away, or another process may have taken over the claim
                os.utime(path)

    threading.Thread(target=renew, daemon=True).start()
    try:
        yield
    finally:
        done.set()
        _give_back(path)


def _give_back(path: Path) -> None:
    name, _, number = path.name.rpartition("-")
    beginning = path.with_name(f"{name}-")
    with suppress(OSError):
        for earlier in sorted(_numbers(beginning)):
            if earlier <= int(number):
                _file(beginning, earlier).unlink(missing_ok=True)


def is_left_behind(beginning: Path, holder: str) -> bool:
    """Return whether the last claim is ``holder``'s own, which means that its process was lost."""
    return _holder(beginning, max(_numbers(beginning), default=0)).get("holder") == holder


def is_claimed(beginning: Path) -> bool:
    """Return whether there is a claim, whether void or valid."""
    return bool(_numbers(beginning))


def _numbers(beginning: Path) -> set[int]:
    names = (path.name for path in beginning.parent.iterdir()) if beginning.parent.is_dir() else ()
    ends = [name.removeprefix(beginning.name) for name in names if name.startswith(beginning.name)]
    return {int(end) for end in ends if end.isdecimal()}


def _file(beginning: Path, number: int) -> Path:
    return beginning.with_name(f"{beginning.name}{number}")


def _holder(beginning: Path, number: int) -> dict[str, Any]:
    try:
        content = json.loads(_file(beginning, number).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_void(file: Path, who: dict[str, Any], holder: str, void: float) -> bool:
    here = _this_process()
    if who.get("holder") == holder:
        return True
    if all(who.get(name) == here[name] for name in ("host", "namespace")):
        return not _runs(who)
    with tempfile.TemporaryFile(dir=file.parent) as now:  # so that both times come from the folder's machine
        try:
            renewed = file.stat().st_mtime
        except OSError:  # it was released
            return True
        return os.fstat(now.fileno()).st_mtime - renewed > void


def _runs(who: dict[str, Any]) -> bool:
    """Return whether a claim's process still runs on this host; a later process with the same ID does not count."""
    try:
        process = psutil.Process(who["process"])
        same = abs(process.create_time() - who["started"]) < SAME_START
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (KeyError, TypeError, ValueError, psutil.NoSuchProcess):
        return False
    except psutil.Error:  # another user's process
        return True


def _this_process() -> dict[str, Any]:
    namespace = Path("/proc/self/ns/pid")  # containers with one host name have their own process IDs
    return {
        "host": platform.node(),
        "namespace": namespace.stat().st_ino if namespace.exists() else None,
        "process": os.getpid(),
        "started": psutil.Process().create_time(),
        "since": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _words(who: dict[str, Any]) -> str:
    if not {"host", "process", "since"} <= who.keys():
        return "claimed by another process"
    return f"runs on {who['host']} (process {who['process']}) since {who['since']}"
