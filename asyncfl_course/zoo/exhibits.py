"""The twelve exhibits of ``exhibits.yaml``, on four shelves: one buffer, stale updates, memory, around the server.

An exhibit is a method of the package, and a copy of it with one bug. An invariant is graded by mutation testing: it
must hold for healthy servers in any settings, and fail for a server with the bug.
"""

from __future__ import annotations

import difflib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from asyncfl_course.expectations import Wrong, call, expect
from asyncfl_course.zoo.bench import started
from asyncfl_lite.algorithms import ALGORITHMS, Algorithm
from asyncfl_lite.base.errors import AsyncFLError, unknown_name
from asyncfl_lite.base.settings_files import settings_in
from asyncfl_lite.base.streams import untouched_generators

T = TypeVar("T")
Invariant = Callable[[Algorithm], bool]
"""A function that gets a server just started on the bench, experiments with it, and returns whether it is healthy."""


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


@dataclass(frozen=True)
class Exhibit:
    """A healthy server and a copy with one bug.

    Attributes:
        letter: its name.
        method: the registered name of the method.
        old, new: the bug, as a piece of source and what replaces it.
        description: what the method is meant to do.
        suspects: name of a suspect -> what might be wrong.
        place: the name of the right suspect.
        look: an experiment that reveals the bug.
        minutes: the minutes that finding the bug should take.
        settings: the settings of the servers on the bench; the first are the usual ones, and the bug shows with all.
        asleep: settings with which the bug does nothing.
        config: changes to the package's defaults on digits, for its training runs.
        resumed: whether its runs are stopped half-way and resumed.
        shares: whether the clock of its runs sends clients the server's own tensors, as many simulators do; the
            package's clock sends copies.
        known: where such a bug has been published; empty if we know of no case.
        owner: the class in whose source the bug is, if it is a base of the method's class.
    """

    letter: str
    method: str
    old: str
    new: str
    description: str
    suspects: dict[str, str]
    place: str
    look: str
    minutes: int
    settings: list[dict[str, Any]]
    asleep: list[dict[str, Any]] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    resumed: bool = False
    shares: bool = False
    known: str = ""
    owner: str = ""

    @property
    def cls(self) -> type[Algorithm]:
        """The healthy method's class."""
        return ALGORITHMS.get(self.method)

    @property
    def mutation(self) -> Mutation:
        """The change to the source."""
        owner = next(base for base in self.cls.__mro__ if base.__name__ == (self.owner or self.cls.__name__))
        return Mutation(owner, self.old, self.new)

    @cached_property
    def ill_cls(self) -> type[Algorithm]:
        """The class of the method with the bug."""
        return self.mutation.applied(self.cls)

    def healthy(self, **settings: Any) -> Algorithm:
        """Return the server without the bug, started, with these settings in place of the exhibit's usual ones."""
        return started(self.cls(**(settings or self.settings[0])))

    def ill(self, **settings: Any) -> Algorithm:
        """Return the server with the bug, started, as :meth:`healthy` does."""
        return started(self.ill_cls(**(settings or self.settings[0])))

    def ask(self, drive: Callable[[Algorithm], Mapping[str, Any]], **settings: Any) -> pd.DataFrame:
        """Run an experiment on the healthy server and on the one with the bug; return one row of results for each.

        Args:
            drive: gets a server that was just started, and returns its observations by name.
            settings: as for :meth:`healthy`.
        """
        return pd.DataFrame([drive(self.healthy(**settings)), drive(self.ill(**settings))], index=["healthy", "ill"])

    def reveal(self) -> str:
        """Return the bug as a diff between the healthy source and the one with the bug."""
        return self.mutation.diff()

    @contextmanager
    def registered(self) -> Iterator[str]:
        """Register the buggy method as a value of ``Config.algorithm`` inside the block, and yield its name."""
        name = f"{self.method} (exhibit {self.letter})"
        ALGORITHMS.register(name)(self.ill_cls)
        try:
            yield name
        finally:
            ALGORITHMS.remove(name)


SHELVES = {
    shelf: tuple(Exhibit(letter, **told) for letter, told in ones.items())
    for shelf, ones in settings_in(Path(__file__).with_name("exhibits.yaml")).items()
}
EXHIBITS = {one.letter: one for shelf in SHELVES.values() for one in shelf}


def exhibit(letter: str) -> Exhibit:
    """Return the exhibit with this letter, A to L.

    Raises:
        AsyncFLError: there is none.

    >>> from asyncfl_course import zoo
    >>> one = zoo.exhibit("A")
    >>> one.description
    'FedBuff: x ← x + η · mean of the M buffered updates.'
    >>> one.ask(lambda server: {"made a version": zoo.send(server, 1.0)}, buffer_size=1)["made a version"].tolist()
    [True, True]
    """
    if letter not in EXHIBITS:
        raise AsyncFLError(unknown_name("exhibit", letter, EXHIBITS))
    return EXHIBITS[letter]


def grade(letter: str, invariant: Invariant) -> str:
    """Grade an invariant, which must hold for an exhibit's healthy server and fail for the one with the bug.

    Raises:
        Wrong: the invariant is false for the healthy server (a false alarm) or true for the ill one (blind); the
            message gives the settings.
        NotImplementedError: the invariant is still the stub.

    Example: a statement that is true of every server detects nothing.

    >>> from asyncfl_course import zoo
    >>> from asyncfl_course.lessons import Wrong
    >>> def finite(server):
    ...     zoo.fill(server, 1.0)
    ...     return bool(server.x.isfinite().all())
    >>> try:
    ...     zoo.grade("A", finite)
    ... except Wrong as wrong:
    ...     print(wrong)
    Blind: finite says that the ill A is well, with buffer_size=2, server_lr=0.5.
    """
    one = exhibit(letter)
    for settings in (*one.settings, *one.asleep):
        said = _judged(invariant, one.healthy(**settings), f"the healthy {letter}", settings)
        expect(said, f"False alarm: {_name(invariant)} says that the healthy {letter} is ill, {_with(settings)}.")
    for settings in one.settings:
        said = _judged(invariant, one.ill(**settings), f"the ill {letter}", settings)
        expect(not said, f"Blind: {_name(invariant)} says that the ill {letter} is well, {_with(settings)}.")
    return (
        f"{letter}: true for the healthy server with {len(one.settings) + len(one.asleep)} settings, "
        f"false for the ill one with {len(one.settings)}."
    )


def _judged(invariant: Invariant, server: Algorithm, which: str, settings: Mapping[str, Any]) -> bool:
    try:
        with untouched_generators():
            return bool(call(invariant, server))
    except (Wrong, NotImplementedError):
        raise
    except Exception as error:  # the reader's code
        found = f"{type(error).__name__}: {error}"
        raise Wrong(f"{_name(invariant)} stops on {which}, {_with(settings)}: {found}") from None


def _name(invariant: Invariant) -> str:
    return getattr(invariant, "__name__", "your invariant")


def _with(settings: Mapping[str, Any]) -> str:
    return "with " + ", ".join(f"{name}={value!r}" for name, value in settings.items())
