"""Exercises check: every stub is open, a plausible mistake is told on which input it is wrong.

Mistakes are in ``asyncfl_course/checkers``, as functions, and in ``tests/mistakes/``, ``MISTAKES``: exercise ->
code in the stub's place, or what is replaced in the solution: ``(old, new, old, new)``.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
import sys
from pathlib import Path

import mistakes
import pytest
import torch
from solutions import Stub, exercises_of, lesson, needed

from asyncfl_course import lessons
from asyncfl_lite.base.errors import AsyncFLError

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
STUBS: dict[str, Stub] = {
    stub.id: stub for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")) for stub in exercises_of(path)
}


def code_of(id: str, mistake: str | tuple[str, ...]) -> str:
    """The code of a mistake."""
    if isinstance(mistake, str):
        return mistake
    code = STUBS[id].solution
    for old, new in zip(mistake[::2], mistake[1::2], strict=True):
        assert old in code, f"{id}: the solution has no {old!r}"
        code = code.replace(old, new)
    return code


MISTAKES: dict[str, list[str]] = {
    id: [code_of(id, mistake) for mistake in wrong]
    for module in pkgutil.iter_modules(mistakes.__path__)
    for id, wrong in importlib.import_module(f"mistakes.{module.name}").MISTAKES.items()
}
KNOWN = {id: one.mistakes for id, one in lessons.exercises().items() if one.mistakes}
"""Exercise -> hint -> the wrong function."""
SECONDS: dict[str, int] = {}
"""Exercises whose solution and mistakes take more than 2 s of one core together; they run in `make test-long`."""


def answered(stub: Stub, code: str) -> lessons.Checked:
    """Put code in the stub's place, with what it needs of the lesson, and check the answer."""
    from IPython.display import display

    names: dict = vars(sys.modules["lesson"]) | {"display": display}
    whole = f"{code}\n{stub.checked}"
    cells = lesson(NOTEBOOKS / f"{stub.lesson}.ipynb", until=stub.cell)
    for place in needed(cells.statements, whole):
        exec(compile(cells.statements[place], f"{stub.id}, before it", "exec"), names)
    exec(compile(code, stub.id, "exec"), names)
    return eval(compile(stub.checked, stub.id, "eval"), names)


def marked(ids) -> list:
    return [pytest.param(one, id=one, marks=[pytest.mark.long] * (one in SECONDS)) for one in sorted(ids)]


@pytest.mark.parametrize("id", marked(STUBS))
def test_the_stub_is_open(id, as_in_a_notebook):
    """That the solution is right, ``make test`` finds when it runs the lesson: it stands in the stub's place there."""
    stub = STUBS[id]
    assert stub.solution, f"{id} has no solution folded below it"
    assert answered(stub, stub.code).state == "open"


OF_PARTS = {
    "00.3": 1,
    "03.2": 3,
    "05.2": 1,
    "06.1": 1,
    "07.1": 1,
    "07.2": 1,
    "08.1": 3,
    "11.3": 1,
    "16.1": 1,
    "16.2": 1,
}
"""Exercises with known mistakes that show only in a whole solution or on a later input, and how many those are."""


@pytest.mark.parametrize("id", marked(MISTAKES))
def test_a_plausible_mistake_is_wrong_and_hears_why(id, as_in_a_notebook):
    """No two hear the same name of a known mistake."""
    named = []
    for code in MISTAKES[id]:
        found = answered(STUBS[id], code)
        assert found.state == "wrong", repr(found)
        assert not found.message.startswith("Your code stops") and len(found.message.split()) >= 5, repr(found)
        named += [name for name in KNOWN.get(id, ()) if found.message.endswith(name)][:1]
    assert len(set(named)) == len(named) and (named or id not in OF_PARTS)


@pytest.mark.parametrize("id", sorted(KNOWN))
def test_a_known_mistake_is_wrong_and_hears_its_name(id):
    found = {name: lessons.check(id, wrong) for name, wrong in KNOWN[id].items()}
    assert {one.state for one in found.values()} == {"wrong"}
    unnamed = [repr(one) for name, one in found.items() if not one.message.endswith(name)]
    assert len(unnamed) == OF_PARTS.get(id, 0), unnamed


def test_every_exercise_stands_in_its_lesson_once():
    counted = [stub.id for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")) for stub in exercises_of(path)]
    assert len(counted) == len(set(counted))
    assert set(counted) == set(lessons.exercises()) == set(MISTAKES) | set(KNOWN)
    for stub in STUBS.values():
        number, _, place = stub.id.partition(".")
        assert stub.lesson.startswith(f"{number}_") and place.isdigit(), stub.id


@pytest.mark.parametrize("id", sorted(STUBS))
def test_an_exercise_says_how_hard_it_is_and_folds_hint_and_solution(id):
    stub = STUBS[id]
    head = re.search(rf"\*\*Exercise {re.escape(id)} · [^*]+\*\* \((★{{1,3}}), (\d+) minutes\)", stub.asked)
    assert head, f'{id}: "**Exercise {id} · title** (★★, 10 minutes)" stands above its cell'
    assert any("Hint" in one for one in stub.folds) and any("Solution" in one for one in stub.folds), id
    assert "NotImplementedError" in stub.code or "..." in stub.code, id


# --- checking ---------------------------------------------------------------------------------------


@pytest.fixture
def halves(monkeypatch):
    """An exercise that asks for half of a number."""

    def checker(answer):
        lessons.expect_close(answer, (torch.tensor([1.0, 3.0]),), [0.5, 1.5], because="divide by 2")

    monkeypatch.setitem(
        lessons.exercises.__globals__["_EXERCISES"], "99.1", lessons.Exercise("99.1", "Halves", checker)
    )


def stub(x):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("answer", "state", "message"),
    [
        (lambda x: x / 2, "right", ""),
        (stub, "open", "Replace `raise NotImplementedError` with your answer, and run this cell again."),
        (..., "open", "Replace the dots with your answer, and run this cell again."),
        (lambda x: x * 2, "wrong", "<lambda>([1.0, 3.0]) gives [2.0, 6.0], expected [0.5, 1.5]. Divide by 2."),
        (lambda x: x.sum() / 2, "wrong", "<lambda>([1.0, 3.0]) gives 2.0: shape (), expected (2,). Divide by 2."),
        (lambda x: "a", "wrong", "<lambda>([1.0, 3.0]) gives 'a', which is no number. Divide by 2."),
        (lambda x: None, "wrong", "<lambda>([1.0, 3.0]) returns nothing. Is there a `return`?"),
        (lambda x: [None, None], "wrong", "<lambda>([1.0, 3.0]) gives [None, None], which is no number. Divide by 2."),
        (3, "wrong", "Give a function; your answer is 3."),
        (lambda x: x.half_of, "wrong", "Your code stops: AttributeError: 'Tensor' object has no attribute 'half_of'"),
    ],
)
def test_an_answer_is_right_open_or_wrong_and_says_why(halves, answer, state, message):
    found = lessons.check("99.1", answer)
    assert (found.state, found.message, bool(found)) == (state, message, state == "right")
    assert repr(found) == f"Exercise 99.1, Halves: {state}. {message}".rstrip()
    shown = found._repr_html_()
    assert f"Exercise 99.1, Halves: {state}" in shown and "<lambda>" not in shown  # what a reader writes is no HTML


@pytest.mark.parametrize(
    ("id", "answer", "message"),
    [
        ("13.2", "left", "The form of your answer 'left' is not what the exercise asks for: TypeError: "),
        ("13.2", [[1, 2], [3]], "The form of your answer [[1, 2], [3]] is not what the exercise asks for: ValueError: "),
        ("05.1", lambda *a: 4.5, "The form of what your function returns is not what the exercise asks for: TypeError"),
        ("00.5", lambda *a: torch.zeros(3), "<lambda>(25, 5, 'before_agg') gives [0.0, 0.0, 0.0]: shape (3,), expected ()."),
        ("00.5", lambda *a: [math.nan], "<lambda>(25, 5, 'before_agg') gives [nan], expected "),
        ("05.1", lambda a: a, "Your code stops: TypeError: "),  # too few arguments
        ("00.5", lambda *a: 1 / 0, "Your code stops: ZeroDivisionError: division by zero"),
        ("04.5", lambda *a: a[0], "lead(table, 'A', …) gives a table of shape (24, 5), which is no number."),
        ("07.1", lambda a: torch.zeros(2, 2), "say([3, 3, 5]) gives [[0.0, 0.0], [0.0, 0.0]], not a dictionary"),
        ("07.1", lambda a: {}, "say([3, 3, 5]) gives {}. Each client that reported is in the store once."),
        ("02.3", lambda *a: [[1]], "shards of 40 labels for 5 clients: you return 1 part, expected 5."),
        ("13.3", math.nan, "Give a number of points; your answer is nan."),
        ("13.3", len, "Give a number of points; your answer is len."),
        ("12.2", -1, "Give a number from 0 to 20; your answer is -1."),
        ("99.1", [1, 2], "Give a function; your answer is [1, 2]."),
    ],
)  # fmt: skip
def test_an_answer_of_another_form_is_named_on_one_line(halves, id, answer, message):
    found = lessons.check(id, answer)
    assert found.state == "wrong" and found.message.startswith(message), found.message
    assert "\n" not in found.message


def test_an_exercise_that_is_not_there_is_one_line(halves):
    with pytest.raises(AsyncFLError, match=r"^there is no exercise '99.7'; this lesson has 99.1$"):
        lessons.check("99.7", 1)
