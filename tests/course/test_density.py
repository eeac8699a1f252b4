"""How dense each lesson is, against a limit: ``python tests/course/test_density.py`` prints the values of today.

A lesson of an idea says what is so, shows it and links; numbers with intervals are for the lessons of evidence.
"""

from __future__ import annotations

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
FORMULA = re.compile(r"\$[^$\n]*\$|`[^`\n]*`|^```.*?^```", re.S | re.M)
PICTURE = re.compile(r"!\[[^\]]+\]\(|<img ")
KIND = re.compile(r"^\*\*(Idea|Evidence) lesson\.\*\*", re.M)


class Density(NamedTuple):
    """What a lesson asks of its reader.

    Attributes:
        numbers: numbers per 1,000 words of prose; folds, code, displayed formulas and headings are not counted.
        intervals: intervals in prose and outputs.
        cells: all cells.
        minutes: for reading and exercises.
        drawings: pictures in the text, drawings and animations of outputs; charts of data are not counted.
    """

    numbers: int
    intervals: int
    cells: int
    minutes: int
    drawings: int


# fmt: off
LIMITS = {
    "00": Density(68, 5, 89, 67, 2),
    "01": Density(74, 0, 89, 85, 1),
    "02": Density(60, 6, 82, 71, 1),
    "03": Density(99, 53, 86, 69, 11),
    "04": Density(40, 0, 58, 60, 3),
    "05": Density(104, 121, 134, 132, 1),
    "06": Density(66, 0, 62, 60, 1),
    "07": Density(62, 1, 72, 67, 1),
    "08": Density(80, 51, 78, 64, 1),
    "09": Density(89, 41, 88, 73, 1),
    "10": Density(67, 55, 123, 92, 1),
    "11": Density(58, 13, 108, 77, 1),
    "12": Density(65, 1, 81, 59, 1),
    "13": Density(56, 17, 94, 66, 1),
    "14": Density(117, 0, 107, 86, 1),
    "15": Density(49, 11, 74, 75, 1),
    "16": Density(66, 85, 81, 72, 1),
    "17": Density(28, 4, 67, 118, 1),
    "18": Density(39, 25, 76, 73, 1),
    "19": Density(29, 4, 38, 160, 1),
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
    drawn = [out for out in outs if "image/svg+xml" in out.get("data", {}) or "animation" in _html(out)]
    return Density(
        round(1000 * numbers / len(prose)), len(intervals), len(book.cells), reading + exercises,
        len(PICTURE.findall(_text(book))) + len(drawn),
    )  # fmt: skip


def _text(book: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")


def _html(out: nbformat.NotebookNode) -> str:
    return out.get("data", {}).get("text/html", "")


def lesson(number: str) -> nbformat.NotebookNode:
    """Read a lesson."""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    return nbformat.read(path, as_version=4)


@pytest.mark.parametrize("number", LIMITS)
def test_a_lesson_is_no_denser_than_its_limit(number):
    found, limit = density(lesson(number)), LIMITS[number]
    assert found[:4] <= limit[:4] and found.drawings >= limit.drawings, f"{number}: {found}, limit {limit}"


if __name__ == "__main__":
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        book = nbformat.read(path, as_version=4)
        print(f'    "{path.stem[:2]}": Density({", ".join(map(str, density(book)))}),  # {len(words(book)):,} words')
