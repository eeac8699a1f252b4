"""The course's table of contents and map have every lesson, with the minutes that the lesson says of itself."""

from __future__ import annotations

import re
import runpy

import pytest
from test_lessons import BOOKS, NAMES

from asyncfl_course.explore.course import COURSE, PATHS, course_contents, course_paths, lessons, letters
from asyncfl_course.explore.diagrams import course_map
from asyncfl_course.minutes import CORE, OPTIONAL, hours
from conftest import ROOT

PICTURES = ROOT / "docs/pictures"
START = BOOKS["00_start_here"]


def shown(call: str, kind: str) -> str:
    """What the first lesson shows below a call."""
    (cell,) = [cell for cell in START.cells if cell.cell_type == "code" and cell.source == call]
    (out,) = cell.outputs
    return "".join(out["data"][kind])


@pytest.mark.parametrize("lesson", lessons(), ids=lambda one: one.name)
def test_minutes_are_those_that_the_lesson_says(lesson):
    opening = "\n".join(cell.source for cell in BOOKS[lesson.name].cells[:3])
    said = re.search(r"\*\*Minutes\.\*\* (\d+) to read, (\d+) for the exercises", opening)
    assert said, f"{lesson.name} does not say its minutes"
    told = f"write these into asyncfl_course/explore/course.yaml, then run notebooks/00_start_here.ipynb: {lesson.name}"
    assert (lesson.reading, lesson.exercises) == (int(said[1]), int(said[2])), told


@pytest.mark.parametrize("make", [course_contents, course_paths], ids=lambda make: make.__name__)
def test_the_first_lesson_shows_it_as_it_is_now(make):
    assert shown(f"{make.__name__}()", "text/markdown") == make().data


def test_the_map_is_drawn_as_it_is_now(monkeypatch):
    monkeypatch.syspath_prepend(PICTURES)
    drawn = course_map().svg
    assert shown("course_map()", "image/svg+xml").strip() == drawn.strip()
    assert runpy.run_path(str(PICTURES / "course_map.py"))["course_map"]() == drawn, (
        "python docs/pictures/course_map.py"
    )
    assert all(f">{one.title}<" in drawn and f">{one.number}<" in drawn for one in lessons())
    assert all(path.title in drawn for path in PATHS)


def test_contents_link_every_lesson_with_its_minutes_and_paths():
    rows = course_contents().data.splitlines()[2:]
    assert len(rows) == len(NAMES)
    for row, one in zip(rows, lessons(), strict=True):
        assert f"({one.name}.ipynb)" in row and row.endswith(f"| {one.reading} | {one.exercises} | {letters(one)} |")
    assert sum(row.startswith("| **") for row in rows) == len(COURSE)


def test_paths_go_forwards_from_the_start_and_take_the_time_they_say():
    for path in PATHS:
        assert list(path.numbers) == sorted(set(path.numbers)) and path.numbers[0] == "00"
    hour, week, referee = PATHS
    assert 45 <= hour.minutes <= 65 and len(week.numbers) == 8 and week.numbers[-1] == "08"
    start, step = hour.lessons
    assert hour.minutes == start.reading + 20 < start.reading + step.reading
    assert "[04](04_servers_step.ipynb) (Sections 1 and 6);" in course_paths().data
    assert referee.minutes == sum(one.reading + one.exercises for one in referee.lessons)
    assert hours(referee.minutes) in course_paths().data


@pytest.mark.parametrize("name", NAMES)
def test_every_section_is_core_or_optional_and_says_so(name):
    for cell in BOOKS[name].cells:
        if cell.cell_type == "markdown" and (heads := re.findall(r"^## (.*)$", cell.source, re.M)):
            tags = {CORE, OPTIONAL} & set(cell.metadata.get("tags", []))
            assert len(tags) == 1, f"{heads[0]}: one of the tags core and optional is asked for"
            assert (tags == {OPTIONAL}) == heads[0].endswith("(optional)"), heads[0]
            assert heads[0].startswith("More exercises") <= (tags == {OPTIONAL})
