"""The rule for verdicts, which uses differences paired by seed and intervals that stay valid when seeds are added.

**Looks.** A comparison begins with 10 seeds and gets 16, then 32, while it is undecided. Each look has its own error
level (1 %, 1.5 %, 2.5 %, in all 5 %), so its interval is wider than 95 %, and all looks together are wrong in at most
5 % of cases. A tier that has fewer than 10 seeds is looked at once, at 5 %. ``scaled`` p values are multiplied such
that 5 % is the bar at every look.

**Verdict** of a difference against a margin m (0, or the printed gain). Level comes first: ``level`` if two one-sided
tests (Schuirmann 1987) put it within ±1 point, or times within 5 %, also where its sign is sure. Only then the t
interval is asked: ``holds`` (lower end above m), ``reversed`` (upper end below 0), ``smaller than claimed`` (upper end
below m: whether anything is left is the lower end's matter), else ``undecided``. Wilcoxon's signed-rank test stands
beside it.

**Several comparisons.** A claim holds where all its parts do, and is level where all its parts are, which needs no
correction; that some parts refute it is corrected by Holm (1979) over the parts. Over the claims of a family Benjamini
and Hochberg (1995).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from asyncfl_reproduction.verdicts import HOLDS, LEVEL, REVERSED, SMALLER, UNDECIDED

FEWEST_SEEDS = 3
ERROR_LEVEL = 0.05
LOOKS = {10: 0.01, 16: 0.015, 32: 0.025}
"""Number of seeds at a look -> its error level; the levels sum to :data:`ERROR_LEVEL`."""
EQUAL_POINTS = 0.01
"""Difference of accuracies, as a fraction, below which they are level."""
EQUAL_SHARE = 0.05
"""Relative difference of times below which they are level."""
EQUAL_RATIO = math.log(1 + EQUAL_SHARE)
SAME = 1e-9
"""Range below which all differences count as equal: only rounding separates them."""


class Contrast(NamedTuple):
    """One comparison, paired by seed.

    Attributes:
        name: what is compared, such as ``fedecho against fedbuff``.
        unit: ``points`` (of accuracies, which are fractions), ``log ratio`` (of times), or empty.
        mean: of the differences, in the unit of the numbers.
        low: lower end of the interval at the look's level; −inf where nothing bounds it.
        high: upper end; inf where nothing bounds it.
        level: 1 − the look's error level, 0.99 with ten seeds.
        seeds: how many seeds both sides have.
        margin: what the difference has to exceed.
        p: two-sided, of the t test against the margin, or against 0 where the mean lies between 0 and the margin; of
            the claim that nothing differs, what :func:`as_equality` says.
        wilcoxon: two-sided p of the signed-rank test against zero.
        equal: p of the two one-sided tests that it lies within the bounds of equality.
        apart: two-sided p of the t test that it lies beyond them.
        below: one-sided p that the difference is below the margin.
        verdict: what follows.
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
        on = {LEVEL: self.equal, SMALLER: min(1.0, 2 * self.below)}
        return scaled(on.get(self.verdict, self.p), self.seeds)


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
        margin: what the mean has to exceed; negative where the claim is "not more than so much below".
        unit: see :class:`Contrast`.
        equal: half the width of the region of equality, in the unit of the differences; None where none is defined.
        bounds: whether the numbers bound the mean from below and from above; not, where some are censored.
        alpha: the error level of the only look that there will be; by default that of the look so many seeds allow.

    Returns:
        ``undecided`` with an interval without ends for fewer than three seeds or where one number is infinite.
        Differences that are all the same have no deviation to judge by: p is then the sign test's, 2^(1 − seeds).
    """
    differences = np.asarray(differences, float)
    differences = differences[~np.isnan(differences)]
    seeds = len(differences)
    alpha = level_at(seeds) if alpha is None else alpha
    if seeds < FEWEST_SEEDS or np.isinf(differences).any():
        mean = float(differences.mean()) if seeds else math.nan
        ends = (-math.inf, math.inf, 1 - alpha, seeds, margin)
        return Contrast(name, unit, mean, *ends, 1.0, 1.0, 1.0, 1.0, 1.0, UNDECIDED)
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
    """Return the verdict of an interval; being level is tested first, and direction only after that.

    Args:
        low: lower end of the difference's interval.
        high: upper end.
        equal: whether the difference lies within the bounds of equality.
        margin: what the difference has to exceed. A negative one is "not below by more than so much", where so much is
            at least the bound of equality: there "reversed" is below the margin, and what is level holds.
    """
    if equal:
        return HOLDS if margin < 0 else LEVEL
    if low > margin:
        return HOLDS
    if high < min(0.0, margin):
        return REVERSED
    return SMALLER if high < margin else UNDECIDED


def as_level(low: float, high: float, equal: bool, bound: float) -> str:
    """Return the verdict on the claim that nothing differs, which holds if the comparison is level.

    Args:
        low: lower end of the difference's interval.
        high: upper end.
        equal: whether the difference lies within the bounds of equality.
        bound: half the width of the region of equality; the claim is reversed where the interval lies beyond it.
    """
    if equal:
        return HOLDS
    return REVERSED if low > bound or high < -bound else UNDECIDED


def as_equality(found: Contrast, bound: float) -> Contrast:
    """Return the comparison with its verdict on the claim that the two methods do not differ.

    Its p is that of equivalence, or of lying apart where it is reversed.
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
    """Return the standard error of the mean."""
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
    tied = len(np.unique(np.abs(moved))) < len(moved)  # by itself scipy would go through all permutations, for a second
    return float(stats.wilcoxon(moved, method="asymptotic" if tied else "exact").pvalue)


def log_ratios(
    faster: np.ndarray, slower: np.ndarray, ends: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, tuple[bool, bool]]:
    """Return, by seed, the log ratio of ``slower`` to ``faster``, which is positive if ``faster`` was sooner.

    A run that never reaches its target is censored at its end: the other's lead is then at least what that end shows,
    and 0 if it shows none; two that never reach it are level within the horizon. So a censored number is never further
    from 0 than the true one. It bounds the mean on one side only: where some slower run never got there the lead is at
    least so large, where some faster one did not nothing says that it leads.

    Args:
        faster: ``(seeds,)`` times, infinite where the target was not reached.
        slower: likewise, of the same seeds.
        ends: when each one's runs ended, ``(seeds,)`` each.

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

    If those below 5 % are rejected, at most 5 % of the rejections are false on average.
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

    A verdict that refutes a part stands if it does so by Holm over all parts, for each kind of refutation; else the
    part is undecided there. ``holds`` needs no correction, since the claim needs all of them; nor does ``level`` where
    all parts are. Each p is such that 5 % is the bar.
    """
    verdicts, p = [part.verdict for part in parts], np.array([part.scaled for part in parts])
    for refuted in (REVERSED, SMALLER, *([LEVEL] if set(verdicts) != {LEVEL} else [])):
        those = np.array([verdict == refuted for verdict in verdicts], bool)
        p = np.where(those, holm(np.where(those, p, 1.0)), p)
    return [
        (UNDECIDED if verdict in (REVERSED, SMALLER, LEVEL) and one > ERROR_LEVEL else verdict, float(one))
        for verdict, one in zip(verdicts, p, strict=True)
    ]


def simulated_error_rates(
    shift: float = 1.0, correlation: float = 0.0, trials: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Simulate how often decision rules see a difference that does not exist, and how often they detect a real one.

    Two methods' accuracies are normal with deviation 1 over seeds. The old rule says that they differ where their means
    lie more than one pooled deviation apart; ours looks at 10, then 16, then 32 pairs until its interval excludes 0.

    Args:
        shift: the difference to be seen, in deviations of one method over seeds.
        correlation: of the two methods at the same seed.
        trials: made-up comparisons.
        seed: of the random numbers.

    Returns:
        One row per rule: rule, seeds, false_alarms (a difference is said where there is none, in either direction) and
        power (the difference is said, in the right direction), shares of the trials.
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
