"""The learner's edition: answers are out of sight, a lesson runs alike in it, and what is solved is kept."""

from __future__ import annotations

import json
import os
import re

import nbformat
import pytest
from solutions import exercises_of

from asyncfl_course import lessons, progress_file, student
from asyncfl_course.recall import _questions
from asyncfl_lite.base.errors import ResultError
from conftest import ROOT

PATHS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
GUESSES = {
    "00.4", "01.4", "02.4", "02.5", "04.4", "06.2", "06.4", "08.3", "10.2", "12.2", "13.3", "13.5", "16.3",
}  # fmt: skip
"""Exercises that ask for a guess of what the next cells show."""


def test_every_guess_is_tagged():
    tagged = {
        stub.id
        for path in PATHS
        for stub in exercises_of(path)
        if student.GUESS in nbformat.read(path, as_version=4).cells[stub.cell].metadata["tags"]
    }
    assert tagged == GUESSES


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_in_the_learners_edition_no_answer_is_in_sight(path):
    lesson = nbformat.read(path, as_version=4)
    book = student.learners(lesson, path.name)
    assert [cell.cell_type for cell in book.cells] == [cell.cell_type for cell in lesson.cells]
    assert [cell.source for cell in book.cells if cell.cell_type == "code"] == [
        cell.source for cell in lesson.cells if cell.cell_type == "code"
    ]
    text = "\n\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    assert "<summary>Solution" not in text
    for stub in exercises_of(path):  # a link is read as one only if an empty line ends the fold above it
        assert f"\n\n[Solution](../solutions/{path.name}#cell-id={lesson.cells[stub.cell].id})" in text
    for stub in exercises_of(path):
        assert book.cells[stub.cell].outputs == []
        if stub.id in GUESSES:
            for cell in book.cells[stub.cell + 1 :]:
                text, *following = re.split(r"(?m)^(?=## )", cell.source, maxsplit=1)
                assert not cell.get("outputs"), stub.id
                folded = cell.cell_type == "code" or "<details>" in text or "**Exercise" in text
                assert folded or "[Solution]" in text or not text, text
                assert not any(part.startswith("<details>") for part in following), "a next section is no answer"
                if cell.cell_type == "markdown" and following:
                    break


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_link_to_a_solution_leads_to_the_solution_of_its_own_exercise(path):
    lesson = nbformat.read(path, as_version=4)
    places = {cell.id: place for place, cell in enumerate(lesson.cells)}
    for place, cell in enumerate(student.learners(lesson, path.name).cells):
        targets = {places[name] for name in re.findall(r"\[Solution\]\(.*#cell-id=(.*)\)", cell.source)}
        assert targets <= {place, place - 1}, cell.source
        assert all("<summary>Solution" in lesson.cells[place].source for _ in targets)


SHORT = [
    nbformat.v4.new_markdown_cell("# 00 · A short lesson\n\n## 1 · A guess\n\n**Exercise 06.2 · From 10 to 30**"),
    nbformat.v4.new_code_cell(
        'answer = ...\n\nfrom asyncfl_course import lessons\n\nlessons.check("06.2", answer)',
        metadata={"tags": ["exercise", "guess"]},
    ),
    nbformat.v4.new_markdown_cell(
        "<details><summary>Hint</summary>\n\nTwo factors.\n\n</details>\n\n<details><summary>Solution</summary>\n\n"
        "```python\nanswer = 9\n\nfrom asyncfl_course import lessons\n```\n\n</details>"
    ),
    nbformat.v4.new_code_cell(
        "print('the answer', 9)", outputs=[nbformat.v4.new_output("stream", text="the answer 9")], execution_count=2
    ),
    nbformat.v4.new_markdown_cell("It is nine."),
    nbformat.v4.new_markdown_cell("## 2 · What follows"),
    nbformat.v4.new_code_cell("print(1)", outputs=[nbformat.v4.new_output("stream", text="1")], execution_count=3),
]


@pytest.fixture
def place(tmp_path):
    """A repository with one short lesson."""
    (tmp_path / "notebooks").mkdir()
    book = nbformat.v4.new_notebook(cells=SHORT)
    nbformat.write(book, tmp_path / "notebooks" / "00_short.ipynb")
    return tmp_path


def test_a_lesson_runs_alike_in_both_and_progress_is_kept_by_a_real_kernel(place, as_for_lessons, monkeypatch):
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    assert student.write(place) == (["00_short.ipynb"], [])
    mine = nbformat.read(place / "student" / "00_short.ipynb", as_version=4)
    assert "Two factors" in mine.cells[2].source and "answer = 9" not in mine.cells[2].source
    assert mine.cells[3].outputs == [] and mine.cells[6].outputs and mine.cells[4].source.startswith("<details>")
    mine.cells[1].source = mine.cells[1].source.replace("answer = ...", "answer = 27")
    mine.cells.insert(2, nbformat.v4.new_code_cell("answer = 9.0\nlessons.check('06.2', answer)"))
    mine.cells.insert(3, nbformat.v4.new_code_cell("lessons.check('06.3', lambda n: 3 * n)"))
    mine.cells.append(nbformat.v4.new_code_cell("print(lessons.progress())"))
    NotebookClient(mine, resources={"metadata": {"path": str(place / "student")}}).execute()
    says = mine.cells[-1].outputs[0]["text"]
    assert re.search(r"^06  ✓✗··", says, re.M) or re.search(r"^06  ·✓✗·", says, re.M), says
    assert "1 of " in says and "Kept in progress.json" in says
    content = json.loads((place / "student" / progress_file.NAME).read_text())
    assert content["exercises"]["06.2"]["wrong"] == 1 and content["exercises"]["06.2"]["state"] == "right"
    solved = nbformat.read(place / "solutions" / "00_short.ipynb", as_version=4)
    NotebookClient(solved, resources={"metadata": {"path": str(place / "solutions")}}).execute()
    assert "right" in solved.cells[1].outputs[0]["data"]["text/plain"]
    assert not (place / "solutions" / progress_file.NAME).exists(), "only a learner's folder keeps progress"


def test_what_the_learner_has_changed_stays(place):
    student.write(place)
    mine = place / "student" / "00_short.ipynb"
    book = nbformat.read(mine, as_version=4)
    book.cells[1].source = "answer = 9"
    nbformat.write(book, mine)
    changed = mine.read_bytes()
    assert student.write(place) == ([], ["00_short.ipynb"]) and mine.read_bytes() == changed
    mine.unlink()
    assert student.write(place) == (["00_short.ipynb"], [])


@pytest.fixture
def learner(tmp_path, monkeypatch):
    """A learner's folder, the current one."""
    progress_file.start(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_right_stays_right_and_wrong_answers_are_counted(learner):
    for answer in (..., 27, 4, 9, 27):
        lessons.check("06.2", answer)
    one = progress_file.read()["exercises"]["06.2"]
    assert (one["state"], one["wrong"]) == ("right", 2)
    assert lessons.progress().lessons["06"]["06.2"] == "right"
    assert sorted(path.name for path in learner.iterdir()) == [progress_file.NAME], "nothing is left beside it"


def test_a_write_that_fails_leaves_the_file_as_it_was(learner, monkeypatch):
    lessons.check("06.2", 9)
    before = (learner / progress_file.NAME).read_bytes()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResultError, match="no space"):
        progress_file.note("06.3", "right")
    assert (learner / progress_file.NAME).read_bytes() == before


def test_recall_asks_about_two_lessons_before(learner):
    asked = lessons.recall("08")
    assert asked.lesson == "06" and 'lessons.recall("08"' in repr(asked) and "→" not in repr(asked)
    right = [item.right for item in asked.items]
    assert lessons.recall("08", *right).right == 3
    wrong = ["abc"["abc".index(letter) - 1] for letter in right]
    told = lessons.recall("08", *wrong)
    assert told.right == 0 and all(item.because in repr(told) for item in told.items)
    assert progress_file.read()["recall"]["06"]["right"] == 3, "the best try counts"


def test_there_are_three_questions_for_each_lesson_that_is_recalled():
    names = [path.stem[:2] for path in PATHS]
    assert list(_questions())[: len(names) - 2] == names[:-2]
    for items in _questions().values():
        assert len(items) == 3
        for item in items:
            assert len(set(item.options)) == 3 and item.asks and item.because.endswith(".")
