"""Checkers for lesson 17: the location of a bug, and invariants that detect it."""

from __future__ import annotations

from functools import partial
from typing import Any

from asyncfl_course.exercises import exercise
from asyncfl_course.expectations import expect, shown
from asyncfl_course.zoo.cards import AT_LEAST, NAMING, REST, WRITING
from asyncfl_course.zoo.exhibits import EXHIBITS, SHELVES, grade


def named(letters: str, answer: Any) -> str:
    """Check which suspect the answer names for each bug, and return the bugs as diffs once all names are right."""
    expect(
        isinstance(answer, dict) and set(answer) == set(letters),
        f"Give a dictionary with the keys {', '.join(letters)}; your answer is {shown(answer)}.",
    )
    given = {letter: str(name).strip().lower() for letter, name in answer.items() if name is not ...}
    right = [letter for letter, name in given.items() if name == EXHIBITS[letter].place]
    found = f"{', '.join(right)} found. " if right else ""
    for letter, name in given.items():
        one = EXHIBITS[letter]
        expect(name in one.suspects, f"{name!r} is not a suspect of {letter}, but {', '.join(one.suspects)} are.")
        expect(name == one.place, f"{found}{letter} is not {name!r}. {one.look}")
    if left := [letter for letter in letters if letter not in given]:
        raise NotImplementedError(f"{found}Replace the dots of {', '.join(left)} with the name of a suspect.")
    return "\n\n".join(f"{EXHIBITS[letter].reveal()}\n{EXHIBITS[letter].known}".rstrip() for letter in letters)


for (_id, _letters), _shelf in zip(NAMING.items(), SHELVES, strict=True):
    exercise(_id, f"What is wrong with {_letters[0]}, {_letters[1]}, {_letters[2]}: {_shelf}")(partial(named, _letters))
for _id, _letter in WRITING.items():
    exercise(_id, f"An invariant for {_letter}")(partial(grade, _letter))


@exercise(REST, "Three more invariants")
def rest(answer: Any) -> str:
    """Grade each of the reader's invariants on the exhibit that it was written for."""
    left = sorted(set(EXHIBITS) - set(WRITING.values()))
    expect(
        isinstance(answer, dict) and set(answer) <= set(left),
        f"Give a dictionary of invariants, with keys among {', '.join(left)}; your answer is {shown(answer)}.",
    )
    if not answer:
        raise NotImplementedError(f"Write an invariant for {AT_LEAST} of {', '.join(left)}, each under its letter.")
    grades = [grade(letter, invariant) for letter, invariant in sorted(answer.items())]
    expect(len(answer) >= AT_LEAST, f"{' '.join(grades)} Write at least {AT_LEAST}.")
    return "\n".join(grades)
