"""Checkers for lesson 16: the luckiest of several tries, mean ranks, and statements that intervals support."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from asyncfl_course.evidence import in_column
from asyncfl_course.exercises import Wrong, exercise
from asyncfl_course.expectations import expect_close, letters
from asyncfl_course.records import EQUIVALENT, FIXED, HOLDS, REVERSED, TUNED


@exercise("16.1", "The luckiest of n tries")
def luckiest(answer: Any) -> None:
    """Compare the answer with the mean of the largest of n standard normal numbers."""
    x = np.linspace(-9, 9, 20_001)
    for tries in (1, 2, 6, 60):
        mean = np.trapezoid(x * tries * stats.norm.pdf(x) * stats.norm.cdf(x) ** (tries - 1), x)
        expect_close(
            answer,
            (tries,),
            round(mean, 4) + 0.0,
            atol=0.05,
            rtol=0,
            because="draw n scores from the same normal distribution, keep the largest, and average that over many "
            "repetitions",
        )


@exercise("16.2", "Mean ranks")
def mean_ranks(answer: Any) -> None:
    """Compare the answer with the mean rank of each column; the largest number of a row has rank 1."""
    tables = (
        [[70.0, 72.0, 75.0], [60.0, 66.0, 64.0]],
        [[80.0, 80.0, 60.0]],
        [[50.0, 40.0], [10.0, 30.0], [20.0, 20.0]],
    )
    for rows in tables:
        table = np.array(rows)
        expect_close(
            answer,
            (table,),
            stats.rankdata(-table, axis=1).mean(axis=0),
            because="rank within each row, with 1 for the largest number; equal numbers share the mean of their ranks; "
            "then average over the rows, so that each column gets one number",
        )


@exercise("16.3", "The critical difference")
def critical_difference(answer: Any) -> None:
    """Compare the answer with Demšar's equation for Nemenyi's test."""
    for methods, blocks in ((5, 12), (3, 4), (5, 2)):
        q = stats.studentized_range.ppf(0.95, methods, np.inf) / np.sqrt(2)
        expect_close(
            answer,
            (methods, blocks),
            q * np.sqrt(methods * (methods + 1) / (6 * blocks)),
            because="q is the studentised range's quantile over √2, and a mean rank over n blocks has the variance "
            "k(k + 1) / 12n",
            rtol=1e-3,  # printed tables of q have three decimals
        )


STATEMENTS = {
    "A": ("overlaid_mnist/large", "fedecho", TUNED, HOLDS),
    "B": ("overlaid_mnist/large", "fedadt", TUNED, REVERSED),
    "C": ("overlaid_mnist/large", "fedrevive", TUNED, EQUIVALENT),
    "D": ("overlaid_mnist/uniform", "fedrevive", TUNED, EQUIVALENT),
    "E": ("overlaid_mnist/large", "kuiper", FIXED, HOLDS),
    "F": ("overlaid_mnist/large", "kuiper", TUNED, HOLDS),
}
"""Statement -> setting, method, column, and the verdict on "it is above FedBuff" that supports it."""


@exercise("16.4", "What the record supports")
def supported(answer: Any) -> None:
    """Check which lettered statements the recorded intervals support."""
    asked = f"Your answer {answer!r} is not a set of letters; give one such as {{'A', 'B'}}."
    chosen = letters(answer, "".join(STATEMENTS), asked)
    for letter, (place, method, column, wanted) in STATEMENTS.items():
        measured = in_column("league", column, "league")
        found = measured.above(f"league/{place}/{method}", f"league/{place}/fedbuff")
        told = f"{letter}: the record says {found.verdict} ({found.detail})"
        looks = f"{letter}: read its interval and its verdict again."
        if found.verdict == wanted and letter not in chosen:
            raise Wrong(f"You left out {told}, which supports it.", f"You left out {looks}")
        if found.verdict != wanted and letter in chosen:
            raise Wrong(f"You took {told}, which does not support it.", f"You took {looks}")
