"""Sharing of one folder of cells by several grids, in which each process claims the cell that it runs.

A claim is a file in the cell's folder, ``.claim-<number>``, with its holder's grid, host and process, and the time when
it was made. It is created exclusively, so only one process has it, on whatever machine. While the cell runs, the file's
modification time is renewed. A claim by a process on this host is void if the process is gone; a claim from another
host is void if it has not been renewed for a long time. Then the process that creates the file with the next number has
the cell, and again only one process can.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from asyncfl_lite.base.libraries import needs

CLAIM = ".claim-"
RENEWED = 20.0
"""Seconds after which a claim is renewed."""
VOID = 600.0
"""Seconds without renewal after which a claim of another host is void; network drives may report changes late."""
SAME_START = 5.0
"""Seconds by which a process's start time may differ between two readings."""


class Elsewhere(str):
    """The reason, in one line, why this grid leaves a cell to another grid."""

    __slots__ = ()


FINISHED = Elsewhere("finished by another grid")


def claim(folder: Path, grid: str) -> Path | Elsewhere:
    """Claim a cell in its folder; return the claim's file, or the reason why another grid holds the cell.

    Args:
        folder: the cell's folder.
        grid: name of the grid that asks. An earlier claim by the same grid is void, because its process was lost.

    Raises:
        OSError: if nothing can be written to the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(3):
        before = max(_numbers(folder), default=0)
        holder = _holder(folder, before)
        if before and not _is_void(folder, before, holder, grid):
            return Elsewhere(_words(holder))
        path = folder / f"{CLAIM}{before + 1}"
        try:
            with path.open("x", encoding="utf-8") as file:
                json.dump({"grid": grid, **_this_process()}, file)
        except FileExistsError:  # another process was faster
            continue
        if not before or before in _numbers(folder):
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
    """Delete a claim and, before it, the void claims that it replaced."""
    with suppress(OSError):
        for number in sorted(_numbers(path.parent)):
            if number <= _number(path):
                (path.parent / f"{CLAIM}{number}").unlink(missing_ok=True)


def is_left_behind(folder: Path, grid: str) -> bool:
    """Return whether the last claim in a folder is this grid's own, which means that its process was lost."""
    return _holder(folder, max(_numbers(folder), default=0)).get("grid") == grid


def is_claimed(folder: Path) -> bool:
    """Return whether a folder contains a claim, whether void or valid."""
    return bool(_numbers(folder))


def _numbers(folder: Path) -> set[int]:
    return {_number(path) for path in folder.glob(f"{CLAIM}*") if path.name.removeprefix(CLAIM).isdecimal()}


def _number(path: Path) -> int:
    return int(path.name.removeprefix(CLAIM))


def _holder(folder: Path, number: int) -> dict[str, Any]:
    """Read a claim's content; return an empty mapping if the file is incomplete."""
    try:
        content = json.loads((folder / f"{CLAIM}{number}").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_void(folder: Path, number: int, holder: dict[str, Any], grid: str) -> bool:
    here = _this_process()
    if holder.get("grid") == grid:
        return True
    if all(holder.get(name) == here[name] for name in ("host", "namespace")):
        return not _runs(holder)
    with tempfile.TemporaryFile(dir=folder) as file:  # so that both times come from the folder's machine
        try:
            renewed = (folder / f"{CLAIM}{number}").stat().st_mtime
        except OSError:  # it was released
            return True
        return os.fstat(file.fileno()).st_mtime - renewed > VOID


def _runs(holder: dict[str, Any]) -> bool:
    """Return whether a claim's process still runs on this host; a later process with the same ID does not count."""
    import psutil

    try:
        process = psutil.Process(holder["process"])
        same = abs(process.create_time() - holder["started"]) < SAME_START
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (KeyError, TypeError, ValueError, psutil.NoSuchProcess):
        return False
    except psutil.Error:  # another user's process
        return True


def _this_process() -> dict[str, Any]:
    """Return the description of this process that goes into its claims."""
    with needs("grid", "a grid"):
        import psutil

    namespace = Path("/proc/self/ns/pid")  # containers with one host name have their own process IDs
    return {
        "host": platform.node(),
        "namespace": namespace.stat().st_ino if namespace.exists() else None,
        "process": os.getpid(),
        "started": psutil.Process().create_time(),
        "since": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _words(holder: dict[str, Any]) -> str:
    if not {"host", "process", "since"} <= holder.keys():
        return "claimed by another grid"
    return f"runs on {holder['host']} (process {holder['process']}) since {holder['since']}"
