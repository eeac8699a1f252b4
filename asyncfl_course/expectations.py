"""Checks of readers' answers, with messages that show the input, the returned value and the expected one."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from asyncfl_course.exercises import Malformed, Wrong
from asyncfl_course.plain import Found, numbers_of, plain, shown


def several(answer: Any, count: int, asked: str) -> list[Any]:
    """Return the members of a sequence or array if it has the expected length; otherwise raise :class:`Wrong`.

    Args:
        answer: the reader's.
        count: the expected number of members.
        asked: the message if the answer is something else.
    """
    members = plain(answer)
    in_form(isinstance(members, tuple | list) and len(members) == count, asked)
    return [plain(one) for one in members]


def number(answer: Any, asked: str) -> float:
    """Return a finite number, or an array's only element, as a Python number; otherwise raise :class:`Wrong`."""
    value = plain(answer)
    while isinstance(value, list | tuple) and len(value) == 1:
        value = plain(value[0])
    in_form(isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value), asked)
    return int(value) if value == value // 1 else float(value)


def numbers(answer: Any, count: int, asked: str) -> list[float]:
    """Return the numbers in an answer if it has the expected length (see :func:`several` and :func:`number`)."""
    return [number(one, asked) for one in several(answer, count, asked)]


def word(answer: Any, allowed: Iterable[str], asked: str) -> str:
    """Return the allowed word that the answer gives, ignoring case and extra spaces; otherwise raise :class:`Wrong`."""
    said = " ".join(str(plain(answer)).lower().split())
    in_form(said in (known := {one.lower(): one for one in allowed}), asked)
    return known[said]


def words(answer: Any, count: int, allowed: Collection[str], asked: str) -> list[str]:
    """Return the words in an answer if it has the expected length (see :func:`several` and :func:`word`)."""
    return [word(one, allowed, asked) for one in several(answer, count, asked)]


def letters(answer: Any, allowed: str, asked: str) -> set[str]:
    """Return the set of letters in a text, a sequence or a set; otherwise raise :class:`Wrong`."""
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
    atol: float = 1e-4,
    rtol: float = 1e-4,
    called: str = "",
    of: Sequence[Any] | None = None,
) -> None:
    """Raise :class:`Wrong` unless an answer is close to the expected value.

    Args:
        answer: a function that is called with ``inputs``, or a value.
        inputs: arguments of the function; None where ``answer`` is a value.
        wanted: a number, or numbers of any shape.
        because: a hint for the reader. At the first wrong answer that is not a function, the hint is shown without the
            right value, so it must not give that value away.
        atol: absolute tolerance.
        rtol: relative tolerance.
        called: the value's name in messages, if the value is a part of a function's result.
        of: the arguments of that function, for the table of known mistakes.
    """
    given, what = _given(answer, inputs)
    what = f"{called} is {shown(given)}" if called else what
    hint = _hint(because)
    try:
        ours, theirs = numbers_of(wanted), numbers_of(given)
    except (TypeError, ValueError):
        raise Wrong(f"{what}, which is no number.{hint}") from None
    if ours.shape == () and theirs.size == 1:
        theirs = theirs.reshape(())
    found = Found(f"{what}, expected {shown(wanted)}.", tuple(inputs or of or ()), given, wanted)
    if ours.shape != theirs.shape:
        raise Wrong(f"{what}: shape {theirs.shape}, expected {ours.shape}.{hint}", found=found)
    if not np.allclose(theirs, ours, atol=atol, rtol=rtol, equal_nan=True):
        raise Wrong(f"{found.says}{hint}", f"{what}, which is {_off(ours, theirs)}.{hint}", found)


def _off(ours: np.ndarray, theirs: np.ndarray) -> str:
    if ours.shape == () and np.isfinite(theirs):
        return "too large" if theirs > ours else "too small"
    return "not right"


def expect_equal(answer: Any, inputs: Sequence[Any] | None, wanted: Any, *, because: str = "") -> None:
    """Raise :class:`Wrong` unless an answer equals the expected one; for names, sets and integers, not floats."""
    given, what = _given(answer, inputs)
    given = plain(given)
    if isinstance(given, list) and len(given) == 1 and not isinstance(wanted, list):
        given = given[0]
    if _same_text(given) != _same_text(wanted):
        found = Found(f"{what}, expected {shown(wanted)}.", tuple(inputs or ()), given, wanted)
        raise Wrong(f"{found.says}{_hint(because)}", f"{what}, which is not right.{_hint(because)}", found)


def _same_text(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


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
