"""Checkers for lesson 08: leads over the best rival, a control that works, and results on unlabelled photographs."""

from __future__ import annotations

from typing import Any

import pandas as pd

from asyncfl_course.evidence import in_column
from asyncfl_course.exercises import exercise
from asyncfl_course.expectations import Wrong, call, expect, expect_close, shown, word
from asyncfl_course.records import HOLDS, PLAIN, RATE_1, TUNED

PHOTOGRAPHS = "real/cifar10_jpeg75"


@exercise(
    "08.1", "The lead over the best other",
    mistakes={
        "Your own rows are among the rivals: leave them out before you take the best.":
            lambda table, ours: (table.loc[ours] - table.max()).to_numpy(),
        "You subtract the mean of the others; the claim is about the best of them.":
            lambda table, ours: (table.loc[ours] - table.drop(index=ours).mean()).to_numpy(),
        "You subtract one fixed row; the best rival may be another one in each column.":
            lambda table, ours: (table.loc[ours] - table.iloc[0]).to_numpy(),
    },
)  # fmt: skip
def lead(answer: Any) -> str:
    """Check the leads for several rivals, for a method that is behind, and for rows in a different order."""
    table = pd.DataFrame({"a": [50.0, 60.0, 75.0, 74.0], "b": [70.0, 40.0, 69.0, 71.0]}, index=["F", "G", "E1", "E2"])
    cases = [
        (table, ["E1", "E2"], "each column may have a different best rival, and E1 and E2 are not rivals"),
        (table, ["F"], "if ours is below the best other row, the lead is negative"),
        (table[["b"]].iloc[::-1], ["E2", "E1"], "rows and columns are found by name, not by position"),
    ]
    for number, (given, ours, because) in enumerate(cases, start=1):
        where = f"table {number}, rows {given.index.tolist()}, columns {given.columns.tolist()}, ours {ours}: {because}"
        found = call(answer, given.copy(), list(ours))
        expect(isinstance(found, pd.DataFrame), f"lead gives a {type(found).__name__}, not a DataFrame; {where}.")
        named = set(found.index) == set(ours) and set(found.columns) == set(given.columns)
        expect(named, f"lead gives rows {found.index.tolist()}, columns {found.columns.tolist()}; {where}.")
        wanted = (given.loc[ours] - given.drop(index=ours).max()).to_numpy()
        expect_close(found.loc[ours, given.columns].to_numpy(), None, wanted, called="The lead", because=where,
                     of=(given, list(ours)))  # fmt: skip
    return "A method's own variants are no rivals, and the best rival may differ from column to column."


@exercise("08.2", "Was it deaf?")
def is_deaf(answer: Any) -> str:
    """Check the answer for a control that works, plain FedEcho, two faulty stores and a run that ends too soon."""
    heard = [{1}, {1, 2}, {1, 2, 9}, {1, 2, 3, 9}]
    cases = [
        ("a control that works", [{1}, {1, 2}, {1, 2}, {1, 2, 3}], heard, {8, 9}, True, "only stragglers are missing"),
        ("plain FedEcho", heard, heard, {8, 9}, False, "client 9, a straggler, is stored from the third version on"),
        ("a store that is always empty", [set()] * 4, heard, {8, 9}, False, "clients 1, 2 and 3 are also missing"),
        ("one that forgot client 1", [{1}, {1, 2}, {2}, {2, 3}], heard, {8, 9}, False, "client 1 is not a straggler"),
        ("a run that ended too soon", heard[:2], heard[:2], {8, 9}, False, "no straggler reports, so it shows nothing"),
    ]
    for name, stored, so_far, stragglers, wanted, because in cases:
        copies = [set(one) for one in stored], [set(one) for one in so_far], set(stragglers)
        given = bool(call(answer, *copies))
        inputs = f"stored {stored}, heard {so_far}, stragglers {stragglers}"
        expect(given == wanted, f"For {name} ({inputs}) is_deaf gives {given}, expected {wanted}: {because}.")
    return "A control must show that it shut out the stragglers, all of them, and nobody else."


@exercise("08.3", "And on photographs?")
def above_fedbuff(answer: Any) -> str:
    """Compare the answer with the recorded results, and name the column that it gets wrong."""
    plain = PLAIN[RATE_1]
    named = {"plain": {plain}, TUNED: {TUNED}, "both": {plain, TUNED}, "neither": set()}
    said = word(answer, named, f"One of {', '.join(named)} is expected, not {shown(answer)}.")
    for column in (plain, TUNED):
        recorded = in_column("real", column, "real")
        found = recorded.above(f"{PHOTOGRAPHS}/fedecho-natural", f"{PHOTOGRAPHS}/fedbuff")
        if (column in named[said]) != (found.verdict == HOLDS):
            looks = "Noise at both rates was in the last section. What does tuning do to the baseline there?"
            raise Wrong(f"Not {said!r}. {column}: {found.detail}: {found.verdict}.", f"Not {said!r}. {looks}")
    return "Most of the lead was plain FedBuff's own setting, here as on digits."
