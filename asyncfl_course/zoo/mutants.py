"""Mutants, as in mutation testing: copies of a class with one line of source changed."""

from __future__ import annotations

import difflib
import inspect
import sys
import textwrap
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True)
class Mutation:
    """One change to the source of one class.

    Attributes:
        owner: the class whose source is changed, which is the mutated class itself or one of its bases.
        old: the text to replace, which occurs in that source exactly once.
        new: its replacement.
    """

    owner: type
    old: str
    new: str

    def applied(self, cls: type[T]) -> type[T]:
        """Return a copy of ``cls`` rebuilt from source, with this mutation.

        The copy is not a subclass of ``cls``, and ``super()`` in its methods leads where it does in the original. Its
        code is in no file.

        Raises:
            ValueError: if the class has no such base, or the base's source does not contain ``old`` exactly once.
        """
        if self.owner not in cls.__mro__:
            raise ValueError(f"{self.owner.__name__} is not a base of {cls.__name__}")
        made: dict[str, Any] = {}
        for part in reversed(cls.__mro__[: cls.__mro__.index(self.owner) + 1]):
            source = self._changed() if part is self.owner else source_of(part)
            names = {"np": np, **vars(sys.modules[part.__module__]), **made}
            # annotations stay text, as in the original, because compile() inherits this module's future statements
            exec(compile(source, f"<{part.__name__}>", "exec"), names)
            made[part.__name__] = names[part.__name__]
        return made[cls.__name__]

    def diff(self) -> str:
        """Return the mutation as a unified diff of the class's source."""
        name, sources = self.owner.__name__, (source_of(self.owner), self._changed())
        before, after = (source.splitlines() for source in sources)
        lines = difflib.unified_diff(before, after, f"{name}, healthy", f"{name}, ill", n=2, lineterm="")
        return "\n".join(line.rstrip() for line in lines)

    def _changed(self) -> str:
        source = source_of(self.owner)
        if source.count(self.old) != 1:
            raise ValueError(f"{self.owner.__name__}: {self.old!r} must occur there once, not {source.count(self.old)}")
        return source.replace(self.old, self.new)


def source_of(cls: type) -> str:
    """Return a class's source without its decorators, which would register a copy under the original's name."""
    lines = textwrap.dedent(inspect.getsource(cls)).splitlines()
    return "\n".join(lines[next(index for index, line in enumerate(lines) if line.startswith("class ")) :]) + "\n"
