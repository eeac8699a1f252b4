"""The gain from tuning, as the best accuracy that a method is expected to have found after a number of tries.

Tuning costs computing time. Which of a grid's combinations is tried first is chance, so the curve is the mean over all
orders (Dodge et al., "Show your work", 2019), from the runs with the search's first seed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from scipy.special import comb

from asyncfl_lite import plots
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.tuning.grids import read_grids, study_of
from asyncfl_reproduction.tuning.outcomes import METRIC, of_cells, rows_of

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
