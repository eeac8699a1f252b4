"""Every solution that a lesson folds away runs, with what it needs of the lesson.

Those of exercises run with their lesson, in their stubs' places (``conftest.py``).
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
from solutions import Lesson, Solution, exercises_of, lesson, needed

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LESSONS: dict[str, Lesson] = {path.stem: lesson(path) for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))}
SOLUTIONS = [solution for book in LESSONS.values() for solution in book.solutions]
OF_EXERCISES = {(stub.lesson, stub.solution) for path in NOTEBOOKS.glob("[0-9]*.ipynb") for stub in exercises_of(path)}
SECONDS: dict[str, int] = {
    "08_fedecho_evidence-4": 3,
    "09_fedadt-5": 4,
    "10_fedrevive-6": 6,
    "11_text-6": 14,
    "13_video-6": 8,
    "13_video-7": 7,
}
"""Solutions that take more than 2 s of one core, with all that they need; they run in `make test-long`."""


def runnable() -> list:
    return [
        pytest.param(one, id=one.name, marks=[pytest.mark.long] * (one.name in SECONDS))
        for one in SOLUTIONS
        if one.language == "python" and (one.name.rpartition("-")[0], one.code) not in OF_EXERCISES
    ]


def execute(solution: Solution, statements: list[str]) -> dict:
    """Run a solution after the statements that it needs; return the names that are left."""
    from IPython.display import display

    names: dict = vars(sys.modules["lesson"]) | {"display": display}
    before = statements[: solution.place]
    for place in needed(before, solution.code):
        exec(compile(before[place], f"{solution.name}, before it: {before[place]}", "exec"), names)
    exec(compile(solution.code, solution.name, "exec"), names)
    return names


@pytest.mark.parametrize("solution", runnable())
def test_solution(solution, as_in_a_notebook):
    execute(solution, LESSONS[solution.name.rpartition("-")[0]].statements)


def test_every_lesson_has_solutions_and_every_block_is_found():
    """A block that is not meant to run says so by another language than python, such as text."""
    for name, book in LESSONS.items():
        assert book.solutions, name
        assert {one.language for one in book.solutions} <= {"python", "text"}, name
        text = "\n".join(
            cell.source for cell in nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells
            if cell.cell_type == "markdown"
        )  # fmt: skip
        assert text.count("<summary>Solution") == text.count("Solution</summary>") > 0, name
        assert text.count("```python") == sum(one.language == "python" for one in book.solutions), name
    assert SECONDS.keys() <= {one.name for one in SOLUTIONS} and min(SECONDS.values(), default=3) > 2
