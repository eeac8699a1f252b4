"""Ranks of methods over several settings, with Nemenyi's critical difference between mean ranks.

The tests are Friedman's, and Nemenyi's critical difference at 5% (Demšar, "Statistical Comparisons of Classifiers over
Multiple Data Sets", 2006, Eqs. 2 and 3 with q of the studentised range). Both assume that blocks are independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from asyncfl_lite import plots
from asyncfl_lite.base.style import ACCENT
from asyncfl_reproduction.report.figures import finish, panels

ERROR_LEVEL = 0.05


class Ranking(NamedTuple):
    """Mean ranks of methods; rank 1 is the best.

    Attributes:
        ranks: method -> mean rank over blocks, best first.
        blocks: number of blocks, which are the seeds of the settings that have all these methods.
        p: p value of Friedman's test that all methods rank alike; NaN for fewer than three methods.
        critical: Nemenyi's critical difference of mean ranks.
    """

    ranks: pd.Series
    blocks: int
    p: float
    critical: float

    def near(self, method: str) -> list[str]:
        """Return the methods within the critical difference of one method (itself included), best first."""
        return list(self.ranks.index[(self.ranks - self.ranks[method]).abs() <= self.critical])


def ranking(there: Mapping[str, Mapping[str, np.ndarray]], methods: Sequence[str]) -> Ranking | None:
    """Rank the methods that every setting has; return None if they are fewer than two or share no seeds.

    Args:
        there: setting -> method -> ``(seeds,)`` accuracies, of the same seeds in the same order.
        methods: the methods to rank, if all settings have them.
    """
    common = [m for m in methods if there and all(m in place for place in there.values())]
    blocks = [
        np.stack([place[m] for m in common], axis=1)
        for place in there.values()
        if common and len({len(place[m]) for m in common}) == 1
    ]
    if len(common) < 2 or not blocks:
        return None
    accuracies = np.concatenate(blocks)
    ranks = stats.rankdata(-accuracies, axis=1).mean(axis=0)
    k, n = len(common), len(accuracies)
    q = stats.studentized_range.ppf(1 - ERROR_LEVEL, k, np.inf) / np.sqrt(2)
    p = stats.friedmanchisquare(*accuracies.T).pvalue if k > 2 and n > 1 else float("nan")
    return Ranking(pd.Series(ranks, common).sort_values(), n, float(p), float(q * np.sqrt(k * (k + 1) / (6 * n))))


def groups(found: Ranking) -> list[tuple[int, int]]:
    """Return the first and last index of each largest group of neighbouring methods within one critical difference."""
    ranks, runs = found.ranks.to_numpy(), []
    for first in range(len(ranks)):
        last = int(np.flatnonzero(ranks <= ranks[first] + found.critical)[-1])
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs


def draw_ranks(found: Ranking, marked: str | None = None) -> Figure:
    """Draw methods' mean ranks; a bar joins methods that lie within one critical difference by Nemenyi's test.

    The point and the name of ``marked`` stand out.
    """
    figure, (axes,) = panels(1)
    joined = groups(found)
    figure.set_size_inches(9, 1.0 + 0.28 * len(found.ranks) + 0.12 * len(joined))
    names = list(found.ranks.index)
    for index, method in enumerate(names):
        colour = ACCENT if method == marked else plots.colour(method)
        axes.plot(found.ranks[method], index, "o", color=colour, markersize=11 if method == marked else 8)
    axes.set_yticks(range(len(names)), [f"{plots.title(m)}  {found.ranks[m]:.2f}" for m in names])
    for label, method in zip(axes.get_yticklabels(), names, strict=True):
        if method == marked:
            label.set(color=ACCENT, fontweight="bold")
    for first, last in joined:
        low, high = found.ranks.iloc[first], found.ranks.iloc[last]
        axes.plot([low, high], [last + 0.35] * 2, color="#374151", linewidth=3, solid_capstyle="butt")
    axes.invert_yaxis()
    axes.set_xlim(0.7, len(names) + 0.3)
    axes.set_xlabel(f"mean rank over {found.blocks} seeds of places; critical difference {found.critical:.2f}")
    return finish(figure, {})
