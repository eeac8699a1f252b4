"""Exercises of lesson 15: judging differences over seeds."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from asyncfl_course.exercises import asks_for
from asyncfl_course.records import rule


def _alarms(n: int, scale: float = 1.0) -> float:
    """Return the probability that two equal methods' means differ by over ``scale`` pooled standard deviations."""
    return 2 * stats.t.sf(scale * math.sqrt(n / 2), 2 * n - 2)


asks_for(
    "15.1", "How often a method differs from itself", lambda n, trials: _alarms(n),
    cases=[
        ((n, 20_000),
         "return a share, not percent; count differences in either direction, and divide the squares of each side by "
         "seeds - 1 (ddof=1) before you average the two variances and take the root")
        for n in (3, 5, 10)
    ],
    atol=0.012,  # six standard deviations of a simulated share
    rtol=0.03,
    right="With three seeds the deviation is itself mostly luck, so equal methods often look different.",
    mistakes={
        "You count differences in one direction only; take the absolute value.":
            lambda n, trials: _alarms(n) / 2,
        "Divide the squares by n − 1 (ddof=1).":
            lambda n, trials: _alarms(n, math.sqrt((n - 1) / n)),
        "You divide the deviation by √n; the rule compares with the deviation of a run.":
            lambda n, trials: _alarms(n, 1 / math.sqrt(n)),
        "This is in percent; a share is asked for.":
            lambda n, trials: 100 * _alarms(n),
    },
)  # fmt: skip


def _ends(d: np.ndarray, half: float) -> tuple[float, float]:
    return d.mean() - half, d.mean() + half


def _t(d: np.ndarray, quantile: float) -> float:
    return float(stats.t.ppf(quantile, len(d) - 1))


asks_for(
    "15.2", "The interval of a mean", rule.interval,
    cases=[
        ((np.array(differences), level),
         "the half width is the quantile (1 + level) / 2 of t with n - 1 degrees of freedom, times s / √n with ddof=1; "
         "return (low, high)")
        for differences, level in (
            ([2.0, 4.0, 6.0], 0.95), ([0.4, -1.2, 0.3, 2.1, -0.6], 0.99), ([1.0, 3.0], 0.95), ([5.0, 1.0] * 5, 0.5),
        )
    ],
    right="The t quantile pays for not knowing the deviation, and the root of n for averaging.",
    mistakes={
        "You used the normal distribution; with few seeds the t distribution is wider.":
            lambda d, level: _ends(d, stats.norm.ppf((1 + level) / 2) * d.std(ddof=1) / len(d) ** 0.5),
        "This quantile leaves 1 − level on one side; half of that belongs on each.":
            lambda d, level: _ends(d, _t(d, level) * d.std(ddof=1) / len(d) ** 0.5),
        "Your deviation divides by n; divide by n − 1 (ddof=1).":
            lambda d, level: _ends(d, _t(d, (1 + level) / 2) * d.std() / len(d) ** 0.5),
        "This is the interval of one difference; the interval of their mean is narrower by a factor of √n.":
            lambda d, level: _ends(d, _t(d, (1 + level) / 2) * d.std(ddof=1)),
    },
)  # fmt: skip


def _seeds_needed(points: float, deviation: float) -> int:
    """Return the smallest number of seeds with which a paired t test at 5 % has a power of 80 %."""
    for seeds in range(2, 10_000):
        bar, centre = stats.t.isf(0.025, seeds - 1), points / deviation * np.sqrt(seeds)
        if stats.nct.sf(bar, seeds - 1, centre) >= 0.8:
            return seeds
    raise ValueError("more than 10,000 seeds")


asks_for(
    "15.3", "How many seeds a difference needs", _seeds_needed,
    cases=[
        (inputs,
         "power takes the difference in deviations, points / deviation; return the first n, from 2 on, at which the "
         "power is at least 0.8")
        for inputs in ((2.0, 2.0), (5.0, 4.0), (1.0, 3.0), (9.0, 2.0))
    ],
    right="Power depends on the difference in deviations only, times the root of n.",
)  # fmt: skip

asks_for(
    "15.4", "The verdict of an interval", rule.judge,
    cases=[
        ((0.5, 3.0, False, 0.0), "the whole interval is above the margin"),
        ((-3.0, -0.5, False, 0.0), "the whole interval is below 0"),
        ((-1.6, 0.6, False, 0.0), "an interval that contains 0 shows nothing by itself"),
        ((-0.4, 0.3, True, 0.0), "both one-sided tests put the difference within a point"),
        ((3.1, 10.6, False, 25.0), "it is surely above 0, and surely below the claimed gain"),
        ((-1.6, 3.6, False, 7.0), "it may be zero or negative, but it is surely not the claimed gain"),
        ((-0.4, 0.3, True, 7.0), '"within a point" says more than "below the margin", and comes first'),
        ((0.1, 0.6, True, 7.0), "it is within a point, even if the sign is sure"),
        ((3.1, 30.0, False, 25.0), "it may be above the margin or below it"),
        ((26.0, 30.0, False, 25.0), "the whole interval exceeds the margin"),
        ((0.1, 0.6, True, 0.0), "equivalence comes first: a difference can be sure and smaller than a point"),
        ((-0.6, -0.1, True, 0.0), "equivalence comes first, whichever method is ahead"),
    ],
    right="Equivalence is asked first, so a certain but tiny difference is no lead.",
)  # fmt: skip


def _stepped(p: np.ndarray) -> np.ndarray:
    return np.sort(p) * np.arange(len(p), 0, -1)


asks_for(
    "15.5", "Holm's correction", rule.holm,
    cases=[
        ((np.array(values),),
         "multiply the smallest by k, the next by k - 1, and so on; none may be below the one before it, or above 1; "
         "return them in the order in which they came")
        for values in ([0.01, 0.04, 0.02, 0.3], [0.01, 0.011, 0.012], [0.5, 0.6], [0.02, 0.02, 0.02, 0.02])
    ],
    right="Only the smallest value pays for all tests; each later one pays for those that are left.",
    mistakes={
        "This is Bonferroni's correction, every value times k; Holm multiplies by k, k − 1, and so on.":
            lambda p: np.minimum(1, len(p) * p),
        "A value may not fall below the one before it: take the running maximum.":
            lambda p: np.minimum(1, _stepped(p))[np.argsort(np.argsort(p))],
        "You gave them back sorted; give them back in the order in which they came.":
            lambda p: np.minimum(1, np.maximum.accumulate(_stepped(p))),
    },
)  # fmt: skip
