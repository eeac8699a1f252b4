"""One exhibit: a method of the package, and a copy of it with one bug."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from asyncfl_course.zoo.bench import started
from asyncfl_course.zoo.mutants import Mutation
from asyncfl_lite.algorithms import ALGORITHMS, Algorithm


@dataclass(frozen=True)
class Exhibit:
    """A healthy server and a copy with one bug.

    Attributes:
        letter: its name.
        method: the registered name of the method.
        mutation: the bug.
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
    """

    letter: str
    method: str
    mutation: Mutation
    description: str
    suspects: dict[str, str]
    place: str
    look: str
    minutes: int
    settings: tuple[dict[str, Any], ...]
    asleep: tuple[dict[str, Any], ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    resumed: bool = False
    shares: bool = False
    known: str = ""

    @property
    def cls(self) -> type[Algorithm]:
        """The healthy method's class."""
        return ALGORITHMS.get(self.method)

    @cached_property
    def ill_cls(self) -> type[Algorithm]:
        """The class of the method with the bug."""
        return self.mutation.applied(self.cls)

    def healthy(self, **settings: Any) -> Algorithm:
        """Return the server without the bug, started with the test model.

        Args:
            settings: ``buffer_size``, ``server_lr`` and the method's options, in place of the exhibit's usual ones.
        """
        return started(self.cls(**(settings or self.settings[0])))

    def ill(self, **settings: Any) -> Algorithm:
        """Return the server with the bug, started with the test model."""
        return started(self.ill_cls(**(settings or self.settings[0])))

    def ask(self, drive: Callable[[Algorithm], Mapping[str, Any]], **settings: Any) -> pd.DataFrame:
        """Run an experiment on the healthy server and on the one with the bug; return one row of results for each.

        Args:
            drive: function that gets a server that was just started, and returns its observations by name.
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
