"""What was tried for methods' settings: a row per search, with its best."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from asyncfl_lite.base.home import home_of
from asyncfl_lite.runs.tuned import METRIC, best_of, in_words

COLUMNS = ["study", "method", "column", "combinations", "runs", "best", "accuracy %", "worst %", "CPU minutes"]


def searches(folder: Path | None = None) -> pd.DataFrame:
    """Return one row per search whose outcomes are kept.

    Args:
        folder: of outcomes; the package's own if None.

    Returns:
        study, method, column ("tuned" or "printed"), combinations and runs that were tried, best (its settings),
        accuracy % (its mean over seeds of the last five tests), worst % (of the worst combination), CPU minutes.
    """
    root = home_of("tuning") if folder is None else folder
    rows = []
    for path in sorted(root.glob("*/*.csv")):
        table = pd.read_csv(path)
        method, _, column = path.stem.rpartition("-")
        means = 100 * table.groupby("point")[METRIC].mean()
        rows.append(
            [
                path.parent.name,
                method,
                column,
                len(means),
                len(table),
                in_words(best_of(table.to_dict("records"))),
                round(means.max(), 1),
                round(means.min(), 1),
                round(table["cpu_seconds"].sum() / 60, 1),
            ]
        )
    return pd.DataFrame(rows, columns=COLUMNS)
