"""Checkers for lesson 18: a plan's seal, a control's proof, and three plans."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, expect
from asyncfl_course.referee import Plan, canonical, digest_of, grade
from asyncfl_lite.base.errors import AsyncFLError

asks_for(
    "18.1", "A seal", lambda content: digest_of(canonical(content)),
    cases=[
        ((content,),
         "return the hexadecimal SHA-256 of what json.dumps writes, in UTF-8; the order of names does not matter at "
         "any depth, but every value does")
        for content in (
            {"seeds": 10, "margin": 0.5},
            {"margin": 0.5, "seeds": 10},
            {"margin": 0.5, "seeds": 11},
            {"runs": {"seeds": 10, "level": 0.95}, "case": "α"},
            {"case": "α", "runs": {"level": 0.95, "seeds": 10}},
        )
    ],
    right="Sorted names make one text of a plan, so the same plan has the same seal, and any change shows.",
)  # fmt: skip


def _runs(weights: str, schedule: str, seeds: Sequence[int]) -> pd.DataFrame:
    """Return a table of runs, one per seed, with single letters as the digests of weights and schedule."""
    return pd.DataFrame({"weights_sha256": list(weights), "schedule_sha256": list(schedule)}, list(seeds))


@exercise("18.3", "Did the control act?")
def acted(answer: Any) -> str:
    """Check the answer on runs whose digests show whether the control changed the weights and nothing else."""
    treated = _runs("abc", "xyz", [0, 1, 2])
    cases = (
        (_runs("def", "xyz", [0, 1, 2]), True, "with every seed the weights differ and the schedule is the same"),
        (_runs("abc", "xyz", [0, 1, 2]), False, "with every seed the weights are the treated run's"),
        (_runs("dbf", "xyz", [0, 1, 2]), False, "with seed 1 the weights are the treated run's"),
        (_runs("def", "xyw", [0, 1, 2]), False, "with seed 2 other clients arrived, so more than one thing changed"),
        (_runs("cba", "zyx", [2, 1, 0]), False, "rows are in another order; by seed, weights and schedules agree"),
        (_runs("fed", "zyx", [2, 1, 0]), True, "rows are in another order; by seed, only the weights differ"),
        (_runs("def", "xyz", [7, 8, 9]), False, "the tables have no common seed, so they show nothing"),
    )
    for control, wanted, why in cases:
        given = bool(answer(treated, control))
        told = f"weights {list(control['weights_sha256'])}, schedules {list(control['schedule_sha256'])} of seeds "
        expect(
            given is wanted,
            f"A control with {told}{list(control.index)}, against weights ['a', 'b', 'c'], schedules ['x', 'y', 'z'] "
            f"of seeds [0, 1, 2]: your function says {given}, but should say {wanted}, because {why}.",
        )
    return "Other weights show that something changed, and the same schedule shows that not everything did."


def _planned(answer: Any, name: str) -> str:
    """Check that a plan's design gets full marks, and show the marks."""
    expect(isinstance(answer, Plan), f"Give a referee.Plan; your answer is a {type(answer).__name__}.")
    expect(answer.case == name, f"This plan is for the case {answer.case!r}, but the exercise asks for {name!r}.")
    try:
        found = grade(answer)
    except AsyncFLError as error:
        raise Wrong(f"The plan cannot be graded: {error}.") from None
    lost = " ".join(f"{line.name}: {line.says}" for line in found.lost)
    expect(not found.lost, f"{found.points} of {len(found.lines)} points. These lines are lost: {lost}")
    return f"\n{found!r}"


for _id, _name, _title in (
    ("18.2", "lead", "A plan for the lead"),
    ("18.4", "deaf", "A plan for a loss of nothing"),
    ("18.5", "weight", "A plan for half a point"),
):
    exercise(_id, _title)(partial(_planned, name=_name))
