"""A user's file with one method: reading it as an entry, and checking the league's rules."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asyncfl_lite.algorithms import ALGORITHMS, Algorithm
from asyncfl_lite.base.errors import ConfigError, shown, unknown_name
from asyncfl_lite.base.files import text_of
from asyncfl_lite.base.registry import import_own
from asyncfl_lite.testing import AlgorithmCheckError, check_algorithm
from asyncfl_reproduction.tuning.grids import Grid

GRID = "GRID"
"""Attribute of a method's class, or name in its file: the values to try for its options."""
NAME = re.compile("[A-Za-z][A-Za-z0-9_]{0,39}")


@dataclass(frozen=True)
class Entry:
    """A method that enters the league, with its file and the values to try for each option, if it declares them.

    The digest is of the file's code, without comments and layout; results of other code belong to another entry.
    """

    file: str
    name: str
    method: type[Algorithm]
    grid: Grid | None
    digest: str

    @property
    def folder(self) -> str:
        """Name of the folder that holds the entry's recorded results."""
        return f"{self.name}-{self.digest}"


def read_entry(file: str | Path, taken: Collection[str] = ()) -> Entry:
    """Import a file and return the method in it.

    Raises:
        ConfigError: in one line, if the file cannot be imported or does not hold exactly one method, if the method's
            name is taken, or if its grid names an option that it does not have.
    """
    path = Path(file).resolve()
    if path.suffix != ".py":
        raise ConfigError(f"{file}: must be a Python file, such as my_method.py")
    module = import_own(str(path))
    names = [name for name in ALGORITHMS if ALGORITHMS.get(name).__module__ == module.__name__]
    if not names:
        raise ConfigError(f"{file}: holds no method; a class needs a line such as @ALGORITHMS.register('name')")
    if len(names) > 1:
        raise ConfigError(f"{file}: holds {len(names)} methods, {' and '.join(names)}; must be one")
    name, method = names[0], ALGORITHMS.get(names[0])
    if name in taken:
        raise ConfigError(f"{file}: the name {name!r} is taken by a method of the field; choose another name")
    if not NAME.fullmatch(name):
        raise ConfigError(f"{file}: a name in the league must have up to 40 letters, digits and _, got {shown(name)}")
    return Entry(str(path), name, method, _grid(file, method, getattr(module, GRID, None)), code_digest(text_of(path)))


def code_digest(text: str) -> str:
    """Return eight digits of a hash of Python code without comments and layout, the same in every version of Python."""
    tree = ast.parse(text)
    for node in ast.walk(tree):  # leave out what only 3.12 and later have
        if not getattr(node, "type_params", True):
            del node.type_params
        if isinstance(node, ast.JoinedStr):
            node.values = [part for part in node.values if not (isinstance(part, ast.Constant) and part.value == "")]
    as_before = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return hashlib.sha256(ast.dump(tree, **as_before).encode()).hexdigest()[:8]


def _grid(file: str | Path, method: type[Algorithm], of_module: Any) -> Grid | None:
    """Return the grid that a method declares, with options named as in searches, or None if it declares none."""
    given = getattr(method, GRID, of_module)
    if given is None:
        return None
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(f"{file}: {GRID} must be a mapping of options to their values, got {shown(given)}")
    own, grid = method.Settings.model_fields, {}
    for knob, values in given.items():
        if knob not in (*own, "client_lr", "server_lr"):
            raise ConfigError(f"{file}: {unknown_name(GRID, knob, [*own, 'client_lr', 'server_lr'])}")
        if not isinstance(values, list | tuple) or not values or len(set(values)) < len(values):
            raise ConfigError(f"{file}: {GRID}: {knob} must be a list of different values, got {shown(values)}")
        grid[f"settings.{knob}" if knob in own else knob] = list(values)
    return grid


def check_rules(entry: Entry) -> None:
    """Raise an error that names the first rule of :func:`.check_algorithm` that a method breaks."""
    try:
        check_algorithm(entry.method)
    except AlgorithmCheckError as error:
        (rule, said), *more = error.failures.items()
        others = f"; it breaks {len(more)} more: {', '.join(name for name, _ in more)}" if more else ""
        raise ConfigError(f"{entry.file}: {entry.method.__name__} breaks the rule {rule!r}: {said}{others}") from None
