"""Grading of invariants by mutation testing.

An invariant must hold for healthy servers in any settings, and fail for a server with the bug.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asyncfl_course.expectations import Wrong, call, expect
from asyncfl_course.zoo.exhibits import exhibit
from asyncfl_lite.algorithms import Algorithm
from asyncfl_lite.base.streams import untouched_generators

Invariant = Callable[[Algorithm], bool]
"""A function that gets a server just started on the bench, experiments with it, and returns whether it is healthy."""


def grade(letter: str, invariant: Invariant) -> str:
    """Grade an invariant, which must hold for an exhibit's healthy server and fail for the one with the bug.

    Args:
        letter: A to L.
        invariant: see :data:`Invariant`.

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
