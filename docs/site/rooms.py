"""Reference pages from docstrings: one for each room of the library."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence

import asyncfl_lite

ROOMS = ("asyncfl_lite", "algorithms", "simulator", "clients", "tasks", "models", "runs", "plots", "testing", "base")
"""Rooms in the order in which readers ask for them; ``asyncfl_lite`` is the one to import from."""
FIRST = {
    "asyncfl_lite": "What most users need. Everything here can be imported from ``asyncfl_lite`` itself.",
}
WITH_OPTIONS = ("algorithms", "simulator", "tasks", "models", "runs")
OPTIONS = "The options of each class are in tables on :doc:`a separate page </settings>`.\n"


def room_pages(rooms: Sequence[str] = ROOMS) -> dict[str, str]:
    """Return the reference pages by file name."""
    return {f"reference/{room}.rst": _page(room) for room in rooms}


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def _page(room: str) -> str:
    if room == "asyncfl_lite":
        names = [name for name in asyncfl_lite.__all__ if name != "__version__"]
        homes = [(getattr(asyncfl_lite, name).__module__, name) for name in names]
        rows = "\n".join(
            f"   * - :py:obj:`{name} <{home}.{name}>`\n     - {_first_line(home, name)}" for home, name in homes
        )
        table = f".. list-table::\n   :widths: 20 80\n\n{rows}\n"
        return f"{_title('asyncfl_lite')}\n{FIRST[room]}\n\n.. automodule:: asyncfl_lite\n   :no-index:\n\n{table}"
    package = f"asyncfl_lite.{room}"
    modules = [*_modules(package)]
    if modules == [package]:
        return f"{_title(room)}\n.. automodule:: {package}\n   :members:\n"
    parts = [_title(room), f".. automodule:: {package}\n"]
    without = ""
    if room != "base":  # where the class of all options itself is
        without = "   :exclude-members: Settings\n"
    if room in WITH_OPTIONS:
        parts.append(OPTIONS)
    for name in modules:
        parts += [_title(name.removeprefix(f"{package}."), "-"), f".. automodule:: {name}\n   :members:\n{without}"]
    return "\n".join(parts)


def _first_line(home: str, name: str) -> str:
    """Return the first line of a docstring; its roles resolve, because the page is in reStructuredText."""
    return (getattr(importlib.import_module(home), name).__doc__ or "").strip().split("\n")[0]


def _modules(package: str) -> Iterator[str]:
    """Yield the modules of a room, or the room itself if it is a module."""
    module = importlib.import_module(package)
    if not hasattr(module, "__path__"):
        yield package
        return
    for found in pkgutil.walk_packages(module.__path__, f"{package}."):
        if not found.ispkg and not found.name.rpartition(".")[2].startswith("_"):
            yield found.name
