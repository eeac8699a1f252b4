"""Recall questions about the lesson two before the current one, because delayed repetition helps memory."""

from __future__ import annotations

import hashlib
import html
from dataclasses import dataclass
from pathlib import Path

from asyncfl_course import progress_file
from asyncfl_lite.base.errors import AsyncFLError
from asyncfl_lite.base.settings_files import settings_in

LETTERS = "abc"
BACK = 2
"""Number of lessons by which a question's lesson precedes the lesson that asks it."""


@dataclass(frozen=True)
class Item:
    """A question, three answers as they are shown, the letter of the right one, and what is explained afterwards."""

    asks: str
    options: tuple[str, str, str]
    right: str
    because: str


@dataclass(frozen=True)
class Recall:
    """Three recall questions and the reader's answers, which a notebook shows as a list.

    Attributes:
        lesson: the lesson that is asked about, such as ``06``.
        asked_in: the lesson that asks, such as ``08``.
        items: the questions.
        said: the letters that were given; empty if nothing has been answered.
    """

    lesson: str
    asked_in: str
    items: tuple[Item, ...]
    said: tuple[str, ...] = ()

    @property
    def right(self) -> int:
        """Number of correct answers."""
        return sum(said == item.right for said, item in zip(self.said, self.items, strict=False))

    def __repr__(self) -> str:
        return "\n\n".join([self._head(), *("\n".join(self._lines(index)) for index in range(len(self.items)))])

    def _repr_html_(self) -> str:
        return f'<div style="white-space: pre-wrap">{html.escape(repr(self))}</div>'

    def _head(self) -> str:
        if self.said:
            return f"{self.right} of {len(self.items)} right. The questions are from lesson {self.lesson}."
        letters = ", ".join(f'"{letter}"' for letter in LETTERS)
        return f'From lesson {self.lesson}. Answer with three letters: lessons.recall("{self.asked_in}", {letters})'

    def _lines(self, index: int) -> list[str]:
        item = self.items[index]
        lines = [f"{index + 1}. {item.asks}"]
        lines += [f"{letter}) {option}" for letter, option in zip(LETTERS, item.options, strict=True)]
        if self.said:
            verdict = "right" if self.said[index] == item.right else f"you say {self.said[index]}, it is {item.right}"
            lines.append(f"→ {verdict}. {item.because}")
        return lines


def recall(lesson: str, *letters: str) -> Recall:
    """Ask three questions about the lesson two before ``lesson``, or check the answers to them.

    Args:
        lesson: the number of the lesson that you begin, such as ``08``, which asks about lesson 06.
        letters: ``a``, ``b`` or ``c`` for each question; without any letters, the questions are asked.

    Example:
        >>> from asyncfl_course import lessons
        >>> asked = lessons.recall("08")
        >>> asked.lesson, len(asked.items)
        ('06', 3)
        >>> lessons.recall("08", *(item.right for item in asked.items)).right
        3
    """
    known = _questions()
    before = f"{int(lesson) - BACK:02}" if str(lesson).isdigit() else ""
    if before not in known:
        first, last = (f"{int(one) + BACK:02}" for one in (min(known), max(known)))
        raise AsyncFLError(f"recall: {lesson!r} has no questions; lessons {first} to {last} have some")
    said = tuple(str(one).strip().lower() for one in letters)
    asked = Recall(before, f"{int(lesson):02}", known[before], said)
    if said:
        if len(said) != len(asked.items) or not set(said) <= set(LETTERS):
            raise AsyncFLError(f"recall: {len(asked.items)} letters of a, b, c are asked for, got {', '.join(letters)}")
        progress_file.note_recall(before, asked.right)
    return asked


def _questions() -> dict[str, tuple[Item, ...]]:
    known = settings_in(Path(__file__).with_name("recall.yaml"))
    return {lesson: tuple(_item(**one) for one in items) for lesson, items in known.items()}


def _item(asks: str, right: str, wrong: list[str], because: str) -> Item:
    """Return a question whose answers are in a fixed order that does not give the right one away."""
    first, second, third = sorted([right, *wrong], key=lambda text: hashlib.sha256(f"{asks}{text}".encode()).digest())
    return Item(asks, (first, second, third), LETTERS[[first, second, third].index(right)], because)
