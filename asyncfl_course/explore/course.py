"""The course: its lessons in order, their duration, and three paths through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from IPython.display import Markdown


class Lesson(NamedTuple):
    """One lesson of the course.

    Attributes:
        name: its notebook's name, without ``.ipynb``.
        title: a few words.
        says: what it is about, for the table of contents.
        reading: minutes to read and run it.
        exercises: minutes for its exercises.
    """

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
    """A part of the course, with lessons that belong together.

    Attributes:
        title: one word or two.
        lessons: in order.
        in_a_row: whether each lesson needs the one before it.
    """

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
    numbers: tuple[str, ...]
    with_exercises: bool
    parts: Mapping[str, tuple[str, int]] = MappingProxyType({})

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


COURSE = (
    Part(
        "The world",
        (
            Lesson("00_start_here", "Start here", "what asynchrony buys, and what it costs", 32, 27),
            Lesson("01_virtual_time", "Virtual time", "staleness, predicted before anything is trained", 25, 32),
            Lesson("02_heterogeneity", "Heterogeneity", "what unequal data do to training", 32, 28),
        ),
        True,
    ),
    Part(
        "Servers",
        (
            Lesson("03_baselines", "Baselines", "ten servers and Oort, each in a few lines", 30, 24),
            Lesson("04_servers_step", "Server's step", "one number that explains most of the field", 28, 32),
            Lesson("05_kuiper", "KUIPER", "devices that wait for company, and errors that count", 28, 32),
        ),
        True,
    ),
    Part(
        "Distillation",
        (
            Lesson("06_distillation", "Distillation", "soft targets, temperature, many teachers", 32, 28),
            Lesson("07_fedecho", "FedEcho", "stragglers' predictions remembered", 30, 28),
            Lesson("08_fedecho_evidence", "Its evidence", "FedEcho's tables, ablations, controls", 40, 23),
            Lesson("09_fedadt", "FedADT", "a lesson for late models", 22, 30),
            Lesson("10_fedrevive", "FedRevive", "stale updates revived on generated images", 27, 30),
        ),
        True,
    ),
    Part(
        "Other data",
        (
            Lesson("11_text", "Text", "from words to asynchronous training", 28, 30),
            Lesson("12_generation", "Generation", "language models that answer sums", 30, 24),
            Lesson("13_video", "Video", "clips, and what changes with them", 28, 25),
        ),
        False,
    ),
    Part(
        "Judging",
        (
            Lesson("14_theory", "Theory", "a proof line by line, and counter-examples", 27, 26),
            Lesson("15_statistics", "Statistics", "seeds, intervals, margins, verdicts", 26, 33),
            Lesson("16_evidence", "Evidence", "do KUIPER and FedRevive hold?", 39, 28),
            Lesson("17_bug_zoo", "Bug zoo", "twelve servers with one bug each", 25, 93),
            Lesson("18_referee", "Referee", "a plan sealed before the result", 28, 45),
        ),
        True,
    ),
    Part(
        "Your own",
        (Lesson("19_capstone", "Capstone", "a method, a plan and a report of your own", 16, 145),),
        False,
    ),
)
"""The parts of the course; minutes are those stated in each lesson."""

PATHS = (
    Path(
        "H",
        "an hour",
        "what the field is about, and which knob explains most of it",
        ("00", "04"),
        False,
        {"04": ("Sections 1 and 6", 20)},
    ),
    Path(
        "W",
        "a week",
        "an evening for each lesson, from the clock to FedEcho and what its lead is made of",
        ("00", "01", "02", "03", "04", "06", "07", "08"),
        True,
    ),
    Path(
        "R",
        "a referee's",
        "how to tell a gain of the method from a gain of its settings",
        ("00", "03", "04", "07", "08", "15", "16", "18"),
        True,
    ),
)


def lessons() -> list[Lesson]:
    """Return all lessons in order."""
    return [lesson for part in COURSE for lesson in part.lessons]


def hours(minutes: int) -> str:
    """Return a duration as text, in minutes below two hours, and otherwise in hours rounded to halves."""
    if minutes < 120:
        return f"{minutes} minutes"
    whole, half = divmod(round(minutes / 30), 2)
    return f"{whole}{'½' if half else ''} hours"


def letters(lesson: Lesson) -> str:
    """Return the letters of the paths to which a lesson belongs."""
    return " ".join(path.letter for path in PATHS if lesson.number in path.numbers)


def course_contents(parts: Sequence[Part] = COURSE) -> Markdown:
    """Return the table of contents as Markdown, with each lesson's link, minutes and paths."""
    rows = ["| | lesson | about | to read | exercises | path |", "|---|---|---|--:|--:|---|"]
    for part in parts:
        for index, one in enumerate(part.lessons):
            head = "" if index else f"**{part.title}**"
            link = f"[{one.number} · {one.title}]({one.name}.ipynb)"
            rows.append(f"| {head} | {link} | {one.says} | {one.reading} | {one.exercises} | {letters(one)} |")
    return Markdown("\n".join(rows))


def course_paths(paths: Sequence[Path] = PATHS) -> Markdown:
    """Return the paths through the course as Markdown, with their lessons and durations."""
    rows = []
    for path in paths:
        links = ", ".join(f"[{one.number}]({one.name}.ipynb){_part(path, one)}" for one in path.lessons)
        done = "with the exercises" if path.with_exercises else "of reading"
        rows.append(f"- **{path.letter}, {path.title}** ({hours(path.minutes)} {done}): {links}; {path.says}.")
    return Markdown("\n".join(rows))


def _part(path: Path, lesson: Lesson) -> str:
    return f" ({path.parts[lesson.number][0]})" if lesson.number in path.parts else ""
