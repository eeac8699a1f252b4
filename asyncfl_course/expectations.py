"""Checks of readers' answers, with messages that show the input, the returned value and the expected one."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

LONGEST = 90
"""Largest number of characters of a value that are shown."""


class Found(NamedTuple):
    """A wrong result of a reader's function for some inputs, and a sentence that says so.

    ``near`` holds the tolerances with which ``given`` and ``wanted`` were compared.
    """

    says: str
    inputs: tuple
    given: Any
    wanted: Any
    near: dict[str, float]


class Wrong(Exception):
    """Raised for a wrong answer; the message says what is wrong, and for which input.

    Attributes:
        nudge: shown instead of the message at the first wrong answer that is not a function; it does not give the
            right answer away.
        found: the function's input and wrong result, for the table of known mistakes; None if no function was called.
    """

    def __init__(self, message: str, nudge: str = "", found: Found | None = None) -> None:
        super().__init__(message)
        self.nudge, self.found = nudge, found


class Malformed(Wrong):
    """Raised for an answer of the wrong form, such as one number instead of two; it does not count as a guess."""


def plain(value: Any) -> Any:
    """Return a tensor, array or series as a list (a number if it has no axes), and anything else unchanged."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
    if isinstance(value, torch.Tensor | np.ndarray | np.generic | pd.Series | pd.Index):
        return value.tolist()
    return value


def numbers_of(value: Any) -> np.ndarray:
    """Return numbers of any kind and shape as an array of floats; raise a TypeError for None."""
    if value is None:
        raise TypeError("None is no number")
    if isinstance(value, list | tuple):
        value = [numbers_of(one) for one in value]
    return np.asarray(plain(value), dtype=float)


def shown(value: Any) -> str:
    """Return a value on a short line: tensors, arrays, series as nested lists, numbers with at most six digits."""
    if isinstance(value, pd.DataFrame):
        return f"a table of shape {value.shape}"
    text = " ".join((getattr(value, "__name__", None) or repr(_short(plain(value)))).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _short(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_short, map(plain, value))) if type(value) in (list, tuple) else value
    return float(f"{value:.6g}") if isinstance(value, float) else value


def several(answer: Any, count: int, asked: str) -> list[Any]:
    """Return the members of a sequence or array if it has ``count``; otherwise raise :class:`Malformed`, ``asked``."""
    members = plain(answer)
    in_form(isinstance(members, tuple | list) and len(members) == count, asked)
    return [plain(one) for one in members]


def number(answer: Any, asked: str) -> float:
    """Return a finite number, or an array's only element, as a Python number; otherwise raise :class:`Malformed`."""
    value = _single(answer)
    in_form(isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value), asked)
    return int(value) if value == value // 1 else float(value)


def _single(value: Any) -> Any:
    """Return the only element of a sequence or array, and anything else unchanged."""
    value = plain(value)
    return _single(value[0]) if isinstance(value, list | tuple) and len(value) == 1 else value


def _text(value: Any) -> str:
    return " ".join(str(_single(value)).lower().split())


def numbers(answer: Any, count: int, asked: str) -> list[float]:
    """Return the numbers in an answer if it has the expected length (see :func:`several` and :func:`number`)."""
    return [number(one, asked) for one in several(answer, count, asked)]


def word(answer: Any, allowed: Iterable[str], asked: str) -> str:
    """Return the allowed word in the answer, ignoring case and extra spaces; otherwise raise :class:`Malformed`."""
    said = _text(answer)
    in_form(said in (known := {one.lower(): one for one in allowed}), asked)
    return known[said]


def words(answer: Any, count: int, allowed: Collection[str], asked: str) -> list[str]:
    """Return the words in an answer if it has the expected length (see :func:`several` and :func:`word`)."""
    return [word(one, allowed, asked) for one in several(answer, count, asked)]


def in_order(answer: Any, names: Collection[str], asked: str) -> list[str]:
    """Return the names in the answer's order if each is there once (see :func:`words`)."""
    given = words(answer, len(names), names, asked)
    expect(sorted(given) == sorted(names), asked)
    return given


def letters(answer: Any, allowed: str, asked: str) -> set[str]:
    """Return the set of letters in a text, a sequence or a set; otherwise raise :class:`Malformed`."""
    given = plain(answer)
    in_form(isinstance(given, set | frozenset | list | tuple | str), asked)
    found = {str(one).strip().upper() for one in given} - {"", ","}
    in_form(found <= set(allowed), asked)
    return found


def call(answer: Callable, *inputs: Any) -> Any:
    """Call a reader's function on these inputs and return its result.

    Raises:
        Wrong: it is not a function, or it returns nothing.
        NotImplementedError: it is still the stub.
    """
    if not callable(answer):
        raise Wrong(f"Give a function; your answer is {shown(answer)}.")
    given = answer(*inputs)
    if given is None:
        raise Wrong(f"{_called(answer, inputs)} returns nothing. Is there a `return`?")
    return given


def in_form(true: Any, asked: str) -> None:
    """Raise :class:`Malformed` unless an answer has the form that the exercise asks for."""
    if not true:
        raise Malformed(asked)


def expect(true: Any, message: str) -> None:
    """Raise :class:`Wrong` with a message unless a condition is true."""
    if not true:
        raise Wrong(message)


def expect_close(
    answer: Any,
    inputs: Sequence[Any] | None,
    wanted: Any,
    *,
    because: str = "",
    called: str = "",
    of: Sequence[Any] | None = None,
    **near: float,
) -> None:
    """Raise :class:`Wrong` unless an answer is close to the expected value.

    Args:
        answer: a function that is called with ``inputs``, or a value.
        inputs: arguments of the function; None where ``answer`` is a value.
        wanted: a number, numbers of any shape, or a word.
        because: a hint for the reader. At the first wrong answer that is not a function, the hint is shown without the
            right value, so it must not give that value away.
        called: the value's name in messages, if the value is a part of a function's result.
        of: the arguments of that function, for the table of known mistakes.
        near: ``atol`` and ``rtol``, absolute and relative tolerance; 1e-4 each by default.
    """
    given, what = _given(answer, inputs)
    what = f"{called} is {shown(given)}" if called else what
    hint, near = _hint(because), {"atol": 1e-4, "rtol": 1e-4} | near
    try:
        if close(wanted, given, **near):
            return
        off = _off(wanted, given)
    except (TypeError, ValueError):
        raise Wrong(f"{what}, which is no number.{hint}") from None
    found = Found(f"{what}, expected {shown(wanted)}.", tuple(inputs or of or ()), given, wanted, near)
    if off.startswith("shape"):
        raise Wrong(f"{what}: {off}.{hint}", found=found)
    raise Wrong(f"{found.says}{hint}", f"{what}, which is {off}.{hint}", found)


def close(one: Any, other: Any, *, atol: float, rtol: float) -> bool:
    """Return whether two results are the same word, or numbers of the same shape that are close.

    Raises:
        TypeError, ValueError: one of them is neither.
    """
    if isinstance(one, str):
        return _text(one) == _text(other)
    ours, theirs = _both(one, other)
    return ours.shape == theirs.shape and np.allclose(theirs, ours, atol=atol, rtol=rtol, equal_nan=True)


def _both(one: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return two results as arrays, of the same shape if each holds one number."""
    ours, theirs = numbers_of(one), numbers_of(other)
    return (ours.reshape(()), theirs.reshape(())) if ours.size == theirs.size == 1 else (ours, theirs)


def _off(wanted: Any, given: Any) -> str:
    """Return how a wrong result differs from the right one."""
    if isinstance(wanted, str):
        return "not right"
    ours, theirs = _both(wanted, given)
    if ours.shape != theirs.shape:
        return f"shape {theirs.shape}, expected {ours.shape}"
    if ours.shape or not np.isfinite(theirs):
        return "not right"
    return "too large" if theirs > ours else "too small"


def _given(answer: Any, inputs: Sequence[Any] | None) -> tuple[Any, str]:
    """Return the reader's value, or the result of the reader's function for these inputs, with a description of it."""
    if inputs is None:
        return answer, f"Your answer is {shown(answer)}"
    given = call(answer, *inputs)
    return given, f"{_called(answer, inputs)} gives {shown(given)}"


def _hint(because: str) -> str:
    """Return a hint as a sentence, capitalised unless it starts with a symbol, with a final stop or question mark."""
    if not because:
        return ""
    word = because.split()[0].rstrip(",:")
    begins = because[0].upper() if word.isascii() and word.isalpha() and (len(word) > 1 or word == "a") else because[0]
    text = f"{begins}{because[1:]}".rstrip(".")
    return f" {text}" if text.endswith("?") else f" {text}."


def _called(answer: Callable, inputs: Sequence[Any]) -> str:
    name = getattr(answer, "__name__", "your function")
    return f"{name}({', '.join(map(shown, inputs))})"
