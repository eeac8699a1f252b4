"""Every solution that a lesson folds away runs, with what it needs of the lesson."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import pytest
from solutions import Lesson, Solution, lesson, names_of, needed

from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.models import MODELS
from asyncfl_lite.runs.initial import INITIALISERS
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.selection import SELECTIONS
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.partitions import PARTITIONS

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LESSONS: dict[str, Lesson] = {path.stem: lesson(path) for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))}
SOLUTIONS = [solution for book in LESSONS.values() for solution in book.solutions]
SECONDS: dict[str, int] = {
    "00_start_here-7": 3,
    "01_virtual_time-8": 3,
    "02_heterogeneity-7": 3,
    "05_kuiper-9": 4,
    "08_fedecho_evidence-4": 3,
    "08_fedecho_evidence-5": 5,
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
        if one.language == "python"
    ]


@pytest.fixture
def as_in_a_notebook(monkeypatch):
    """The lessons' folder, figures that nobody sees, and no names registered for other tests."""
    monkeypatch.chdir(NOTEBOOKS)
    monkeypatch.setitem(sys.modules, "lesson", type(sys)("lesson"))
    registries = (ALGORITHMS, DELAYS, INITIALISERS, MODELS, PARTITIONS, SELECTIONS, TASKS)
    before = [dict(registry._entries) for registry in registries]
    backend = matplotlib.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(backend)
    for registry, entries in zip(registries, before, strict=True):
        registry._entries = entries


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


# --- what a solution needs ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "code", "places"),
    [
        (["import numpy as np", "x = 1", "y = np.ones(x)"], "y + 1", [0, 1, 2]),
        (["x = 1", "y = 2"], "print(y)", [1]),
        (["x = slow()", "x = 2"], "x", [1]),  # the last binding counts
        (["x = 1", "x = x + 1", "x += 1"], "x", [0, 1, 2]),
        (["d = {}", "d['a'] = 1", "e = {}", "e['b'] = 1"], "d", [0, 1]),  # and what changes it in place
        (["s = []", "s.append(1)", "s.b.c = 2"], "s", [0, 1, 2]),
        (["s = []", "def f(s):\n    s.append(1)\n    t = 1\n    t.a = 2", "t = 3"], "s", [0]),  # a function's own names
        (["import m", "m.draw()", "m.use(1)"], "m", [0]),  # but calling a module's function is no change
        (["def f():\n    return k", "k = 1", "k = 2"], "f()", [0, 2]),  # a function reads when it is called
        (["k = 1", "def f():\n    return k", "y = f()", "k = 2"], "y", [0, 1, 2, 3]),
        (["def f(k):\n    return k", "k = 1"], "f(3)", [0]),
        (["a = 1", "b = [a for a in range(3)]"], "b", [1]),
        (["z = 3", "class A:\n    y = z\n    def f(self):\n        return w", "w = 1"], "A", [0, 1, 2]),
        (["n = 1", "for i in range(n):\n    t = i\n    u = t"], "u", [0, 1]),
        (["o = 1", "with o as p:\n    q = p"], "q", [0, 1]),
        (["def g():\n    g()", "h = lambda: g()"], "h()", [0, 1]),
        (["@A.register('mine')\nclass B: pass", "A = 1"], "make('mine')", [0]),  # configurations name classes by texts
        (["x = 1"], "x = 2\nx", []),
        (["i = 1"], "for i in range(3):\n    print(i)", []),
    ],
)
def test_what_is_needed(pieces, code, places):
    assert needed(pieces, code) == places


def test_names_in_a_piece_of_code():
    found = names_of("import a.b as c\nd[e] = f\ng = lambda: h\ntry:\n    i = 1\nexcept j as k:\n    print(i)")
    assert found.binds >= {"c", "g", "i"} and found.changes == {"d"}
    assert found.reads >= {"d", "e", "f", "j"} and found.later == {"h"} and "i" not in found.reads


def book(tmp_path, *cells: str) -> Lesson:
    """A notebook whose cells that begin with # are markdown."""
    new = nbformat.v4.new_notebook()
    new.cells = [
        nbformat.v4.new_markdown_cell(one) if one.startswith("#") else nbformat.v4.new_code_cell(one) for one in cells
    ]
    nbformat.write(new, tmp_path / "99_made_up.ipynb")
    return lesson(tmp_path / "99_made_up.ipynb")


FOLDED = "# Exercise\n<details><summary>{}</summary>\n\nProse.\n\n```{}\n{}\n```\n</details>"


def test_blocks_are_found_where_they_are_folded_away(tmp_path, as_in_a_notebook):
    made = book(
        tmp_path,
        "slow = 1 / 0\nx = 1",
        FOLDED.format("Solution", "python", "y = x + 1"),
        "x = 5",
        FOLDED.format("Hint", "python", "no solution"),
        "# A block in the open\n```python\nneither\n```",
        FOLDED.format("Solution", "text", "not code"),
        FOLDED.format("Solution", "python", "y = not_there"),
    )
    assert [(one.name, one.place, one.language) for one in made.solutions] == [
        ("99_made_up-1", 2, "python"),
        ("99_made_up-2", 3, "text"),
        ("99_made_up-3", 3, "python"),
    ]
    assert execute(made.solutions[0], made.statements)["y"] == 2  # what stood above it, not below, and no more
    with pytest.raises(NameError, match="not_there"):
        execute(made.solutions[2], made.statements)
