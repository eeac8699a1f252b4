"""Recorded runs that lessons quote: the runs of one cell, and comparisons of two cells by the rule for claims.

Lessons read the clone's ``results/``, as ``asyncfl-lite record`` and ``grid --record`` write it; an installed package
does not carry it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from asyncfl_course.records import (
    ACCURACY,
    CELLS,
    CURVES,
    ENDINGS,
    FIXED,
    PLAIN,
    RESULTS,
    RUNS,
    TUNED,
    Finding,
    Measured,
    contrast,
    expand_grid,
    of_cells,
    paper_of,
    read_table,
    rows_of,
    untuned,
)
from asyncfl_lite.base.errors import ResultError, unknown_name


@lru_cache(maxsize=16)
def evidence(paper: str, tier: str = "laptop") -> Measured:
    """Return the recorded summaries and curves of one paper's cells, in all columns.

    Args:
        paper: ``fedecho``, ``fedrevive``, ``kuiper`` or ``fedadt``.
        tier: ``laptop`` (ten seeds), or another tier that is recorded.

    Raises:
        ResultError: nothing is recorded there.
    """
    folder = RESULTS / tier / paper
    if not folder.is_dir():
        raise ResultError(f"{folder}: nothing is recorded; asyncfl-lite grid {tier} --paper {paper} --record results")
    runs, curves = (read_table(folder / name).sort_values("seed", kind="stable") for name in (RUNS, CURVES))
    by_cell = {str(cell): rows.reset_index(drop=True) for cell, rows in runs.groupby("cell")}
    drawn = {key: rows.reset_index(drop=True) for key, rows in curves.groupby(["cell", "seed"])}
    of_cells = {cell: [drawn[cell, seed] for seed in rows["seed"]] for cell, rows in by_cell.items()}
    plan = CELLS / f"{tier}.yaml"
    cells = expand_grid(plan, paper=paper) if plan.exists() else []
    return Measured(by_cell, of_cells, [cell.name for cell in cells])


def searched(cell: str, column: str = TUNED, tier: str = "laptop") -> pd.DataFrame:
    """Return a cell's own search, with one row per combination and seed.

    Args:
        cell: its full name, such as ``fedecho/table2/large-dir0.1/fedbuff``.
        column, tier: as in :func:`in_column`.

    Returns:
        point (the combination, as JSON), seed, last5_accuracy and final_accuracy (fractions on validation samples; NaN
        where the run diverged), config_hash, cpu_seconds.

    Raises:
        ResultError: no such search is recorded.

    Example:
        >>> searched("fedecho/table2/large-dir0.1/fedbuff")["point"].nunique()
        36
    """
    rows = rows_of(of_cells(tier, cell), cell + ENDINGS[_columns(paper_of(cell))[column]])
    if not rows:
        raise ResultError(f"{cell}: no search in the column {column!r} is recorded in the tier {tier}")
    return pd.DataFrame(rows).drop(columns=["search", "meaning"])


def in_column(paper: str, column: str, tier: str = "laptop") -> Measured:
    """Return the recorded results of one paper's cells in one column, such as ``tuned``.

    Args:
        paper: as in :func:`evidence`.
        column: ``tuned``; this paper's name for the column with a fixed server rate: ``server rate 1`` for FedEcho,
            KUIPER and FedADT, ``printed server rate`` for FedRevive, ``fixed server rate`` for the league; or ``plain
            FedBuff at 1`` (``plain FedBuff at the printed rate``), in which FedBuff's updates have equal weights, too.
            A method without a server rate has the same runs in all columns.
        tier: as in :func:`evidence`.

    Raises:
        ResultError: nothing is recorded there, or the paper has no such column.

    Example:
        >>> in_column("kuiper", "printed server rate")
        Traceback (most recent call last):
        asyncfl_lite.base.errors.ResultError: column: kuiper has 'tuned', 'server rate 1' and 'plain FedBuff at 1', not 'printed server rate'
    """  # noqa: E501
    known = _columns(paper)
    if column not in known:
        *names, last = map(repr, known)
        raise ResultError(f"column: {paper} has {', '.join(names)} and {last}, not {column!r}")
    return evidence(paper, tier).column(known[column])


def _columns(paper: str) -> dict[str, str]:
    """Map the names of a paper's columns to those in code."""
    fixed = untuned(paper)
    return {TUNED: TUNED, **({FIXED: "printed"} if fixed == FIXED else {fixed: "server_rate", PLAIN[fixed]: "printed"})}


def scores(cell: str, column: str = TUNED, tier: str = "laptop", number: str = ACCURACY) -> pd.Series:
    """Return one number from the summary of each run of a recorded cell, by seed.

    Args:
        cell: its full name, such as ``fedecho/table2/large-dir0.1/fedbuff``.
        column, tier: as in :func:`in_column`.
        number: name of the number in a run's summary; by default the mean accuracy of its last five tests, a fraction.
    """
    measured = in_column(paper_of(cell), column, tier)
    found = measured.by_seed(cell, number)
    if found is None:
        raise ResultError(f"{tier}: " + unknown_name("cell", cell, measured.summaries))
    return found


def compare(better: str, worse: str, margin: float = 0.0, column: str = TUNED, tier: str = "laptop") -> str:
    """Compare two recorded cells by the report's rule, and return the result as one line of text.

    The line has both means with deviations in percent, their difference in points (paired by seed) with its interval,
    the number of seeds, and where the first lies: above, below, equivalent or open. With a margin, it ends with the
    verdict on "the first lies above the second by more than this".

    Args:
        better: the cell that should be above.
        worse: the cell that should be below.
        margin: the difference that ``better`` must exceed, as a fraction.
        column, tier: as in :func:`in_column`.

    Example:
        >>> natural, fedbuff = (f"fedecho/table2/mild-dir0.1/{name}" for name in ("fedecho-natural", "fedbuff"))
        >>> print(compare(natural, fedbuff).split(": ", 1)[1])
        82.5 ± 1.3, 81.4 ± 1.8, +1.1 [0.4, 1.9], 10 seeds: above
    """
    finding = _above(better, worse, margin, column, tier)
    return f"{finding.detail}: {_said(finding, margin)}"


def _said(finding: Finding, margin: float = 0.0) -> str:
    """Return where the first side lies; the verdict, if it was asked by how much, or if no run decides it."""
    return finding.verdict if margin or finding.contrast is None else finding.contrast.side


def _above(better: str, worse: str, margin: float, column: str, tier: str) -> Finding:
    return _with_both(better, worse, column, tier).above(better, worse, margin)


def _with_both(first: str, second: str, column: str, tier: str) -> Measured:
    """Return the results that hold two recorded cells of one paper."""
    for cell in (first, second):
        scores(cell, column, tier)  # or an error that names the cell
    return in_column(paper_of(first), column, tier)


def differences(
    first: str, others: Sequence[str], places: Mapping[str, str], *, column: str = TUNED, tier: str = "laptop"
) -> pd.DataFrame:
    """Return one method's lead in final accuracy over each of several others, in several settings.

    Args:
        first: the method whose leads are wanted, such as ``fedadt``.
        others: the methods that it is compared with.
        places: name of a setting -> the names of its cells without their last part, which is the method.
        column, tier: as in :func:`in_column`.

    Returns:
        One row per setting and other method: place (the setting's name), other, mean, low and high (in points, paired
        by seed, with the same interval as for claims), seeds, verdict (above, below, equivalent or open).
        :func:`.plot_differences` draws this table.

    Example:
        >>> found = differences("fedadt", ["fedbuff"], {"MNIST": "fedadt/table1/mnist-dir0.1"})
        >>> found[["place", "other", "seeds", "verdict"]].values.tolist()
        [['MNIST', 'fedbuff', 10, 'below']]
    """
    rows = []
    for (name, place), other in itertools.product(places.items(), others):
        found = _above(f"{place}/{first}", f"{place}/{other}", 0.0, column, tier)
        apart = found.contrast
        numbers = [100 * apart.mean, 100 * apart.low, 100 * apart.high, apart.seeds] if apart else [math.nan] * 4
        rows.append([name, other, *numbers, _said(found)])
    return pd.DataFrame(rows, columns=["place", "other", "mean", "low", "high", "seeds", "verdict"])


def leads(
    first: str, second: str, *, over: str = "version", windows: int = 8, column: str = TUNED, tier: str = "laptop"
) -> pd.DataFrame:
    """Return a recorded cell's lead over another in successive windows of training.

    Args:
        first: the cell whose lead is wanted.
        second: the cell that it is compared with.
        over: the axis that is cut into windows, up to the end of the second cell's longest run: ``version``, ``time``
            or ``updates``.
        windows: number of windows, which are equally long.
        column, tier: as in :func:`in_column`.

    Returns:
        One row per window: until (its end), first and second (mean accuracies over its tests and seeds, percent), mean,
        low and high (of the lead, in points; paired by seed, with the same interval as for claims), seeds. A seed
        without a test in the window is left out of that window.

    Example:
        >>> found = leads(*(f"fedecho/table2/large-dir0.1/{name}" for name in ("fedecho-natural", "fedbuff")))
        >>> found[["until", "mean"]].round(1).iloc[[0, -1]].to_numpy().tolist()
        [[25.0, 1.3], [200.0, 0.7]]
    """
    measured = _with_both(first, second, column, tier)
    curves = [pd.concat(measured.curves[cell]) for cell in (first, second)]
    ends = np.linspace(0, curves[1][over].max(), windows + 1)
    means = [
        100 * one.groupby(["seed", pd.cut(one[over], ends, labels=ends[1:])], observed=True)["accuracy"].mean()
        for one in curves
    ]
    both = pd.concat(means, axis=1, keys=["first", "second"]).dropna()
    rows = []
    for until, inside in both.groupby(level=over, observed=False):
        found = contrast((inside["first"] - inside["second"]).to_numpy(), first)
        rows.append([until, *inside.mean(), found.mean, found.low, found.high, found.seeds])
    return pd.DataFrame(rows, columns=["until", "first", "second", "mean", "low", "high", "seeds"])
