"""The searches for methods' settings: what was tried, and what tuning gains.

Tuning costs computing time. Which of a grid's combinations is tried first is chance, so the curve of the best accuracy
that a method is expected to have found after a number of tries is the mean over all orders (Dodge et al., "Show your
work", 2019), from the runs with the search's first seed.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from scipy.special import comb

from asyncfl_lite import plots
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.tuning.choices import best_in, best_of, edges_of, in_words
from asyncfl_reproduction.tuning.grids import parts_of, read_grids, study_of
from asyncfl_reproduction.tuning.halving import edges
from asyncfl_reproduction.tuning.outcomes import METRIC, kept_in, of_cells, of_studies, rows_of

COLUMNS = [
    *("study", "method", "column", "combinations", "runs", "best", "on an edge"),
    *("accuracy %", "worst %", "CPU minutes"),
]


def searches(folder: Path | None = None) -> pd.DataFrame:
    """Return one row per recorded search of a study, with its size, its best combination and its scores.

    Returns:
        study, method, column, combinations and runs (how many were tried), best (settings of the
        best combination), on an edge (options whose best value is the smallest or largest tried), accuracy % (of the
        best combination: mean over seeds of the last five tests), worst % (of the worst combination; "diverged" if any
        run diverged), CPU minutes.
    """
    rows = []
    for search, tried in sorted(kept_in(of_studies(folder)).items()):
        best = best_of(tried)
        rows.append([*parts_of(search), *_numbers(pd.DataFrame(tried), best, edges_of(best, tried))])
    return pd.DataFrame(rows, columns=COLUMNS)


def own_searches(cells: Iterable[Cell]) -> pd.DataFrame:
    """Return one row per finished search of a single cell, in the form of :func:`searches`."""
    rows = []
    for cell in cells:
        found = best_in(cell.tier, cell.name, cell.column) if cell.search is not None else None
        if found is not None:
            best = json.loads(found[0])
            table = pd.DataFrame(rows_of(of_cells(cell.tier, cell.name), cell.name))
            method = cell.name.rpartition("/")[2].partition("@")[0]
            tried = [json.loads(point) for point in table["point"].unique()]
            grid = {option: _in_order({point[option] for point in tried}) for option in best}
            on_edge = edges(cell.search, grid, best)
            rows.append([study_of(cell.name), method, cell.column, *_numbers(table, best, on_edge)])
    return pd.DataFrame(rows, columns=COLUMNS)


def _in_order(values: set[Any]) -> list[Any]:
    return sorted(values, key=lambda value: value if isinstance(value, int | float) else 0)


def _numbers(table: pd.DataFrame, best: Mapping[str, Any], on_edge: Iterable[str]) -> list[Any]:
    """Return a search's values for :data:`COLUMNS`, from ``combinations`` to ``CPU minutes``."""
    means = 100 * table.groupby("point")[METRIC].agg(lambda accuracies: accuracies.mean(skipna=False))
    return [
        len(means),
        len(table),
        in_words(best),
        ", ".join(option.removeprefix("settings.") for option in on_edge),
        round(means[json.dumps(best)], 1),
        "diverged" if means.isna().any() else round(means.min(), 1),
        round(table["cpu_seconds"].sum() / 60, 1),
    ]


MARKED = (9, 18, 27)
"""Numbers of tries that the picture marks."""
AXES_WIDE = 3
"""Panels per row of the picture."""


def expected_best(accuracies: np.ndarray) -> np.ndarray:
    """Return, for each k, the mean of the largest of k values drawn without replacement.

    Args:
        accuracies: ``(n,)`` accuracies of all tries.

    Returns:
        ``(n,)`` means for k = 1, 2, …, n; the last is the largest accuracy of all.

    >>> expected_best(np.array([0.2, 0.8, 0.5])).round(2).tolist()
    [0.5, 0.7, 0.8]
    """
    ordered, n = np.sort(accuracies), len(accuracies)
    below = np.arange(n)  # how many values are smaller than each
    return np.array([ordered @ comb(below, k - 1) / comb(n, k) for k in range(1, n + 1)])


def tries(cells: list[Cell], folder: Path | None = None) -> pd.DataFrame:
    """Return the best accuracy that each search in the column "tuned" is expected to find, by number of tries.

    The columns are study, cell, tries and accuracy (a fraction, on validation samples). A run that diverged counts as
    0.
    """
    first = set(read_grids().tuned.seeds)
    parts = []
    for cell in cells:
        if cell.search is None or cell.column != "tuned":
            continue
        rows = rows_of(of_cells(cell.tier, cell.name, folder), cell.name)
        found = np.nan_to_num([row[METRIC] for row in rows if row["seed"] in first])
        if len(found):
            best = expected_best(found)
            parts.append({"study": study_of(cell.name), "cell": cell.name, "tries": np.arange(1, len(best) + 1),
                          "accuracy": best})  # fmt: skip
    frames = [pd.DataFrame(part) for part in parts]
    return (
        pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["study", "cell", "tries", "accuracy"])
    )


def draw_tries(table: pd.DataFrame) -> Figure | None:
    """Draw accuracy against tries, with a panel per study and a line per method; None if nothing was searched."""
    studies = table["study"].unique()
    if not len(studies):
        return None
    rows = math.ceil(len(studies) / AXES_WIDE)
    figure = Figure(figsize=(4.2 * min(AXES_WIDE, len(studies)), 3.2 * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, min(AXES_WIDE, len(studies)), squeeze=False).flatten()
    for axis, study in zip(axes, studies, strict=False):
        own = table[table["study"] == study]
        methods = {cell: cell.rpartition("/")[2] for cell in own["cell"]}
        shown = own.assign(accuracy=100 * own["accuracy"], method=own["cell"].map(methods).map(plots.title))
        sns.lineplot(shown, x="tries", y="accuracy", hue="method", palette=_palette(methods.values()), ax=axis)
        for mark in MARKED:
            axis.axvline(mark, color="0.7", linewidth=0.8, linestyle=":")
        axis.set(title=study, xlabel="tries", ylabel="best so far, % (validation)")
        axis.set_xticks(MARKED)
        axis.legend(fontsize=8, title=None)
    for axis in axes[len(studies) :]:
        axis.set_visible(False)
    return figure


def _palette(methods: Iterable[str]) -> dict[str, Any]:
    """Return a colour for each method's title; variants of a method get shades of one colour."""
    palette, seen = {}, Counter[str]()
    for method in dict.fromkeys(methods):
        palette[plots.title(method)] = plots.shade(method, seen[plots.colour(method)])
        seen[plots.colour(method)] += 1
    return palette
