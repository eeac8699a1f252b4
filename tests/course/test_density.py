"""How dense lessons are: one of an idea says what is so, shows it and links; intervals are for those of evidence."""

from __future__ import annotations

import re

import pytest
from test_lessons import BOOKS, NAMES, prose

from asyncfl_course.minutes import minutes

NOT_PROSE = re.compile(r"<details>.*?</details>|^```.*?^```|\$\$.*?\$\$|`[^`\n]*`|\]\([^)]*\)|^#[^\n]*$", re.S | re.M)
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
SIGNED = r"[-+−]?\d+(?:\.\d+)?"
INTERVAL = re.compile(rf"\[\s*{SIGNED}, ?{SIGNED}\s*\]|\b[Ii]nterval (?:is |of |from )?{SIGNED}")
FORMULA = re.compile(r"^```.*?^```|\$[^$\n]*\$|`[^`\n]*`", re.S | re.M)
PICTURE = re.compile(r"!\[[^\]]+\]\(|<img ")
LIMITS = {"Idea": (45, 0, 80, 60, 3), "Evidence": (72, 72, 80, 73, 1)}
"""Kind -> at most so many numbers, intervals, cells and minutes, and at least so many drawings."""
LONG = {"17_bug_zoo": 118, "19_capstone": 161}
"""Lessons that may take more minutes."""


def density(name: str) -> tuple[int, int, int, int, int]:
    """Count numbers per 1,000 words of prose, intervals there and in outputs, cells, minutes, and drawings.

    Folds, code, displayed formulas and headings are no prose; drawings are pictures in the text, drawings, animations
    and pages of outputs, but no charts.
    """
    book, text = BOOKS[name], "\n\n".join(prose(name))
    words = NOT_PROSE.sub(" ", text).split()
    outs = [out for cell in book.cells for out in cell.get("outputs", [])]
    shown = "\n".join(out.get("text", "") or out.get("data", {}).get("text/plain", "") for out in outs)
    data = [out.get("data", {}) for out in outs]
    drawn = [one for one in data if "image/svg+xml" in one or re.search("animation|<iframe", one.get("text/html", ""))]
    numbers = round(1000 * len(NUMBER.findall(" ".join(words))) / len(words))
    intervals = len(INTERVAL.findall(f"{FORMULA.sub('', text)}\n{shown}"))
    return numbers, intervals, len(book.cells), sum(minutes(book)), len(PICTURE.findall(text)) + len(drawn)


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_is_as_dense_as_its_kind_may_be_and_distrusts_in_four_bullets(name):
    kind = re.search(r"^\*\*(Idea|Evidence) lesson\.\*\*", BOOKS[name].cells[0].source, re.M)
    assert kind, "**Idea lesson.** or **Evidence lesson.**"
    found, (*most, fewest) = density(name), LIMITS[kind[1]]
    most[3] = LONG.get(name, most[3])
    assert all(one <= limit for one, limit in zip(found, most, strict=False)) and found[-1] >= fewest, found
    closing = "\n\n".join(prose(name)).partition("## What to distrust")[2].partition("\n## ")[0]
    assert len(re.findall(r"^- ", closing, re.M)) <= 4
