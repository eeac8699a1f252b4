"""Checkers for lesson 15: judging differences over seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from asyncfl_course.exercises import exercise
from asyncfl_course.expectations import expect_close, expect_equal
from asyncfl_course.records import rule

TRIALS, SLACK = 20_000, 0.02
"""Number of simulated comparisons, and the tolerance of their share: six of its standard deviations."""


@exercise("15.1", "How often a method differs from itself")
def false_alarms(answer: Any) -> str:
    """Compare the answer with the exact share of false alarms, from a t distribution."""
    for seeds in (3, 5, 10):
        exact = 2 * stats.t.sf(np.sqrt(seeds / 2), 2 * seeds - 2)
        expect_close(
            answer,
            (seeds, TRIALS),
            exact,
            atol=SLACK,
            rtol=0,
            because="return a share, not percent; count differences in either direction, and divide the squares of "
            "each side by seeds - 1 (ddof=1) before you average the two variances and take the root",
        )
    return "With three seeds the deviation is itself mostly luck, so equal methods often look different."


@exercise("15.2", "The interval of a mean")
def interval(answer: Any) -> str:
    """Compare the answer with the package's confidence interval of a mean."""
    cases = [([2.0, 4.0, 6.0], 0.95), ([0.4, -1.2, 0.3, 2.1, -0.6], 0.99), ([1.0, 3.0], 0.95), ([5.0, 1.0] * 5, 0.5)]
    for differences, level in cases:
        given = np.array(differences)
        expect_close(
            answer,
            (given, level),
            rule.interval(given, level),
            because="the half width is the quantile (1 + level) / 2 of t with n - 1 degrees of freedom, times "
            "s / √n with ddof=1; return (low, high)",
        )
    return "The t quantile pays for not knowing the deviation, and the root of n for averaging."


def _seeds_needed(points: float, deviation: float) -> int:
    """Return the smallest number of seeds with which a paired t test at 5 % has a power of 80 %."""
    for seeds in range(2, 10_000):
        bar, centre = stats.t.isf(0.025, seeds - 1), points / deviation * np.sqrt(seeds)
        if stats.nct.sf(bar, seeds - 1, centre) >= 0.8:
            return seeds
    raise ValueError("more than 10,000 seeds")


@exercise("15.3", "How many seeds a difference needs")
def seeds_needed(answer: Any) -> str:
    """Compare the answer with the number of seeds that the noncentral t distribution requires."""
    for points, deviation in ((2.0, 2.0), (5.0, 4.0), (1.0, 3.0), (9.0, 2.0)):
        expect_equal(
            answer,
            (points, deviation),
            _seeds_needed(points, deviation),
            because="power takes the difference in deviations, points / deviation; return the first n, from 2 on, at "
            "which the power is at least 0.8",
        )
    return "Power depends on the difference in deviations only, times the root of n."


@exercise("15.4", "The verdict of an interval")
def verdict(answer: Any) -> str:
    """Compare the answer with the package's verdict on an interval."""
    cases = {
        (0.5, 3.0, False, 0.0): "the whole interval is above the margin",
        (-3.0, -0.5, False, 0.0): "the whole interval is below 0",
        (-1.6, 0.6, False, 0.0): "an interval that contains 0 shows nothing by itself",
        (-0.4, 0.3, True, 0.0): "both one-sided tests put the difference within a point",
        (3.1, 10.6, False, 25.0): "it is surely above 0, and surely below the claimed gain",
        (-1.6, 3.6, False, 7.0): "it may be zero or negative, but it is surely not the claimed gain",
        (-0.4, 0.3, True, 7.0): '"within a point" says more than "below the margin", and comes first',
        (0.1, 0.6, True, 7.0): "it is within a point, even if the sign is sure",
        (3.1, 30.0, False, 25.0): "it may be above the margin or below it",
        (26.0, 30.0, False, 25.0): "the whole interval exceeds the margin",
        (0.1, 0.6, True, 0.0): "equivalence comes first: a difference can be sure and smaller than a point",
        (-0.6, -0.1, True, 0.0): "equivalence comes first, whichever method is ahead",
    }
    for (low, high, equal, margin), why in cases.items():
        expect_equal(answer, (low, high, equal, margin), rule.judge(low, high, equal, margin), because=why)
    return "Equivalence is asked first, so a certain but tiny difference is no lead."


@exercise("15.5", "Holm's correction")
def holm(answer: Any) -> str:
    """Compare the answer with the package's Holm correction."""
    cases = ([0.01, 0.04, 0.02, 0.3], [0.01, 0.011, 0.012], [0.5, 0.6], [0.02, 0.02, 0.02, 0.02])
    for values in cases:
        given = np.array(values)
        expect_close(
            answer,
            (given,),
            rule.holm(given),
            because="multiply the smallest by k, the next by k - 1, and so on; none may be below the one before it, or "
            "above 1; return them in the order in which they came",
        )
    return "Only the smallest value pays for all tests; each later one pays for those that are left."
