"""The rules that every lesson keeps: how it begins and ends, how long its cells are, that its prose is what it shows.

How numbers and verdicts in prose are tied to outputs is in ``quotes.py``, and outputs to what is recorded in
``records.py``; exercises are in ``test_exercises.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from quotes import unfounded, unsupported
from records import TAG, showing_records
from solutions import exercises_of

from asyncfl_course.explore.course import lessons
from asyncfl_course.minutes import minutes
from asyncfl_course.student import TRACK, books

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NAMES = [one.name for one in lessons()]
TRACKS = [path.stem for path in books(NOTEBOOKS.parent) if path.stem.endswith(TRACK)]
BOOKS = {name: nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4) for name in (*NAMES, *TRACKS)}
MOST_WORDS, MOST_LINES = 150, 12
FENCED = re.compile(r"^```.*?^```", re.S | re.M)
DISPLAYED = re.compile(r"\$\$.*?\$\$", re.S)

each = pytest.mark.parametrize("name", NAMES)


def prose(name: str) -> list[str]:
    return [cell.source for cell in BOOKS[name].cells if cell.cell_type == "markdown"]


def code(name: str) -> list:
    return [cell for cell in BOOKS[name].cells if cell.cell_type == "code"]


def test_the_lessons_are_those_of_the_course_in_order():
    assert [path.stem for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))] == NAMES


@each
def test_it_begins_with_a_surprise_goals_minutes_and_where_one_is(name):
    first = BOOKS[name].cells[0].source
    number, place = name.split("_")[0], NAMES.index(name)
    assert re.match(rf"# {number} · \S", first)
    assert re.search(r"^> \S", first, re.M), "the hook, a surprise in a line or two, is a quotation"
    opening = "\n".join(prose(name)[:3])
    assert "**Goals.**" in opening
    assert f"({NAMES[place - 1]}.ipynb)" in opening if place else True
    assert f"({NAMES[place + 1]}.ipynb)" in opening if place + 1 < len(NAMES) else True


@each
def test_no_cell_is_long(name):
    for index, cell in enumerate(BOOKS[name].cells):
        if cell.cell_type == "markdown":
            words = len(DISPLAYED.sub("", FENCED.sub("", cell.source)).split())
            assert words <= MOST_WORDS, f"cell {index}: {words} words: {cell.source[:60]!r}"
        else:
            lines = len(cell.source.splitlines())
            assert lines <= MOST_LINES, f"cell {index}: {lines} lines: {cell.source[:60]!r}"


@each
def test_it_has_words_for_its_code(name):
    lines = sorted(len(cell.source.splitlines()) for cell in code(name))
    unfolded = re.sub(r"<details>.*?</details>", "", "\n".join(prose(name)), flags=re.S)
    most = 18 if name == "17_bug_zoo" else 15  # there the reader writes the code
    assert lines[len(lines) // 2] <= 8 and 5 <= len(unfolded.split()) / sum(lines) <= most


@each
def test_it_has_exercises_where_the_idea_is(name):
    stubs = exercises_of(NOTEBOOKS / f"{name}.ipynb")
    assert len(stubs) >= 2
    known = next(index for index, cell in enumerate(BOOKS[name].cells) if "## What you now know" in cell.source)
    assert all(stub.cell < known for stub in stubs)


ELSEWHERE = {
    "08_fedecho_evidence": {"99%": "the rule's level", "25.0": "Table 2 prints it", "0.03": "an α of the cells"},
    "09_fedadt": {"40%": "an exercise's", "6%": "(1 + 248.5)^-½, an exercise's"},
    "15_statistics": {"95%": "a level that others use"},
    "16_evidence": {"1.8": "of 0, 0, ⅓ and ⅔, an exercise's", "34.7": "Table 1 prints it", "2.2": "Table 1 prints it"},
    "17_bug_zoo": {"0.5": "a test's"},
    "18_referee": {
        "99%": "the rule's level",
        "20%": "the rule's",
        **dict.fromkeys(("+0.1", "−0.1"), "docs/fair.md has it"),
    },
    "19_capstone": {"0.95": "a plan's level", "0.8": "a plan's power", "1.5": "a plan's margin"},
    "kuiper_in_ten_minutes": {"1.8": "the same exercise's"},
}
"""Lesson or track -> numbers that no output of their section shows, each with its reason."""


@each
def test_numbers_in_prose_are_shown_by_an_output_of_their_section_or_cited(name):
    assert unsupported(BOOKS[name].cells, ELSEWHERE.get(name, ())) == []


def test_no_exception_is_out_of_date():
    for name in ELSEWHERE:
        assert {one.rpartition(": ")[2] for one in unsupported(BOOKS[name].cells)} == set(ELSEWHERE[name])


@each
def test_verdicts_in_prose_are_shown_by_an_output(name):
    assert unfounded(BOOKS[name].cells) == []


@each
def test_outputs_that_show_records_are_compared_with_them(name):
    assert [cell.id for cell in showing_records(BOOKS[name].cells) if TAG not in cell.metadata.get("tags", [])] == []


@pytest.mark.parametrize("name", [*NAMES, *TRACKS])
def test_it_was_run_whole_and_in_order_and_shows_no_widgets_name(name):
    cells = code(name)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    plain = ["".join(out.get("data", {}).get("text/plain", "")) for cell in cells for out in cell.outputs]
    assert not [text for text in plain if re.match(r"(VBox|HBox|Output|interactive)\(", text)]


# --- tracks of ten minutes: play, five cells, one exercise of a lesson, one picture from the records, one link ----------


def test_there_is_a_track_for_each_papers_method_and_the_lessons_page_lists_them():
    assert [name.removesuffix(TRACK) for name in TRACKS] == ["fedadt", "fedecho", "fedrevive", "kuiper"]
    listed = (NOTEBOOKS / "README.md").read_text()
    assert all(f"({name}.ipynb)" in listed for name in TRACKS)


@pytest.mark.parametrize("name", TRACKS)
def test_a_track_is_short_and_says_what_its_outputs_say(name):
    cells, method = BOOKS[name].cells, name.removesuffix(TRACK)
    first, *_, last = code(name)
    assert f'explorable("explore_{method}")' in first.source and "<iframe" in first.outputs[0].data["text/html"]
    assert len(code(name)) == 7 and len(" ".join(prose(name)).split()) <= 600
    assert unsupported(cells, ELSEWHERE.get(name, ())) == [] == unfounded(cells)
    (verdict,) = showing_records(cells)
    assert verdict is last and TAG in verdict.metadata.tags and "image/png" in verdict.outputs[-1].data
    (link,) = re.findall(r"\]\(([^)]+)\)", cells[-1].source)
    assert (NOTEBOOKS / link).exists()


@pytest.mark.parametrize("name", TRACKS)
def test_a_tracks_exercise_is_that_of_a_lesson(name):
    (stub,) = exercises_of(NOTEBOOKS / f"{name}.ipynb")
    of_lessons = [one for lesson in NAMES for one in exercises_of(NOTEBOOKS / f"{lesson}.ipynb") if one.id == stub.id]
    assert [(stub.code, stub.solution)] == [(one.code, one.solution) for one in of_lessons]
    assert "Hint" in stub.folds[0]


# --- quotes --------------------------------------------------------------------------------------------

SHOWN = ("81.24, 0.712: +0.5 [-0.2, 1.2] open", "rate = 0.3")
"""What an output and its code say."""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It gets 81.2% here, or 0.71. It leads by +0.5 [−0.2, 1.2], by 0.5 points, by at least −0.2. It is open.", []),
        ("And 12.5. It leads by 1.2 points, by 0.3 points, by −0.5.", ["12.5", "1.2", "0.3", "−0.5"]),
        ("It is reversed, and the claim fails. It is ahead of FedBuff.", ["reversed", "fails", "ahead of"]),
        ('A lock holds an open file. Not every claim fails. We say "it is reversed". We did not run it at 0.3.', []),
    ],
)
def test_numbers_and_verdicts_need_an_output_of_their_section(text, found):
    """0.3 is set by code, 1.2 is an interval's end."""
    output = nbformat.v4.new_output("stream", text=SHOWN[0])
    cells = [nbformat.v4.new_markdown_cell("## A"), nbformat.v4.new_code_cell(SHOWN[1], outputs=[output])]
    elsewhere = [*cells, nbformat.v4.new_markdown_cell("## B"), nbformat.v4.new_markdown_cell(text)]
    cells.append(nbformat.v4.new_markdown_cell(text))
    assert [one.removeprefix("A: ") for one in unsupported(cells) + unfounded(cells)] == found
    assert len(unsupported(elsewhere) + unfounded(elsewhere)) >= bool(found)


@pytest.mark.parametrize(("value", "wrong"), [(52.85, []), (52.86, [": 52.86 is not in FedEcho Table 2"])])
def test_numbers_of_a_papers_table_are_looked_up(value, wrong):
    metadata = {"cites": {"FedEcho Table 2": [value]}}
    assert unsupported([nbformat.v4.new_markdown_cell(f"And {value} there.", metadata=metadata)]) == wrong


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
