"""Nested values, such as a method's state: copies, and the first difference between two of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor

from asyncfl_lite.simulator.jobs import Update


def _parts(value: Any, where: str) -> list[tuple[str, Any]] | None:
    """Return the parts of a mapping, a sequence or an update, each with its path; None for anything else."""
    if isinstance(value, Update):
        return [(f"{where}.{part.name}", getattr(value, part.name)) for part in dataclasses.fields(value)]
    if isinstance(value, dict):
        return [(f"{where}[{key!r}]", value[key]) for key in sorted(value, key=repr)]
    if isinstance(value, list | tuple):
        return [(f"{where}[{place}]", part) for place, part in enumerate(value)]
    return None


def copied(value: Any) -> Any:
    """Return a copy that shares no tensor, mapping or list with ``value``."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [copied(part) for part in value]
    return value


def tensors(value: Any, where: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in ``value``, each with its path."""
    if isinstance(value, Tensor):
        yield where, value
    for place, part in _parts(value, where) or []:
        yield from tensors(part, place)


def difference(one: Any, other: Any, where: str) -> str | None:
    """Describe the first difference between two values; None if they are equal to the last bit.

    NaN equals NaN, and a list equals a tuple with equal parts.
    """
    parts, others = _parts(one, where), _parts(other, where)
    if parts is None or others is None:
        return None if _equal(one, other) else f"{where} is {_shown(one)} and {_shown(other)}"
    names, other_names = [name for name, _ in parts], [name for name, _ in others]
    if names != other_names:
        extra = sorted(set(names) ^ set(other_names))[0]
        return f"{extra} is there only once"
    pairs = zip(parts, others, strict=True)
    return next((found for (place, a), (_, b) in pairs if (found := difference(a, b, place))), None)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        return bool(((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, Tensor) or isinstance(other, Tensor) or type(one) is not type(other):
        return False
    return bool(np.all(one == other)) or bool(np.all((one != one) & (other != other)))


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}, sum {float(value.detach().double().sum()):.9g},"
    return f"{value!r:.60}"


class Kept:
    """Tensors with copies, to detect later whether a tensor was changed in place."""

    def __init__(self) -> None:
        self._pairs: list[tuple[str, Tensor, Tensor]] = []

    def add(self, value: Any, where: str) -> None:
        """Copy all tensors in ``value``, to compare them later."""
        self._pairs += [(place, tensor, copied(tensor)) for place, tensor in tensors(value, where)]

    def changed(self) -> str | None:
        """Describe which tensor has changed; None if none has."""
        return next((place for place, tensor, before in self._pairs if not _equal(tensor, before)), None)
