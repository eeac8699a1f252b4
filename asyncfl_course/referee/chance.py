"""Power of a plan, which is the probability that its verdict is "holds" for a given true difference."""

from __future__ import annotations

import math

import numpy as np
from scipy import special, stats

STEPS = 2000
"""Number of equally likely deviations of a sample, over which the chance of ``level`` is averaged."""


def chance(predicate: str, margin: float, truth: float, deviation: float, seeds: int, level: float) -> float:
    """Return the probability that a plan's verdict is "holds" for a given true difference.

    Args:
        predicate: ``above``: the interval at ``level`` lies above the margin; ``level``: two one-sided tests put the
            difference within ± the margin.
        margin: the margin, in points.
        truth: the true mean difference, in points.
        deviation: standard deviation of the differences over seeds, in points; 0 if all seeds agree.
        seeds: number of seeds.
        level: level of the interval, such as 0.95.

    Example:
        A true difference of one deviation, ten seeds, beyond zero:

        >>> round(chance("above", 0, 1.0, 1.0, 10, 0.95), 2)
        0.8
        >>> round(chance("level", 1, 0.0, 0.5, 10, 0.95), 2)
        1.0
    """
    if deviation <= 0:
        return float(truth > margin if predicate == "above" else abs(truth) < margin)
    error = deviation / math.sqrt(seeds)
    if predicate == "above":
        bar = special.stdtrit(seeds - 1, (1 + level) / 2)
        return float(stats.nct.sf(bar, seeds - 1, (truth - margin) / error))
    shares = (np.arange(STEPS) + 0.5) / STEPS
    errors = error * np.sqrt(stats.chi2.ppf(shares, seeds - 1) / (seeds - 1))
    room = np.maximum(margin - special.stdtrit(seeds - 1, level) * errors, 0)
    return float((special.ndtr((room - truth) / error) - special.ndtr((-room - truth) / error)).mean())
