"""What was tried for methods' settings: one row per search, with its best; and where a choice serves a cell badly."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from asyncfl_lite.base.home import home_of
from asyncfl_lite.reproduction.claims.findings import interval_text
from asyncfl_lite.reproduction.claims.measured import ACCURACY, Measured
from asyncfl_lite.reproduction.claims.statistics import EQUAL_POINTS
from asyncfl_lite.reproduction.claims.verdicts import HOLDS
from asyncfl_lite.reproduction.grid.cells import TWIN
from asyncfl_lite.reproduction.grid.columns import FIXED
from asyncfl_lite.reproduction.tuning.tuned import METRIC, best_of, edges_of, in_words

COLUMNS = [
    "study",
    "method",
    "column",
    "combinations",
    "runs",
    "best",
    "on an edge",
    "accuracy %",
    "worst %",
    "CPU minutes",
]


def searches(folder: Path | None = None) -> pd.DataFrame:
    """Return one row per search whose outcomes are kept.

    Args:
        folder: of outcomes; the package's own if None.

    Returns:
        study, method, column ("tuned" or "printed"), combinations and runs that were tried, best (its settings), on an
        edge (knobs whose best value is the smallest or largest tried), accuracy % (its mean over seeds of the last
        five tests), worst % (of the worst combination; "diverged" if a run of one did), CPU minutes.
    """
    root = home_of("tuning") if folder is None else folder
    rows = []
    for path in sorted(root.glob("*/*.csv")):
        table = pd.read_csv(path)
        method, _, column = path.stem.rpartition("-")
        tried = table.to_dict("records")
        best = best_of(tried)
        means = 100 * table.groupby("point")[METRIC].agg(lambda accuracies: accuracies.mean(skipna=False))
        rows.append(
            [
                path.parent.name,
                method,
                column,
                len(means),
                len(table),
                in_words(best),
                ", ".join(edges_of(best, tried)),
                round(means.max(), 1),
                "diverged" if means.isna().any() else round(means.min(), 1),
                round(table["cpu_seconds"].sum() / 60, 1),
            ]
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def better_untuned(measured: Measured) -> pd.DataFrame:
    """Return the cells that are surely more than a point better at the fixed server rate than tuned.

    A search is made in one regime, and other cells take its choice: where it does not suit them, they are here, and a
    lead over such a cell in the column "tuned" says little.

    Returns:
        One row per cell, the worst first: cell, tuned % and :data:`.FIXED` % (mean accuracies), difference (tuned less
        the other, points, with its interval and seeds).
    """
    rows = []
    for cell in measured.twins:
        found = measured.above(cell + TWIN, cell, EQUAL_POINTS)
        if found.verdict == HOLDS and found.contrast is not None:
            more = found.contrast
            less = more._replace(mean=-more.mean, low=-more.high, high=-more.low)
            means = [100 * measured.summaries[name][ACCURACY].mean() for name in (cell, cell + TWIN)]
            rows.append((less.mean, [cell, *means, interval_text(less)]))
    return pd.DataFrame([row for _, row in sorted(rows)], columns=["cell", "tuned %", f"{FIXED} %", "difference"])
