"""How dense each lesson is, against a limit: ``python tests/course/test_density.py`` prints the values of today.

A lesson of an idea says what is so, shows it and links; numbers with intervals are for the lessons of evidence.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest

from asyncfl_course.minutes import minutes

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NOT_PROSE = re.compile(r"<details>.*?</details>|^```.*?^```|\$\$.*?\$\$|`[^`\n]*`|\]\([^)]*\)|^#[^\n]*$", re.S | re.M)
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
SIGNED = r"[-+−]?\d+(?:\.\d+)?"
INTERVAL = re.compile(rf"\[\s*{SIGNED}, ?{SIGNED}\s*\]|\b[Ii]nterval (?:is |of |from )?{SIGNED}")
FORMULA = re.compile(r"^```.*?^```|\$[^$\n]*\$|`[^`\n]*`", re.S | re.M)
PICTURE = re.compile(r"!\[[^\]]+\]\(|<img ")
KIND = re.compile(r"^\*\*(Idea|Evidence) lesson\.\*\*", re.M)


class Density(NamedTuple):
    """What a lesson asks of its reader.

    Attributes:
        numbers: numbers per 1,000 words of prose; folds, code, displayed formulas and headings are not counted.
        intervals: intervals in prose and outputs.
        cells: all cells.
        minutes: for reading and exercises.
        drawings: pictures in the text, drawings, animations and explorable pages of outputs; charts are not counted.
    """

    numbers: int
    intervals: int
    cells: int
    minutes: int
    drawings: int


# fmt: off
LIMITS = {
    "00": Density(35, 0, 80, 60, 3),
    "01": Density(36, 0, 58, 60, 3),
    "02": Density(32, 0, 70, 60, 3),
    "03": Density(38, 0, 70, 60, 11),
    "04": Density(40, 0, 58, 60, 3),
    "05": Density(45, 0, 55, 60, 4),
    "06": Density(42, 0, 63, 60, 3),
    "07": Density(37, 0, 60, 60, 3),
    "08": Density(72, 51, 78, 64, 1),
    "09": Density(38, 0, 55, 55, 4),
    "10": Density(25, 0, 60, 60, 4),
    "11": Density(26, 0, 68, 60, 3),
    "12": Density(38, 0, 75, 55, 3),
    "13": Density(33, 0, 70, 55, 3),
    "14": Density(44, 0, 64, 60, 3),
    "15": Density(33, 0, 58, 60, 3),
    "16": Density(65, 72, 80, 70, 1),
    "17": Density(25, 0, 68, 118, 3),
    "18": Density(40, 25, 76, 73, 1),
    "19": Density(29, 0, 38, 161, 3),
}
# fmt: on
"""Lesson -> at most so many numbers, intervals, cells and minutes, and at least so many drawings."""


def words(book: nbformat.NotebookNode) -> list[str]:
    """Return the words of a lesson's prose."""
    return NOT_PROSE.sub(" ", _text(book)).split()


def density(book: nbformat.NotebookNode) -> Density:
    """Count one lesson."""
    prose, (reading, exercises) = words(book), minutes(book)
    outs = [out for cell in book.cells for out in cell.get("outputs", [])]
    shown = "\n".join(out.get("text", "") or out.get("data", {}).get("text/plain", "") for out in outs)
    numbers, intervals = (
        len(NUMBER.findall(" ".join(prose))),
        INTERVAL.findall(f"{FORMULA.sub('', _text(book))}\n{shown}"),
    )
    drawn = [
        out for out in outs if "image/svg+xml" in out.get("data", {}) or re.search("animation|<iframe", _html(out))
    ]
    return Density(
        round(1000 * numbers / len(prose)), len(intervals), len(book.cells), reading + exercises,
        len(PICTURE.findall(_text(book))) + len(drawn),
    )  # fmt: skip


def _text(book: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")


def _html(out: nbformat.NotebookNode) -> str:
    return out.get("data", {}).get("text/html", "")


@functools.cache
def lesson(number: str) -> nbformat.NotebookNode:
    """Read a lesson."""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    return nbformat.read(path, as_version=4)


@pytest.mark.parametrize("number", LIMITS)
def test_a_lesson_is_no_denser_than_its_limit(number):
    found, limit = density(lesson(number)), LIMITS[number]
    assert found[:4] <= limit[:4] and found.drawings >= limit.drawings, f"{number}: {found}, limit {limit}"


@pytest.mark.parametrize("number", LIMITS)
def test_a_lesson_says_its_kind_first_and_distrusts_in_four_bullets(number):
    book, found = lesson(number), density(lesson(number))
    kind = KIND.search(book.cells[0].source)
    assert kind, "**Idea lesson.** or **Evidence lesson.**"
    if kind[1] == "Idea":
        assert found.numbers <= 45 and not found.intervals and found.cells <= 80 and found.drawings >= 3, found
    closing = _text(book).partition("## What to distrust")[2].partition("\n## ")[0]
    assert len(re.findall(r"^- ", closing, re.M)) <= 4


if __name__ == "__main__":
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        book = nbformat.read(path, as_version=4)
        print(f'    "{path.stem[:2]}": Density({", ".join(map(str, density(book)))}),  # {len(words(book)):,} words')
