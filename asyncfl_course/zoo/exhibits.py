"""The twelve exhibits of ``exhibits.yaml``, on four shelves: one buffer, stale updates, memory, around the server."""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml

from asyncfl_course.zoo.exhibit import Exhibit
from asyncfl_course.zoo.mutants import Mutation
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base.errors import AsyncFLError, unknown_name


def _made(letter: str, *, old: str, new: str, owner: str = "", **told: Any) -> Exhibit:
    """Return an exhibit as the file describes it."""
    bases = ALGORITHMS.get(told["method"]).__mro__
    mutated = next(base for base in bases if base.__name__ == owner) if owner else bases[0]
    lists = {name: tuple(told.pop(name, ())) for name in ("settings", "asleep")}
    return Exhibit(letter, mutation=Mutation(mutated, old, new), **told, **lists)


def _shelves() -> dict[str, tuple[Exhibit, ...]]:
    text = resources.files("asyncfl_course.zoo").joinpath("exhibits.yaml").read_text(encoding="utf-8")
    shelves = yaml.safe_load(text).items()
    return {shelf: tuple(_made(letter, **one) for letter, one in ones.items()) for shelf, ones in shelves}


SHELVES = _shelves()
EXHIBITS = {one.letter: one for shelf in SHELVES.values() for one in shelf}


def exhibit(letter: str) -> Exhibit:
    """Return the exhibit with this letter.

    Args:
        letter: A to L.

    Raises:
        AsyncFLError: there is no exhibit with this letter.

    Example:

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
