"""Checkers are fair: right answers of any kind pass, a constant is not told at once, a known mistake is named."""

from __future__ import annotations

import ast
import functools
import inspect

import numpy as np
import pytest
from test_exercises import MISTAKES, STUBS, answered, as_in_a_notebook  # noqa: F401
from variants import forms

from asyncfl_course import exercises, lessons

KNOWN = {id: one.mistakes for id, one in lessons.exercises().items() if one.mistakes}


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
def test_a_right_answer_is_right_in_any_form(id, as_in_a_notebook):  # noqa: F811
    tried = {name: lessons.check(id, form) for name, form in in_other_forms(answer_of(id), id)}
    assert {name: repr(found) for name, found in tried.items() if not found} == {}


CONSTANTS = {
    "00.1": "expected", "01.2": "", "01.4": "0.76", "02.4": "sevens", 
    "06.2": "there are two factors", "08.3": " seeds: ", "09.1": "248", "10.2": "99 others", "12.2": "expected",
    "13.5": "with their labels", "16.3": "most weights vanish", "16.4": "the record says",
}  # fmt: skip
"""Exercises that ask for a constant, and what a first wrong answer must not hear."""


@pytest.mark.parametrize("id", sorted(CONSTANTS))
def test_a_constant_is_not_told_before_the_second_try(id, as_in_a_notebook, monkeypatch):  # noqa: F811
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


@pytest.mark.parametrize("id", sorted(KNOWN))
def test_a_known_mistake_is_named(id, as_in_a_notebook):  # noqa: F811
    """Each mistake of tests/mistakes that only computes something else hears its own name, not another one's."""
    heard = [answered(STUBS[id], code).message for code in MISTAKES[id]]
    names = [next((name for name in KNOWN[id] if message.endswith(name)), None) for message in heard]
    assert any(names), heard
    assert len(set(filter(None, names))) == len(list(filter(None, names))), "two hear the same name"


def simulated_share(alpha, classes):
    return np.random.default_rng(1).dirichlet([alpha] * classes, 4_000).max(1).mean()


def simulated_rest(eta, share, sigma, buffer_size):
    rng, x, path = np.random.default_rng(1), 0.0, []
    for _ in range(30_000):
        x += eta * share * (rng.normal(0, sigma, buffer_size).mean() - x)
        path.append(x)
    return np.std(path[1_000:])


def simulated_luck(n):
    return np.random.default_rng(1).standard_normal((5_000, n)).max(1).mean()


def simulated_alarms(n, trials):
    import random

    draw = random.Random(1)
    a, b = ([[draw.gauss(50, 3) for _ in range(n)] for _ in range(5_000)] for _ in range(2))
    means = [np.mean(one) - np.mean(other) for one, other in zip(a, b, strict=True)]
    pooled = [np.sqrt((np.var(x, ddof=1) + np.var(y, ddof=1)) / 2) for x, y in zip(a, b, strict=True)]
    return np.mean(np.abs(means) > np.array(pooled))


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
        ("15.1", simulated_alarms),
        ("16.1", simulated_luck),
    ],
)
def test_what_is_right_by_simulation_is_right(id, answer):
    found = lessons.check(id, answer)
    assert found, repr(found)
