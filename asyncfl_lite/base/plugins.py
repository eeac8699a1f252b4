"""Users' own modules, which register methods, models, tasks or delay laws without editing the package.

There are two ways to import them. ``--import`` on the command line and ``import:`` in a grid's file name a module or a
file. An installed package may name its module in the entry-point group :data:`GROUP`; this module is imported only when
needed: when a name is unknown without it, or when all names are listed.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from asyncfl_lite.base.errors import ConfigError, reason

T = TypeVar("T")

GROUP = "asyncfl_lite"
"""Name of the entry-point group. In a package's ``pyproject.toml``: ``[project.entry-points.asyncfl_lite]``, then a
line such as ``mine = "my_package.methods"``."""

DISTRIBUTION = "asyncfl-lite"
"""Name of the distribution that this package belongs to."""

MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
"""Pattern for the names of modules."""

_own: list[str] = []
"""Names registered from outside the package, in order."""
_installed: list[str] = []
"""Entry points that have been imported."""


def note(name: str, cls: type) -> None:
    """Record that the class ``cls`` was registered as ``name``, unless it belongs to this package."""
    if not is_ours(cls):
        _own.append(name)


def is_ours(thing: object) -> bool:
    """Return whether a class, a function, or an object's class belongs to this package, and not to a user's code."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] == __name__.partition(".")[0]


def all_ours() -> bool:
    """Return whether no class is registered from outside this distribution, by an import or by an entry point."""
    ours = [point for point in _entry_points() if point.dist and point.dist.name == DISTRIBUTION]
    return len(ours) == len(_entry_points()) and not _own


def on_copies(function: Callable[..., T]) -> Callable[..., T]:
    """Return a user's function such that it gets copies of its tensors, and cannot change data that others see.

    A function of this package is returned as it is.
    """
    if is_ours(function):
        return function
    return lambda *tensors: function(*(tensor.clone() for tensor in tensors))


def import_installed() -> None:
    """Import the modules that installed packages declare as entry points, each only once.

    Raises:
        ConfigError: if one of them cannot be imported; the message names it.
    """
    for point in _entry_points():
        if point.value not in _installed:
            _installed.append(point.value)  # before the import, since the module may ask for names itself
            where = f" of {point.dist.name}" if point.dist else ""
            _import(point.module, f"entry point {point.name!r}{where}")


@cache
def _entry_points() -> EntryPoints:
    return entry_points(group=GROUP)


def import_own(place: str) -> ModuleType:
    """Import a user's module or file, which must register at least one class.

    Args:
        place: a module such as ``my_package.methods``, or the path of a Python file, which may belong to a package.

    Raises:
        ConfigError: when it cannot be imported or registers nothing.
    """
    what, before = f"import: {place}", len(_own)
    if "\0" in place or not (place.endswith(".py") or MODULE.fullmatch(place)):
        raise ConfigError(
            f"import: must be a module, such as my_package.methods, or a Python file, such as methods.py, got {place!r}"
        )
    if not place.endswith(".py"):
        name, known = place, place in sys.modules
        module = _import(name, what)
    else:
        path = Path(place).resolve()
        if not path.is_file():
            raise ConfigError(f"{what}: there is no such file")
        folder, name = path.parent, path.stem
        while (folder / "__init__.py").exists():
            folder, name = folder.parent, f"{folder.name}.{name}"
        if str(folder) not in sys.path:
            sys.path.append(str(folder))  # last, so that a user's file hides no library
        name, known = name.removesuffix(".__init__"), name.removesuffix(".__init__") in sys.modules
        module = _import(name, what)
        if Path(module.__file__ or "").resolve() != path:
            raise ConfigError(f"{what}: a module {name!r} exists already; rename the file")
    if not known and len(_own) == before:
        raise ConfigError(f"{what}: registers nothing; a class needs a line such as @ALGORITHMS.register('name')")
    return module


def located(place: str, folder: Path) -> str:
    """Return the full path of a module's file, or its name if no file is found, so that other processes can import it.

    The file is looked for in ``folder``; the path of a Python file is relative to this folder.

    >>> located("my_package.methods", Path("/nowhere"))
    'my_package.methods'
    """
    if place.endswith(".py") and "\0" not in place:
        return str((folder / place).resolve())
    begin = folder / place.replace(".", "/")
    if not begin.name or "\0" in place:  # it is no module's name
        return place
    for path in (begin.with_name(f"{begin.name}.py"), begin / "__init__.py"):
        if path.is_file():
            return str(path.resolve())
    return place


def _import(name: str, what: str) -> ModuleType:
    """Import a module; turn any error that it raises into a one-line :class:`.ConfigError`."""
    importlib.invalidate_caches()  # its file may be new
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # a script that parses its own command line may exit
        frame = traceback.extract_tb(error.__traceback__)[-1]
        inside = "importlib" in frame.filename or isinstance(error, SyntaxError)  # a SyntaxError names its line itself
        where = "" if inside else f" in {Path(frame.filename).name}, line {frame.lineno}"
        raise ConfigError(f"{what}: cannot be imported ({type(error).__name__}: {reason(error)}{where})") from None
