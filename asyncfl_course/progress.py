"""A learner's progress by lesson: which exercises are solved."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from asyncfl_course import progress_file
from asyncfl_course.exercises import Attempt, attempts, exercises


@dataclass(frozen=True)
class Progress:
    """A learner's solved exercises, which a notebook shows as a table.

    Attributes:
        lessons: lesson -> its exercises: id -> "right", "wrong" or "open".
        recalled: lesson -> number of its three questions that were answered correctly.
        where: a sentence that says where the progress is kept.
    """

    lessons: dict[str, dict[str, str]]
    recalled: dict[str, int]
    where: str

    @property
    def solved(self) -> int:
        """Number of solved exercises."""
        return sum(state == "right" for states in self.lessons.values() for state in states.values())

    @property
    def next(self) -> str:
        """The first unsolved exercise, or an empty string if all are solved."""
        return next((id for states in self.lessons.values() for id, state in states.items() if state != "right"), "")

    def __repr__(self) -> str:
        total = sum(map(len, self.lessons.values()))
        end = f"Next is {self.next}." if self.next else "That is all of them."
        last = f"{self.solved} of {total} exercises are solved. {end} {self.where}"
        return "\n".join([*map(self._row, self.lessons), last])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def _row(self, lesson: str) -> str:
        marks, states = {"right": "✓", "wrong": "✗", "open": "·"}, self.lessons[lesson].values()
        right = sum(state == "right" for state in states)
        said = f"  recalled {self.recalled[lesson]} of 3" if lesson in self.recalled else ""
        return f"{lesson}  {''.join(marks[state] for state in states):<11} {right} of {len(states)}{said}"


def progress() -> Progress:
    """Return which exercises are solved (✓), tried (✗) or open (·), lesson by lesson.

    In a learner's folder, which ``make student`` writes, the progress is read from ``progress.json``, so it covers all
    sessions. Elsewhere it covers the answers that this notebook has checked since its kernel was started.

    Example:
        >>> from asyncfl_course import lessons
        >>> lessons.progress().lessons["00"]["00.1"] in ("open", "wrong", "right")
        True
    """
    content = progress_file.read()
    kept_here = progress_file.file() is not None
    states = {id: one.get("state", "open") for id, one in content["exercises"].items()} if kept_here else {}
    found: dict[str, dict[str, str]] = {}
    for id in sorted(exercises(), key=_order):
        found.setdefault(id.split(".")[0], {})[id] = states.get(id) or _seen(id, attempts())
    recalled = {lesson: int(one.get("right", 0)) for lesson, one in content["recall"].items()}
    where = "Kept in progress.json." if kept_here else "Of this session: only the folder of `make student` keeps it."
    return Progress(found, recalled, where)


def _seen(id: str, tried: list[Attempt]) -> str:
    """Return whether an exercise is "right", "wrong" or "open" in this process; it stays "right" once solved."""
    states = [one.state for one in tried if one.id == id and one.state != "open"]
    return "right" if "right" in states else (states[-1] if states else "open")


def _order(id: str) -> tuple[Any, ...]:
    return tuple(int(part) for part in id.split("."))
