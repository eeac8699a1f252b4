"""Comparisons that KUIPER's claims are made of, with the verdicts of :class:`Measured`.

Targets for times: the paper's 40% on HMDB51 is 87% of the best accuracy that it reports there (46.15%), and all
runs whose times it compares reach it. Ours is 87% of the lowest mean final accuracy of the compared runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from asyncfl_lite.reproduction.claims.base import (
    DID_NOT_TRAIN,
    FAILS,
    FEWEST_SEEDS,
    HOLDS,
    NOT_RUN,
    UNDECIDED,
    Finding,
    Measured,
    all_ran,
    deviation,
)

SHARE_OF_FINAL = 0.87


def cell(*parts: str) -> str:
    """Return a cell's name."""
    return "/".join(("kuiper", *parts))


def larger(left: tuple[str, np.ndarray | None], right: tuple[str, np.ndarray | None]) -> Finding:
    """Whether one named number, a value a seed, has the larger mean, with the verdicts of :meth:`Measured.above`."""
    known = {name: pd.DataFrame({"number": values}) for name, values in (left, right) if values is not None}
    return Measured(known).above(left[0], right[0], number="number")


def gap(m: Measured, better: str, worse: str) -> np.ndarray | None:
    """Return one cell's accuracy less another's seed by seed, in points; None where they have not the same seeds."""
    left, right = m.values(better), m.values(worse)
    return None if left is None or right is None or len(left) != len(right) else left - right


def rising(m: Measured, cells: Sequence[str], number: str = "final_accuracy") -> Finding:
    """Whether each cell that was run lies above the one before it."""
    ran = [name for name in cells if m.values(name, number) is not None]
    return all_ran(m.above(after, before, number=number) for before, after in zip(ran, ran[1:], strict=False))


def growing(named: Iterable[tuple[str, np.ndarray | None]]) -> Finding:
    """Whether each named number that is known is larger than the one before it."""
    known = [one for one in named if one[1] is not None]
    return all_ran(larger(after, before) for before, after in zip(known, known[1:], strict=False))


def below(m: Measured, name: str, limit: float) -> Finding:
    """Whether a cell's accuracy lies below ``limit`` percent by more than its deviation."""
    values = m.values(name)
    if values is None:
        return Finding(NOT_RUN, "not run")
    text = f"{name.split('/', 1)[-1]}: {values.mean():.1f} ± {deviation(values):.1f}, limit {limit:g}"
    if len(values) < FEWEST_SEEDS or abs(limit - values.mean()) <= deviation(values):
        return Finding(UNDECIDED, text)
    return Finding(HOLDS if values.mean() < limit else FAILS, text)


def sooner_in_order(m: Measured, cells: Sequence[str]) -> Finding:
    """Whether each cell reaches the common target sooner than the next, where all were run."""
    finals = [m.values(name) for name in cells]
    if any(values is None for values in finals):
        return Finding(NOT_RUN, "not run")
    target = round(SHARE_OF_FINAL * min(values.mean() for values in finals), 1)
    return all_ran(m.sooner(first, second, target) for first, second in zip(cells, cells[1:], strict=False))


def no_difference(m: Measured, left: str, right: str) -> Finding:
    """Whether two cells' accuracies differ by no more than one pooled deviation."""
    finding, values = m.above(left, right), [m.values(name) for name in (left, right)]
    if finding.verdict in (NOT_RUN, DID_NOT_TRAIN) or min(map(len, values)) < FEWEST_SEEDS:
        return finding
    return Finding(HOLDS if finding.verdict == UNDECIDED else FAILS, finding.detail)


def unimodal(m: Measured, cells: Sequence[str]) -> Finding:
    """Whether accuracy rises to the best of the cells that were run, of which there must be 3, and falls after it."""
    ran = [name for name in cells if m.values(name) is not None]
    if len(ran) < 3:
        return Finding(NOT_RUN, "fewer than 3 points were run")
    best = max(range(len(ran)), key=lambda place: m.values(ran[place]).mean())
    up = (m.above(after, before) for before, after in zip(ran[:best], ran[1 : best + 1], strict=True))
    down = (m.above(before, after) for before, after in zip(ran[best:-1], ran[best + 1 :], strict=True))
    return all_ran([*up, *down])


def unmoved(m: Measured, name: str) -> Finding:
    """Whether a cell's accuracy is at the end what it was before training."""
    if name not in m.curves:
        return Finding(NOT_RUN, "not run")
    first, last = (np.array([100 * curve["accuracy"].iloc[at] for curve in m.curves[name]]) for at in (0, -1))
    text = f"{name.split('/', 1)[-1]}: {first.mean():.1f} at the start, {last.mean():.1f} at the end"
    return Finding(HOLDS if (first == last).all() else FAILS, text)


def time_of_round(m: Measured, name: str) -> np.ndarray | None:
    """Return a cell's virtual time a version, one a seed."""
    time, versions = m.values(name, "virtual_time"), m.values(name, "versions")
    return None if time is None else time / versions
