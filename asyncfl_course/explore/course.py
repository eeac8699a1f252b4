"""The course: its lessons in order, their duration, and three paths through it."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from IPython.display import Markdown

from asyncfl_course.minutes import hours
from asyncfl_lite.base.settings_files import settings_in


class Lesson(NamedTuple):
    """A lesson: its notebook's name, a title, what it is about, and minutes to read it and for its exercises."""

    name: str
    title: str
    says: str
    reading: int
    exercises: int

    @property
    def number(self) -> str:
        """The lesson's number, as two digits."""
        return self.name[:2]


class Part(NamedTuple):
    """A part of the course: lessons that belong together, and whether each one needs the one before it."""

    title: str
    lessons: tuple[Lesson, ...]
    in_a_row: bool


class Path(NamedTuple):
    """A path through the course, which is a selection of lessons in order.

    Attributes:
        letter: the letter that marks its lessons on the map.
        title: its name, such as ``a week``.
        says: what it offers, in words that follow its name, without a full stop.
        numbers: the numbers of its lessons, in order.
        with_exercises: whether its duration includes exercises.
        parts: number of a lesson of which a part is enough -> that part, and the minutes to read it.
    """

    letter: str
    title: str
    says: str
    numbers: Sequence[str]
    with_exercises: bool
    parts: Mapping[str, Sequence] = MappingProxyType({})

    @property
    def lessons(self) -> list[Lesson]:
        """The path's lessons, in order."""
        by_number = {lesson.number: lesson for lesson in lessons()}
        return [by_number[number] for number in self.numbers]

    @property
    def minutes(self) -> int:
        """Duration of the path, in minutes."""
        reading = sum(self.parts.get(one.number, ("", one.reading))[1] for one in self.lessons)
        return reading + self.with_exercises * sum(one.exercises for one in self.lessons)


_SAID = settings_in(pathlib.Path(__file__).with_name("course.yaml"))
COURSE = tuple(
    Part(one["title"], tuple(Lesson(*lesson) for lesson in one["lessons"]), one["in_a_row"]) for one in _SAID["parts"]
)
"""The parts of the course; minutes are those stated in each lesson."""
PATHS = tuple(Path(**one) for one in _SAID["paths"])


def lessons() -> list[Lesson]:
    """Return all lessons in order."""
    return [lesson for part in COURSE for lesson in part.lessons]


def letters(lesson: Lesson) -> str:
    """Return the letters of the paths to which a lesson belongs."""
    return " ".join(path.letter for path in PATHS if lesson.number in path.numbers)


def course_contents() -> Markdown:
    """Return the table of contents as Markdown, with each lesson's link, minutes and paths."""
    rows = ["| | lesson | about | to read | exercises | path |", "|---|---|---|--:|--:|---|"]
    for part in COURSE:
        for index, one in enumerate(part.lessons):
            head = "" if index else f"**{part.title}**"
            link = f"[{one.number} · {one.title}]({one.name}.ipynb)"
            rows.append(f"| {head} | {link} | {one.says} | {one.reading} | {one.exercises} | {letters(one)} |")
    return Markdown("\n".join(rows))


def course_paths() -> Markdown:
    """Return the paths through the course as Markdown, with their lessons and durations."""
    rows = []
    for path in PATHS:
        links = ", ".join(f"[{one.number}]({one.name}.ipynb){_part(path, one)}" for one in path.lessons)
        done = "with the exercises" if path.with_exercises else "of reading"
        rows.append(f"- **{path.letter}, {path.title}** ({hours(path.minutes)} {done}): {links}; {path.says}.")
    return Markdown("\n".join(rows))


def _part(path: Path, lesson: Lesson) -> str:
    return f" ({path.parts[lesson.number][0]})" if lesson.number in path.parts else ""
