"""The rule for verdicts, which uses differences paired by seed and intervals that stay valid when seeds are added.

**Looks.** A comparison begins with 10 seeds, and gets 16 and then 32 as long as it is open. Each look has its own
error level (1 %, 1.5 % and 2.5 %, 5 % in all), so its interval is wider than a 95 % interval, and all looks together
are wrong in at most 5 % of cases. A tier that has fewer than 10 seeds is looked at once, at 5 %. ``scaled`` p values
are multiplied so that their threshold is 5 % at every look.

**Verdict.** A difference is judged against a margin m, which is 0 or the printed gain. Equivalence comes first: the
verdict is ``equivalent`` if two one-sided tests (Schuirmann 1987) put the difference within ±1 point, or times within 5
%, even if the sign is certain. Otherwise the t interval decides: ``holds`` (lower end above m), ``reversed`` (upper end
below 0), ``fails`` (upper end below m, whatever the lower end is), or else ``open``. The p value of Wilcoxon's
signed-rank test is also reported.

**Two-sided words.** Of two cells that no claim orders, the first is ``above`` or ``below`` if the t interval excludes
0, "above (below) by less than a point" if it is equivalent as well, else ``equivalent`` or ``open``.

**Several comparisons.** A claim holds if all its parts hold, and is equivalent if all its parts are. Neither needs a
correction. Refutations by single parts are corrected by Holm's method (1979) over the parts. The claims of a family are
corrected by Benjamini and Hochberg's method (1995).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from asyncfl_reproduction.verdict_words import ABOVE, BELOW, EQUIVALENT, FAILS, HOLDS, LITTLE, OPEN, REVERSED

FEWEST_SEEDS = 3
ERROR_LEVEL = 0.05
LOOKS = {10: 0.01, 16: 0.015, 32: 0.025}
"""Number of seeds at a look -> its error level; the levels sum to :data:`ERROR_LEVEL`."""
EQUAL_POINTS = 0.01
"""Difference of accuracies, as a fraction, below which they are equivalent."""
EQUAL_SHARE = 0.05
"""Relative difference of times below which they are equivalent."""
EQUAL_RATIO = math.log(1 + EQUAL_SHARE)
SAME = 1e-9
"""Range below which all differences count as equal, because only rounding separates them."""


class Contrast(NamedTuple):
    """One comparison, paired by seed.

    Attributes:
        name: what is compared, such as ``fedecho against fedbuff``.
        unit: ``points`` (of accuracies, which are fractions), ``log ratio`` (of times), or empty.
        mean: mean of the differences, in the unit of the numbers.
        low: lower end of the interval at the look's level; −inf if it is unbounded.
        high: upper end; inf if it is unbounded.
        level: 1 − the look's error level, such as 0.99 with ten seeds.
        seeds: number of seeds that both sides have.
        margin: the difference has to exceed it.
        p: two-sided p value of the t test against the margin, or against 0 if the mean is at most a positive margin;
            with a negative margin, at most ``equal``; for the claim that nothing differs, see :func:`as_equality`.
        wilcoxon: two-sided p value of the signed-rank test against zero.
        equal: p value of the two one-sided tests that the difference lies within the bounds of equality.
        apart: two-sided p value of the t test that the difference lies beyond these bounds.
        below: one-sided p value of the test that the difference is below the margin.
        verdict: the verdict.
    """

    name: str
    unit: str
    mean: float
    low: float
    high: float
    level: float
    seeds: int
    margin: float
    p: float
    wilcoxon: float
    equal: float
    apart: float
    below: float
    verdict: str

    @property
    def scaled(self) -> float:
        """The p value behind the verdict, rescaled so that its threshold is 5 % at each look."""
        on = {EQUIVALENT: self.equal, FAILS: min(1.0, 2 * self.below)}
        return scaled(on.get(self.verdict, self.p), self.seeds)

    @property
    def side(self) -> str:
        """Where the first side lies, if no claim orders the two: above, below, equivalent or open.

        Example:
            >>> contrast(np.array([0.004, 0.005, 0.006, 0.005]), "").side
            'above by less than a point'
        """
        equal = self.equal <= 1 - self.level
        if self.low > 0 or self.high < 0:
            return (ABOVE if self.low > 0 else BELOW) + LITTLE * equal
        return EQUIVALENT if equal else OPEN


def level_at(seeds: int) -> float:
    """Return the error level of the interim look at this many seeds, or the whole 5 % before the first look."""
    reached = [look for look in LOOKS if look <= seeds]
    return LOOKS[reached[-1]] if reached else ERROR_LEVEL


def scaled(p: float, seeds: int) -> float:
    """Rescale a p value so that :data:`ERROR_LEVEL` is its threshold at every look."""
    return min(1.0, p * ERROR_LEVEL / level_at(seeds))


def contrast(
    differences: np.ndarray,
    name: str,
    margin: float = 0.0,
    *,
    unit: str = "points",
    equal: float | None = EQUAL_POINTS,
    bounds: tuple[bool, bool] = (True, True),
    alpha: float | None = None,
) -> Contrast:
    """Judge whether two methods differ, from one difference per seed.

    Args:
        differences: ``(seeds,)``; a seed that is NaN counts as not run.
        name: what is compared.
        margin: the mean has to exceed it; negative if the claim is "not below by more than this".
        unit: see :class:`Contrast`.
        equal: half the width of the region of equality, in the unit of the differences; None if none is defined.
        bounds: whether the numbers bound the mean from below and from above; censored numbers may not.
        alpha: the error level if there is only one look; by default that of the look at this many seeds.

    Returns:
        The comparison. With fewer than three seeds, or if one number is infinite, the verdict is ``open`` and the
        interval is unbounded. If all differences are the same, there is no deviation to judge by, so p is that of the
        sign test, 2^(1 − seeds).
    """
    differences = np.asarray(differences, float)
    differences = differences[~np.isnan(differences)]
    seeds = len(differences)
    alpha = level_at(seeds) if alpha is None else alpha
    if seeds < FEWEST_SEEDS or np.isinf(differences).any():
        mean = float(differences.mean()) if seeds else math.nan
        ends = (-math.inf, math.inf, 1 - alpha, seeds, margin)
        return Contrast(name, unit, mean, *ends, 1.0, 1.0, 1.0, 1.0, 1.0, OPEN)
    mean = float(differences.mean())
    low, high = interval(differences, 1 - alpha)
    low, high = (low if bounds[0] else -math.inf), (high if bounds[1] else math.inf)
    p = two_sided(differences, margin if margin <= 0 or mean > margin else 0.0)
    within = equivalence(differences, equal) if equal is not None and all(bounds) else 1.0
    apart = 1.0 if equal is None else min(1.0, 2 * one_sided(differences, math.copysign(equal, mean), _beyond(mean)))
    below = one_sided(differences, margin, "less") if bounds[1] else 1.0
    p = min(p, within) if margin < 0 else p
    tests = p, signed_rank(differences), within, apart, below
    verdict = judge(low, high, within <= alpha, margin)
    return Contrast(name, unit, mean, low, high, 1 - alpha, seeds, margin, *tests, verdict)


def _beyond(mean: float) -> str:
    return "greater" if mean > 0 else "less"


def judge(low: float, high: float, equal: bool, margin: float = 0.0) -> str:
    """Return the verdict on a difference, given its interval: first whether it is equivalent, then its direction.

    A negative margin means "not below by more than this", and must be at least as wide as the bound of equality. Then
    ``reversed`` means below the margin, and an equivalent difference ``holds``.
    """
    if equal:
        return HOLDS if margin < 0 else EQUIVALENT
    if low > margin:
        return HOLDS
    if high < min(0.0, margin):
        return REVERSED
    return FAILS if high < margin else OPEN


def as_level(low: float, high: float, equal: bool, bound: float) -> str:
    """Return the verdict on the claim that nothing differs, which holds if the two are equivalent.

    It is reversed if the interval lies outside the region of equality, ± ``bound``.
    """
    if equal:
        return HOLDS
    return REVERSED if low > bound or high < -bound else OPEN


def as_equality(found: Contrast, bound: float) -> Contrast:
    """Return the comparison with its verdict on the claim that the two methods do not differ.

    Its p value is that of equivalence, or, if the claim is reversed, that of a difference beyond the bounds.
    """
    verdict = as_level(found.low, found.high, found.equal <= 1 - found.level, bound)
    return found._replace(verdict=verdict, p=found.apart if verdict == REVERSED else found.equal)


def interval(differences: np.ndarray, level: float) -> tuple[float, float]:
    """Return the limits of the t interval for the mean of ``(seeds,)`` differences."""
    if np.ptp(differences) <= SAME:
        decided = _sign(len(differences)) < 1 - level
        middle = float(differences.mean())
        return (middle, middle) if decided else (-math.inf, math.inf)
    half = special.stdtrit(len(differences) - 1, (1 + level) / 2) * _error(differences)
    return float(differences.mean() - half), float(differences.mean() + half)


def _error(differences: np.ndarray) -> float:
    return float(differences.std(ddof=1)) / math.sqrt(len(differences))


def _sign(seeds: int) -> float:
    """Return the sign test's two-sided p value if the differences of all seeds have the same sign."""
    return 2.0 ** (1 - seeds)


def one_sided(differences: np.ndarray, bound: float, side: str) -> float:
    """Return the p value of the t test that the mean is ``side`` ("less" or "greater") than ``bound``."""
    aside = float(differences.mean() - bound) * (1 if side == "greater" else -1)
    if np.ptp(differences) <= SAME:
        return _sign(len(differences)) / 2 if aside > SAME else 1.0
    return float(special.stdtr(len(differences) - 1, -aside / _error(differences)))


def two_sided(differences: np.ndarray, bound: float = 0.0) -> float:
    """Return the p value of the two-sided t test that the mean is not ``bound``."""
    return min(1.0, 2 * min(one_sided(differences, bound, side) for side in ("less", "greater")))


def equivalence(differences: np.ndarray, bound: float) -> float:
    """Return the p value of two one-sided tests that the mean lies within ± ``bound``."""
    return max(one_sided(differences, -bound, "greater"), one_sided(differences, bound, "less"))


def signed_rank(differences: np.ndarray) -> float:
    """Return the two-sided p value of Wilcoxon's signed-rank test; 1 if all differences are zero."""
    moved = differences[np.abs(differences) > SAME]
    if not len(moved):
        return 1.0
    tied = len(np.unique(np.abs(moved))) < len(moved)  # scipy's default would try all permutations for a second
    return float(stats.wilcoxon(moved, method="asymptotic" if tied else "exact").pvalue)


def log_ratios(
    faster: np.ndarray, slower: np.ndarray, ends: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, tuple[bool, bool]]:
    """Return, by seed, the log ratio of ``slower`` to ``faster``, which is positive if ``faster`` was sooner.

    A run that never reaches its target is censored at its end. The other run's lead is then at least the one computed
    with this end, and 0 if that shows no lead. If both never reach the target, their ratio counts as 1. So a censored
    log ratio is never further from 0 than the true one. If with some seed only ``slower`` misses the target, the mean
    is bounded only from below; if only ``faster`` misses it, the mean is bounded only from above.

    Args:
        faster: ``(seeds,)`` times, infinite where the target was not reached.
        slower: the other side's times, with the same seeds.
        ends: the times at which the two sides' runs ended, ``(seeds,)`` each.

    Returns:
        ``(seeds,)`` log ratios, and whether they bound their mean from below and from above.
    """
    never = np.isinf(faster), np.isinf(slower)
    first, second = (np.where(gone, end, time) for gone, end, time in zip(never, ends, (faster, slower), strict=True))
    ratios = np.log(second / first)
    ratios = np.where(never[1] & ~never[0], np.maximum(ratios, 0), ratios)
    ratios = np.where(never[0] & ~never[1], np.minimum(ratios, 0), ratios)
    ratios = np.where(never[0] & never[1], 0.0, ratios)
    return ratios, (not (never[0] & ~never[1]).any(), not (never[1] & ~never[0]).any())


def deviation(values: np.ndarray) -> float:
    """Return the sample standard deviation, or 0 for a single value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def holm(p: Sequence[float]) -> np.ndarray:
    """Adjust p values by Holm's method; values that are NaN (not run) stay NaN and do not count."""
    return _adjusted(p, _step_down)


def benjamini_hochberg(p: Sequence[float]) -> np.ndarray:
    """Adjust p values by Benjamini and Hochberg's method.

    If the hypotheses with adjusted values below 5 % are rejected, at most 5 % of the rejections are false on average.
    """
    return _adjusted(p, stats.false_discovery_control)


def _adjusted(p: Sequence[float], adjust: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    values = np.array(p, float)
    known = ~np.isnan(values)
    values[known] = adjust(values[known]) if known.any() else values[known]
    return values


def _step_down(p: np.ndarray) -> np.ndarray:
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def within_a_claim(parts: Sequence[Contrast]) -> list[tuple[str, float]]:
    """Return each part's verdict and p value, corrected for a claim that needs all parts to hold.

    A verdict that refutes a part stands only if its p value passes Holm's correction over all parts, for each kind of
    refutation; otherwise the part is open here. ``holds`` needs no correction, since the claim needs all parts to
    hold; nor does ``equivalent`` if all parts are. Each p value has the threshold 5 %.
    """
    verdicts, p = [part.verdict for part in parts], np.array([part.scaled for part in parts])
    for refuted in (REVERSED, FAILS, *([EQUIVALENT] if set(verdicts) != {EQUIVALENT} else [])):
        those = np.array([verdict == refuted for verdict in verdicts], bool)
        p = np.where(those, holm(np.where(those, p, 1.0)), p)
    return [
        (OPEN if verdict in (REVERSED, FAILS, EQUIVALENT) and one > ERROR_LEVEL else verdict, float(one))
        for verdict, one in zip(verdicts, p, strict=True)
    ]


def simulated_error_rates(
    shift: float = 1.0, correlation: float = 0.0, trials: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Simulate how often decision rules see a difference that does not exist, and how often they detect a real one.

    Two methods' accuracies are normal with deviation 1 over seeds, with this correlation at the same seed. The real
    difference is ``shift`` deviations. The old rule says that the methods differ if their means are more than one
    pooled deviation apart. Our rule looks at 10, then 16, then 32 pairs until its interval excludes 0.

    Returns:
        One row per rule: rule, seeds, and two shares of the trials: false_alarms (the rule sees a difference, in either
        direction, although there is none) and power (the rule sees the true difference, in the right direction).
    """
    draws = np.random.default_rng(seed).standard_normal((2, trials, max(LOOKS)))
    second = correlation * draws[0] + math.sqrt(1 - correlation**2) * draws[1]

    def by_pooled_deviation(better: np.ndarray, seeds: int) -> np.ndarray:
        left, right = better[:, :seeds], second[:, :seeds]
        return (left.mean(1) - right.mean(1)) / np.sqrt((left.var(1, ddof=1) + right.var(1, ddof=1)) / 2)

    def by_interval(better: np.ndarray, seeds: int) -> np.ndarray:
        found = stats.ttest_1samp((better - second)[:, :seeds], 0.0, axis=1).confidence_interval(1 - level_at(seeds))
        return (found.low > 0) * 2.0 - (found.high < 0) * 2.0

    def by_looks(better: np.ndarray, _: int) -> np.ndarray:
        said = np.zeros(trials)
        for look in LOOKS:
            said = np.where(said == 0, by_interval(better, look), said)
        return said

    rules = [("one pooled deviation", by_pooled_deviation, n) for n in (3, 10, 32)]
    rules += [("one look at 5 %", by_interval, 3), ("first look", by_interval, min(LOOKS))]
    rules += [("looks at " + ", ".join(map(str, LOOKS)), by_looks, max(LOOKS))]
    rows = [
        (name, n, float((np.abs(rule(draws[0], n)) > 1).mean()), float((rule(draws[0] + shift, n) > 1).mean()))
        for name, rule, n in rules
    ]
    return pd.DataFrame(rows, columns=["rule", "seeds", "false_alarms", "power"])
