"""The rules that every lesson keeps: how it begins and ends, how long its cells are, that its prose is what it shows.

How numbers and verdicts in prose are tied to outputs is in ``quotes.py``, and outputs to what is recorded in
``records.py``; exercises are in ``test_exercises.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from exercises import exercises_of
from quotes import unfounded, unsupported
from records import TAG, showing_records

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PATHS = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
NAMES = [
    "00_start_here", "01_virtual_time", "02_heterogeneity", "03_baselines", "04_servers_step", "05_kuiper",
    "06_distillation", "07_fedecho", "08_fedecho_evidence", "09_fedadt", "10_fedrevive", "11_text", "12_generation",
    "13_video", "14_theory", "15_statistics", "16_evidence", "17_bug_zoo", "18_referee", "19_capstone",
]  # fmt: skip
BOOKS = {path.stem: nbformat.read(path, as_version=4) for path in PATHS}
MOST_WORDS, MOST_LINES = 150, 12
FENCED = re.compile(r"^```.*?^```", re.S | re.M)
DISPLAYED = re.compile(r"\$\$.*?\$\$", re.S)

each = pytest.mark.parametrize("name", NAMES)


def prose(name: str) -> list[str]:
    return [cell.source for cell in BOOKS[name].cells if cell.cell_type == "markdown"]


def code(name: str) -> list:
    return [cell for cell in BOOKS[name].cells if cell.cell_type == "code"]


def test_the_lessons_are_those_of_the_course_in_order():
    assert list(BOOKS) == NAMES


@each
def test_it_begins_with_a_surprise_goals_minutes_and_where_one_is(name):
    first = BOOKS[name].cells[0].source
    number, place = name.split("_")[0], NAMES.index(name)
    assert re.match(rf"# {number} · \S", first)
    assert re.search(r"^> \S", first, re.M), "the hook, a surprise in a line or two, is a quotation"
    opening = "\n".join(prose(name)[:3])
    assert "**Goals.**" in opening
    assert re.search(r"\*\*Minutes\.\*\* \d+ to read, \d+ for the exercises", opening)
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
def test_it_has_exercises_where_the_idea_is(name):
    stubs = exercises_of(NOTEBOOKS / f"{name}.ipynb")
    assert len(stubs) >= 2
    known = next(index for index, cell in enumerate(BOOKS[name].cells) if "## What you now know" in cell.source)
    assert all(stub.cell < known for stub in stubs)


@each
def test_numbers_in_prose_are_shown_by_an_output_or_cited(name):
    assert unsupported(BOOKS[name].cells) == []


@each
def test_verdicts_in_prose_are_shown_by_an_output(name):
    assert unfounded(BOOKS[name].cells) == []


@each
def test_outputs_that_show_records_are_compared_with_them(name):
    assert [cell.id for cell in showing_records(BOOKS[name].cells) if TAG not in cell.metadata.get("tags", [])] == []


@each
def test_links_lead_somewhere(name):
    text = "\n".join(prose(name))
    heads = {
        re.sub(r"[^\w\- ]", "", head).strip().replace(" ", "-").lower() for head in re.findall(r"^#+ (.*)$", text, re.M)
    }
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("#"):
            assert target[1:].lower() in {head.lower() for head in heads}, target
        elif not target.startswith("http"):
            assert (NOTEBOOKS / target.split("#")[0]).exists(), target


@each
def test_it_was_run_whole_and_in_order(name):
    cells = code(name)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


@each
def test_what_is_shown_without_a_kernel_is_no_widgets_name(name):
    for cell in code(name):
        for out in cell.outputs:
            plain = "".join(out.get("data", {}).get("text/plain", ""))
            assert not re.match(r"(VBox|HBox|Output|interactive)\(", plain)


# --- quotes --------------------------------------------------------------------------------------------


def markdown(source: str, **cites):
    return nbformat.v4.new_markdown_cell(source, metadata={"cites": cites} if cites else {})


def shown(text: str, source: str = ""):
    return nbformat.v4.new_code_cell(source, outputs=[nbformat.v4.new_output("stream", text=text)])


def test_numbers_that_nothing_shows_are_found_with_their_cell():
    cells = [markdown("It gets 81.2% here."), shown("81.24"), markdown("And 12.5 there.")]
    assert unsupported(cells) == ["cell 2: 12.5"]
    cells[2] = markdown("And 52.85 there.", **{"FedEcho Table 2": [52.85]})
    assert unsupported(cells) == []
    cells[2] = markdown("And 52.86 there.", **{"FedEcho Table 2": [52.86]})
    assert unsupported(cells) == ["cell 2: 52.86 is not in FedEcho Table 2"]


@pytest.mark.parametrize(
    ("text", "output", "found"),
    [
        ("## A\nIt is open.", "81, 82, -0.5 [-1.6, 0.6]: open", []),
        ("## A\nIt is open.", "81, 82, -0.5 [-1.6, -0.6]: reversed", ["A: open"]),
        ("## A\nThey are equivalent, and one is reversed.", "0.2 open", ["A: equivalent", "A: reversed"]),
        ("## A\nThe claim holds, or the claim fails.", "0.2 open", ["A: holds", "A: fails"]),
        ("## A\nIt is not run.", "", ["A: not run"]),
        ('## A\nA lock holds an open file. Not every claim fails. We say "it is open". We did not run it.', "", []),
        ("## A\nIt is ahead of FedBuff.", "+6.9 [3.1, 10.6]", []),
        ("## A\nIt is ahead of FedBuff.", "+6.9 [-3.1, 10.6]", ["A: ahead of"]),
        ("## A\nIt is behind FedBuff.", "no interval", ["A: behind"]),
    ],
)
def test_verdicts_need_an_output_that_says_so(text, output, found):
    assert unfounded([markdown(text), shown(output)]) == found
