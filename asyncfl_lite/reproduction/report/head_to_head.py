"""The methods against each other, over workloads and delay regimes: ranks, critical differences, a heat map.

Two tests, both at 5%. Over everything: mean ranks (:mod:`.ranks`), a block being one seed of one workload and regime,
so that blocks of one place are not independent, which makes the difference smaller than it should be. Within a place:
paired two-sided t tests of each method against the place's best over the same seeds, Holm-corrected.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from asyncfl_lite import plots
from asyncfl_lite.reproduction.claims.across import FIVE, OTHERS, REGIMES, WORKLOADS
from asyncfl_lite.reproduction.claims.findings import deviation, mean_text
from asyncfl_lite.reproduction.claims.statistics import FEWEST_SEEDS
from asyncfl_lite.reproduction.report.figures import finish, panels
from asyncfl_lite.reproduction.report.ranks import LEVEL, draw_ranks, ranking
from asyncfl_lite.reproduction.report.recorded import MISSING, Recorded


def places(recorded: Recorded) -> dict[str, dict[str, np.ndarray]]:
    """Return ``workload, regime`` -> method -> ``(seeds,)`` accuracies; places with two methods or more."""
    found = {}
    for workload in WORKLOADS:
        for regime in REGIMES:
            place = f"{workload}, {regime}"
            cells = {m: recorded.measured.values(cell_of(place, m)) for m in (*FIVE, *OTHERS)}
            ran = {method: values for method, values in cells.items() if values is not None}
            if len(ran) > 1:
                found[place] = ran
    return found


def cell_of(place: str, method: str) -> str:
    """Return the name of a method's cell at a place of :func:`places`."""
    return "/".join(("head_to_head", *place.split(", "), method))


def not_told_from_best(methods: dict[str, np.ndarray]) -> set[str]:
    """Return a place's best method and those that a Holm-corrected paired t test does not tell from it.

    With three seeds it tells little: a star says that nothing was found, not that there is nothing.
    """
    best = max(methods, key=lambda m: methods[m].mean())
    p = {m: _paired(methods[best], values) for m, values in methods.items() if m != best}
    good, told_apart = {best}, True
    for place, method in enumerate(sorted(p, key=p.get)):
        told_apart = told_apart and p[method] * (len(p) - place) < LEVEL
        if not told_apart:
            good.add(method)
    return good


def _paired(left: np.ndarray, right: np.ndarray) -> float:
    """Return p of a paired two-sided t test; 1 where there are too few seeds, or different ones."""
    if len(left) != len(right) or len(left) < FEWEST_SEEDS:
        return 1.0
    differences = left - right
    if deviation(differences) == 0:
        return 0.0 if differences.any() else 1.0
    return float(stats.ttest_1samp(differences, 0).pvalue)


def table(recorded: Recorded) -> pd.DataFrame:
    """Return one row per place and one column per method: accuracy and its deviation.

    ``*`` marks methods of :func:`not_told_from_best`.
    """
    there = places(recorded)
    methods = [m for m in (*FIVE, *OTHERS) if any(m in ran for ran in there.values())]
    rows = []
    for place, ran in there.items():
        good = not_told_from_best(ran)
        marks = {m: recorded.measured.mark(cell_of(place, m)) for m in ran}
        texts = {m: f"{mean_text(100 * ran[m])}{' *' * (m in good)}{marks[m]}" for m in ran}
        rows.append({"workload, regime": place, **{plots.title(m): texts.get(m, MISSING) for m in methods}})
    return pd.DataFrame(rows)


def heat_map(recorded: Recorded) -> Figure | None:
    """Draw ranks by place and method, best method left, with accuracies; ``*`` as in :func:`table`."""
    there = places(recorded)
    if not there:
        return None
    means = pd.DataFrame({place: {m: 100 * v.mean() for m, v in ran.items()} for place, ran in there.items()}).T
    ranks = means.rank(axis=1, ascending=False)
    order = ranks.mean().sort_values().index
    means, ranks = means[order], ranks[order]
    figure, (axes,) = panels(1)
    figure.set_size_inches(min(14, 2.5 + 0.95 * len(order)), 1.3 + 0.36 * len(there))
    drawn = axes.imshow(ranks, aspect="auto", cmap="YlGnBu_r", vmin=1, vmax=max(2, ranks.max().max()))
    for row, (place, ran) in enumerate(there.items()):
        good = not_told_from_best(ran)
        for column, method in enumerate(order):
            if method in ran:
                dark = ranks.iloc[row, column] < 0.45 * ranks.max().max()
                axes.text(column, row, f"{means.loc[place, method]:.1f}{'*' * (method in good)}", ha="center",
                          va="center", fontsize=9, color="white" if dark else "black")  # fmt: skip
    axes.set_xticks(range(len(order)), [plots.title(m) for m in order], rotation=35, ha="left", rotation_mode="anchor")
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(there)), list(there))
    axes.grid(False)
    figure.colorbar(drawn, ax=axes, label="rank in its row")
    return finish(figure, {})


def critical_differences(recorded: Recorded) -> Figure | None:
    """Draw mean ranks over the recorded places; see :func:`.draw_ranks`."""
    found = ranking(places(recorded), (*FIVE, *OTHERS))
    return None if found is None else draw_ranks(found)


def in_words(recorded: Recorded) -> str:
    """Say how many places, methods and blocks the ranking has, and what Friedman's test says."""
    there = places(recorded)
    found = ranking(there, (*FIVE, *OTHERS))
    if found is None:
        return f"Head-to-head: {MISSING} (no two methods in one workload and regime)."
    p = "" if np.isnan(found.p) else f" Friedman's test that all rank alike: p = {found.p:.2g}."
    return (
        f"{len(there)} of {len(WORKLOADS) * len(REGIMES)} workloads × regimes were run; {len(found.ranks)} methods are "
        f"in all of them, with {found.blocks} seeds in all.{p} Nemenyi's critical difference of mean ranks at 5%: "
        f"{found.critical:.2f}. A star: a paired t test, Holm-corrected, does not tell it from the best of its place; "
        "with three seeds it tells little."
    )
