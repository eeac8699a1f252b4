"""Checkers are fair: right answers of any kind pass, and a constant is not told at once."""

from __future__ import annotations

import ast
import functools
import inspect

import numpy as np
import pytest
from test_exercises import MISTAKES, STUBS, answered
from variants import forms

from asyncfl_course import exercises, lessons


def answer_of(id: str):
    """Return the object that the solution hands to the checker."""
    stub = STUBS[id]
    name = ast.parse(stub.checked).body[0].value.args[1].id
    return answered(stub._replace(checked=name), stub.solution)


def in_other_forms(answer, id: str):
    """Yield a right answer in other forms; a function's results are turned."""
    if not inspect.isfunction(answer):
        yield from ((name, form(answer)) for name, form in forms(answer))
        return
    results = []

    @functools.wraps(answer)
    def watched(*inputs):
        results.append(answer(*inputs))
        return results[-1]

    assert lessons.check(id, watched)
    for name, form in forms(results[0]):
        yield name, functools.wraps(answer)(lambda *inputs, form=form: form(answer(*inputs)))


@pytest.mark.parametrize("id", [one for one in sorted(STUBS) if not one.startswith("17.")])
def test_a_right_answer_is_right_in_any_form(id, as_in_a_notebook):
    tried = {name: lessons.check(id, form) for name, form in in_other_forms(answer_of(id), id)}
    assert {name: repr(found) for name, found in tried.items() if not found} == {}


CONSTANTS = {
    "00.1": "expected", "01.2": "", "01.4": "0.76", "02.4": "sevens", 
    "06.2": "there are two factors", "08.3": " seeds: ", "09.1": "248", "10.2": "99 others", "12.2": "expected",
    "13.5": "with their labels", "16.3": "most weights vanish", "16.4": "the record says",
}  # fmt: skip
"""Exercises that ask for a constant, and what a first wrong answer must not hear."""


@pytest.mark.parametrize("id", sorted(CONSTANTS))
def test_a_constant_is_not_told_before_the_second_try(id, as_in_a_notebook, monkeypatch):
    monkeypatch.setattr(exercises, "_ATTEMPTS", [])
    codes = []
    for code in MISTAKES[id]:
        exercises._ATTEMPTS.clear()
        codes += [code] * answered(STUBS[id], code).message.endswith(exercises.MORE)
    code = codes[0]
    exercises._ATTEMPTS.clear()
    first = answered(STUBS[id], code)
    assert first.state == "wrong" and first.message.endswith(exercises.MORE)
    assert not CONSTANTS[id] or CONSTANTS[id] not in first.message
    assert answered(STUBS[id], code).message == first.message, "the same answer again is no second try"
    exercises._ATTEMPTS.append(first_attempt := exercises.Attempt(id, "another", "wrong", 0.0))
    assert first_attempt in lessons.attempts()
    told = answered(STUBS[id], code).message
    assert exercises.MORE not in told and told != first.message
    assert CONSTANTS[id] in told


def simulated_share(alpha, classes):
    return np.random.default_rng(1).dirichlet([alpha] * classes, 4_000).max(1).mean()


def simulated_rest(eta, share, sigma, buffer_size):
    rng, x, path = np.random.default_rng(1), 0.0, []
    for _ in range(30_000):
        x += eta * share * (rng.normal(0, sigma, buffer_size).mean() - x)
        path.append(x)
    return np.std(path[1_000:])


def simulated_settling(durations, centres):
    moves = sorted((k * d, d, c) for d, c in zip(durations, centres, strict=True) for k in range(1, int(4_000 / d)))
    x, late = 0.0, []
    for at, _, centre in moves:
        x += 0.005 * (centre - x)
        late += [x] * (at > 2_000)
    return np.mean(late)


def simulated_step(tau, L):
    low, high = 0.0, 2.5 / L
    for _ in range(12):
        eta = (low + high) / 2
        path = [1.0] * (tau + 1)
        for _ in range(600 * (tau + 1)):
            path.append(path[-1] - eta * L * path[-1 - tau])
        low, high = (eta, high) if max(map(abs, path[-50:])) < 1 else (low, eta)
    return low


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("01.2", (4.93, 98.7, 2.02, 0)),
        ("02.1", simulated_share),
        ("04.2", simulated_rest),
        ("14.2", simulated_step),
        ("14.3", simulated_settling),
    ],
)
def test_what_is_right_by_simulation_is_right(id, answer):
    found = lessons.check(id, answer)
    assert found, repr(found)
