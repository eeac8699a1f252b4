"""Whether the runs of a report agree with the recorded runs of the same cells, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from asyncfl_lite.base.errors import how_many
from asyncfl_reproduction.claims.measured import ACCURACY
from asyncfl_reproduction.grid.record import read_tidy
from asyncfl_reproduction.report.names import place
from asyncfl_reproduction.report.printed_tables import folded, listed
from asyncfl_reproduction.report.recorded import Recorded


def agreement(recorded: Recorded, kept: str | Path | None) -> pd.DataFrame:
    """Return one row per run of this report that has a recorded run of the same configuration and seed.

    The columns are cell, seed, accuracy and recorded. The two accuracies are shares, means of the last five tests.
    """
    run = [cell for name, cell in recorded.cells.items() if name in recorded.results.keys() - recorded.from_kept]
    tables = read_tidy(run, Path(kept) / run[0].tier) if run and kept is not None else {}
    before = {(name, one.config.seed): one.summary[ACCURACY] for name, found in tables.items() for one in found}
    rows = [
        (cell.name, one.config.seed, one.summary[ACCURACY], before[cell.name, one.config.seed])
        for cell in run
        for one in recorded.results[cell.name]
        if (cell.name, one.config.seed) in before
    ]
    return pd.DataFrame(rows, columns=["cell", "seed", "accuracy", "recorded"])


def in_words(table: pd.DataFrame) -> str:
    """Say how many runs have the recorded accuracy; nothing if none can be compared.

    Example:
        >>> in_words(pd.DataFrame({"accuracy": [0.5, 0.75, 0.5], "recorded": [0.5, 0.75, 0.5037]}))
        '2 of 3 runs have the recorded accuracy to the bit; the other is within 0.4 points.'
    """
    if table.empty:
        return ""
    same, runs = _same(table), how_many(len(table), "run")
    others, has = int((~same).sum()), "have the recorded accuracy to the bit"
    if not others:
        return f"All {runs} {has}." if len(table) > 1 else f"The only run {has.replace('have', 'has', 1)}."
    gap = 100 * (table["accuracy"] - table["recorded"])[~same].abs().max(skipna=False)
    who = "the other" if others == 1 else f"the other {others}"
    if math.isnan(gap):  # a run that diverged has no accuracy
        return f"{same.sum()} of {runs} {has}; {'some of ' * (others > 1)}{who} diverged, here or in the record."
    points = max(1, math.ceil(round(10 * gap, 6))) / 10
    return f"{same.sum()} of {runs} {has}; {who} {'is' if others == 1 else 'are'} within {points:.1f} points."


def by_seed(table: pd.DataFrame, names: Mapping[str, str]) -> str:
    """Return, as folded HTML, each cell's accuracies by seed, with the recorded one where it differs."""
    said = [
        f"{100 * here:.2f}" + ("" if same else f" (recorded: {100 * before:.2f})")
        for here, before, same in zip(table["accuracy"], table["recorded"], _same(table), strict=True)
    ]
    wide = table.assign(said=said).pivot(index="cell", columns="seed", values="said").fillna("not run")
    wide = wide.reindex(dict.fromkeys(table["cell"])).rename(columns="seed {}".format).rename_axis(columns=None)
    wide.insert(0, "cell", [f"{place(path)}: {names[path]}" for path in wide.index])
    line = f"Accuracy of {how_many(len(table), 'run')} by seed, in percent, and the recorded accuracy where it differs"
    return folded(escape(line), listed(wide).to_html())


def _same(table: pd.DataFrame) -> np.ndarray:
    here, before = table["accuracy"].to_numpy(), table["recorded"].to_numpy()
    return (here == before) | (np.isnan(here) & np.isnan(before))
