"""Comparison of all methods over the league's settings, by ranks, critical differences and a heat map.

There are two tests, both at 5%. Over all places, mean ranks are compared by Friedman's test and Nemenyi's critical
difference (Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets", 2006, Eqs. 2 and 3 with q of the
studentised range). A block is one seed of one place, so blocks of one place are not independent, which makes the
critical difference smaller than it should be. Within a place, each method is compared with the place's best method by a
paired two-sided t test over the same seeds, with Holm's correction.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from asyncfl_lite import plots
from asyncfl_lite.base.style import ACCENT
from asyncfl_reproduction.claims.measured import TUNED, Measured
from asyncfl_reproduction.grid.cells import TWIN
from asyncfl_reproduction.grid.columns import FIXED
from asyncfl_reproduction.league.across import FIVE, LAWS, OTHERS, WORKLOADS, cell_of
from asyncfl_reproduction.number_texts import mean_text
from asyncfl_reproduction.report.figures import finish, panels
from asyncfl_reproduction.report.names import marked, with_titles
from asyncfl_reproduction.report.recorded import MISSING
from asyncfl_reproduction.statistics import ERROR_LEVEL, FEWEST_SEEDS, holm, two_sided


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


METHODS = (*FIVE, *OTHERS)
COLUMNS = (TUNED, FIXED)


def places(measured: Measured, column: str = TUNED) -> dict[str, dict[str, np.ndarray]]:
    """Return the ``(seeds,)`` accuracies by setting and method, for settings with at least two methods.

    A method without a server setting has no cell in the column "fixed server rate".
    """
    found = {}
    for workload, law in itertools.product(WORKLOADS, LAWS):
        place = f"{workload}, {law}"
        cells = {method: measured.by_seed(in_place(place, method, column)) for method in METHODS}
        ran = {method: values.sort_index().to_numpy() for method, values in cells.items() if values is not None}
        if len(ran) > 1:
            found[place] = ran
    return found


def in_place(place: str, method: str, column: str = TUNED) -> str:
    """Return the name of a method's cell in a setting of :func:`places`."""
    return cell_of(*place.split(", "), method) + TWIN * (column == FIXED)


def not_told_from_best(methods: dict[str, np.ndarray]) -> set[str]:
    """Return a setting's best method, and all methods that Holm-corrected paired t tests cannot distinguish from it.

    A star means that no difference was found, not that there is none.
    """
    best = max(methods, key=lambda m: methods[m].mean())
    own, others = methods[best], [m for m in methods if m != best]
    paired = {m for m in others if len(methods[m]) == len(own) >= FEWEST_SEEDS}
    p = holm([two_sided(own - methods[m]) if m in paired else 1.0 for m in others])
    return {best, *(m for m, one in zip(others, p, strict=True) if one >= ERROR_LEVEL)}


def table(measured: Measured) -> pd.DataFrame:
    """Return accuracies and their deviations, one row per method and one column per setting and tuning.

    ``*`` marks methods of :func:`not_told_from_best`.
    """
    texts: dict[str, dict[str, str]] = {}
    for column in COLUMNS:
        for place, ran in places(measured, column).items():
            good = not_told_from_best(ran)
            marks = {m: " *" * (m in good) + measured.mark(in_place(place, m, column)) for m in ran}
            texts[f"{with_titles(place)}, {column}"] = {m: mean_text(100 * ran[m]) + marks[m] for m in ran}
    shown = pd.DataFrame(texts, index=[m for m in METHODS if any(m in ran for ran in texts.values())], dtype=object)
    shown.insert(0, "method", [marked(m) for m in shown.index])
    return shown.fillna(MISSING).reset_index(drop=True)


def heat_map(measured: Measured) -> Figure | None:
    """Draw methods' ranks and accuracies by setting as a heat map, with the best method on top.

    On the left are the methods when tuned, and on the right those at fixed server rates. Ranks are within a place.
    """
    drawn = {column: places(measured, column) for column in COLUMNS}
    there = {(column, place): ran for column, found in drawn.items() for place, ran in found.items()}
    if not there:
        return None
    means = pd.DataFrame({key: {m: 100 * v.mean() for m, v in ran.items()} for key, ran in there.items()})
    ranks = means.rank(ascending=False)
    order = ranks[next(column for column in COLUMNS if drawn[column])].mean(axis=1).sort_values().index
    means, ranks = means.loc[order], ranks.loc[order]
    figure, (axes,) = panels(1)
    figure.set_size_inches(min(14, 3 + 1.25 * len(there)), 1.6 + 0.3 * len(order))
    image = axes.imshow(ranks, aspect="auto", cmap="YlGnBu_r", vmin=1, vmax=max(2, ranks.max().max()))
    for column, (key, ran) in enumerate(there.items()):
        good = not_told_from_best(ran)
        for row, method in enumerate(order):
            if method in ran:
                dark = ranks.iloc[row, column] < 0.45 * ranks.max().max()
                axes.text(column, row, f"{means.loc[method, key]:.1f}{'*' * (method in good)}", ha="center",
                          va="center", fontsize=9, color="white" if dark else "black")  # fmt: skip
    axes.set_yticks(range(len(order)), [plots.title(m) for m in order])
    heads = [f"{with_titles(place).replace(', ', chr(10))}\n{column}" for column, place in there]
    axes.set_xticks(range(len(there)), heads, fontsize=9)
    axes.xaxis.tick_top()
    axes.grid(False)
    if drawn[TUNED] and drawn[FIXED]:
        axes.axvline(len(drawn[TUNED]) - 0.5, color="white", linewidth=4)
    figure.colorbar(image, ax=axes, label="rank within its place")
    return finish(figure, {})


def critical_differences(measured: Measured) -> Figure | None:
    """Draw the methods' mean ranks over the recorded settings; see :func:`.draw_ranks`."""
    found = ranking(places(measured), METHODS)
    return None if found is None else draw_ranks(found)


def in_words(measured: Measured) -> str:
    """Describe the ranking's settings, methods and blocks, and the result of Friedman's test."""
    there = places(measured)
    found = ranking(there, METHODS)
    if found is None:
        return f"Head-to-head: {MISSING} (no two methods on one workload under one law)."
    p = "" if np.isnan(found.p) else f" Friedman's test that all rank alike: p = {found.p:.2g}."
    return (
        f"{len(there)} of {len(WORKLOADS) * len(LAWS)} settings (a workload under a delay law) are recorded; "
        f"{len(found.ranks)} methods, tuned, are in all of them, with {found.blocks} seeds in all "
        f"(of each, the mean of its last five tests).{p} Nemenyi's critical difference of mean ranks at 5%: "
        f"{found.critical:.2f}. Holm-corrected paired t tests cannot distinguish methods with a star from the best."
    )
