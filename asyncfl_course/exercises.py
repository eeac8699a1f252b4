"""Exercises that check an answer at once; for a wrong function, the message shows an input on which it fails.

A checker takes the answer (a function, a number, a configuration), and raises
:class:`~asyncfl_course.expectations.Wrong` if the answer is wrong.
Exercises are in :mod:`asyncfl_course.checkers`, one module per part of the course. Most ask for a function::

    asks_for(
        "03.3", "Where FedBuff rests", lambda k, fast, slow: (k * fast - slow) / (k * fast + slow),
        cases=[((4, 0.5, 1), "weights multiply frequencies")],
        right="The model rests where the pulls of all reports cancel.",
        mistakes={"The weights are missing.": lambda k, fast, slow: (k - 1) / (k + 1)},
    )
"""

from __future__ import annotations

import contextlib
import copy
import html
import importlib
import pkgutil
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import asyncfl_lite
from asyncfl_course import progress_file
from asyncfl_course.expectations import Found, Malformed, Wrong, close, expect_close, shown
from asyncfl_lite.base.errors import AsyncFLError

Checker = Callable[[Any], str | None]
Mistakes = Mapping[str, Callable[..., Any]]
"""Hint -> a wrong function that readers often write."""


@dataclass(frozen=True)
class Exercise:
    """One exercise of a lesson.

    Attributes:
        id: the lesson's number, a dot, and the exercise's number in it, such as ``07.1``.
        title: a few words, for the reader.
        checker: raises ``Wrong`` for an answer that is wrong, and ``NotImplementedError`` for one that is not
            finished; the text that it returns is shown to a reader whose answer is right.
        mistakes: known mistakes. A reader whose wrong result equals that of a function in the table is shown that
            function's hint, and otherwise the checker's own.
    """

    id: str
    title: str
    checker: Checker
    mistakes: Mistakes = field(default_factory=dict)


@dataclass(frozen=True)
class Checked:
    """The result of checking an answer, which is truthy if the answer is right.

    Attributes:
        exercise: the exercise.
        state: "right", "wrong", or "open" if the stub has not been replaced.
        message: what to tell the reader.
        guess: False for an answer of the wrong form.
    """

    exercise: Exercise
    state: str
    message: str
    guess: bool = True

    def __bool__(self) -> bool:
        return self.state == "right"

    def __repr__(self) -> str:
        return f"Exercise {self.exercise.id}, {self.exercise.title}: {self.state}. {self.message}".rstrip()

    def _repr_html_(self) -> str:
        mark, colour = {"right": ("✓", "#2e7d32"), "wrong": ("✗", "#b23b00"), "open": ("…", "#667")}[self.state]
        head = f"{mark} Exercise {self.exercise.id}, {html.escape(self.exercise.title)}: {self.state}."
        message = CODE.sub(r"<code>\1</code>", html.escape(self.message))
        return (
            f'<div style="border-left: 4px solid {colour}; padding: 2px 10px; white-space: pre-wrap">'
            f"<b>{head}</b> {message}</div>"
        )


class Attempt(NamedTuple):
    """One checked answer to the exercise ``id``, with state and guess as in :class:`Checked`.

    ``at`` is when it was checked, in seconds of a monotonic clock.
    """

    id: str
    answer: Any
    state: str
    at: float
    guess: bool = True


AGAIN = "and run this cell again."
MORE = "Think again; after a second wrong answer you will be told more."
INSTALLED = (sys.prefix, sys.base_prefix, str(Path(asyncfl_lite.__file__).parent), str(Path(__file__).parent))
"""Folders of code that is not the reader's."""
CODE = re.compile(r"`([^`]*)`")
_ATTEMPTS: list[Attempt] = []
_EXERCISES: dict[str, Exercise] = {}


def exercise(id: str, title: str, mistakes: Mistakes | None = None) -> Callable[[Checker], Checker]:
    """Register a function as the checker of an :class:`Exercise` (decorator).

    Args:
        id, title: of the exercise.
        mistakes: functions of the inputs that ``expect_close`` is told.
    """

    def register(checker: Checker) -> Checker:
        if id in _EXERCISES:
            raise ValueError(f"there are two exercises {id}")
        _EXERCISES[id] = Exercise(id, title, checker, mistakes or {})
        return checker

    return register


def asks_for(
    id: str,
    title: str,
    wanted: Callable[..., Any],
    *,
    cases: Iterable[tuple[tuple, str]],
    right: str,
    mistakes: Mistakes | None = None,
    **near: float,
) -> None:
    """Register an exercise that asks for a function.

    Args:
        id, title, mistakes: of the :class:`Exercise`.
        wanted: a function that is right.
        cases: inputs on which answers are compared with it, each with a hint for a reader whose result differs.
        right: what a reader is told whose function is right.
        near: tolerances, as in :func:`~asyncfl_course.expectations.expect_close`.
    """

    @exercise(id, title, mistakes)
    def checker(answer: Any) -> str:
        for inputs, because in cases:
            expect_close(answer, copy.deepcopy(inputs), wanted(*inputs), because=because, **near)
        return right


def exercises() -> dict[str, Exercise]:
    """Return all exercises by id."""
    from asyncfl_course import checkers

    for module in pkgutil.iter_modules(checkers.__path__):
        importlib.import_module(f"{checkers.__name__}.{module.name}")
    return dict(sorted(_EXERCISES.items()))


def check(id: str, answer: Any) -> Checked:
    """Check a reader's answer to an exercise.

    Args:
        id: which exercise, such as ``07.1``.
        answer: what the exercise asks for: a function, a number, a configuration.

    Returns:
        Right; wrong, with an input that shows it, or with the error that the answer raised; or open, if the answer
        still raises ``NotImplementedError`` or is ``...``. Unless the exercise asks for a function, the right answer is
        not given away before a second wrong one. In a learner's folder the result is kept.

    Raises:
        AsyncFLError: there is no such exercise.
    """
    known = exercises()
    if id not in known:
        lesson = sorted(one for one in known if one.split(".")[0] == str(id).split(".")[0])
        raise AsyncFLError(f"there is no exercise {id!r}; " + (f"this lesson has {', '.join(lesson)}" if lesson else
                           f"exercises are {', '.join(known)}"))  # fmt: skip
    checked = _checked(known[id], answer, first=not _missed_before(id, answer))
    _ATTEMPTS.append(Attempt(id, answer, checked.state, time.monotonic(), checked.guess))
    progress_file.note(id, checked.state)
    return checked


def attempts() -> list[Attempt]:
    """Return every answer that this process has checked, oldest first."""
    return list(_ATTEMPTS)


def _missed_before(id: str, answer: Any) -> bool:
    guesses = (one for one in _ATTEMPTS if one.id == id and one.state == "wrong" and one.guess)
    return any(repr(one.answer) != repr(answer) for one in guesses)


def _checked(asked: Exercise, answer: Any, first: bool = False) -> Checked:
    if answer is ...:
        return Checked(asked, "open", f"Replace the dots with your answer, {AGAIN}")
    try:
        return Checked(asked, "right", asked.checker(answer) or "")
    except NotImplementedError as left:
        stub = f"Replace `raise NotImplementedError` with your answer, {AGAIN}"
        return Checked(asked, "open", str(left) or stub)
    except Wrong as wrong:
        told = _told(asked, wrong, first and not callable(answer))
        return Checked(asked, "wrong", told, guess=not isinstance(wrong, Malformed))
    except Exception as error:  # whatever the reader's own code raises, or its answer does in the checker
        ran = _ran(error)
        what = "Your code stops" if ran else f"The form of {_form(answer)} is not what the exercise asks for"
        return Checked(asked, "wrong", f"{what}: {type(error).__name__}: {' '.join(str(error).split())}", guess=ran)


def _ran(error: Exception) -> bool:
    """Return whether an error comes from code of the reader's, and not from a checker that handles an answer."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return codes[-1].co_name == "call" or not all(code.co_filename.startswith(INSTALLED) for code in codes)


def _form(answer: Any) -> str:
    return "what your function returns" if callable(answer) else f"your answer {shown(answer)}"


def _told(asked: Exercise, wrong: Wrong, first: bool) -> str:
    """Return the message for a wrong answer, which is a nudge at first and an explanation later."""
    if first and wrong.nudge:
        return f"{wrong.nudge} {MORE}"
    mistake = _named(asked.mistakes, wrong.found) if wrong.found else ""
    return f"{wrong.found.says} {mistake}" if mistake and wrong.found else str(wrong)


def _named(mistakes: Mistakes, found: Found) -> str:
    """Return the hint for the known mistake that gives a wrong result, or an empty string."""
    for message, wrong in mistakes.items():
        with contextlib.suppress(Exception):  # this mistake cannot be made with this input
            made = wrong(*found.inputs)
            if close(made, found.given, **found.near) and not close(made, found.wanted, **found.near):
                return message
    return ""
