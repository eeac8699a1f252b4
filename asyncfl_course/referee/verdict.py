"""Verdicts of sealed plans on recorded runs, by the control's proofs first and by the difference second."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from asyncfl_course.records import EQUAL_POINTS, NOT_RUN, as_level, equivalence, interval, judge, with_ends
from asyncfl_course.referee.cases import case
from asyncfl_course.referee.lines import in_lines
from asyncfl_course.referee.plan import Plan, Sealed, unchanged
from asyncfl_course.referee.proofs import failed

NO_VERDICT = "no verdict"
"""Verdict if the control fails one of its proofs."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a sealed plan.

    Attributes:
        plan: the plan.
        digest: the SHA-256 digest of its seal.
        verdict: one of :data:`asyncfl_reproduction.verdicts.VERDICTS`, or ``no verdict``.
        detail: the numbers or the reason behind the verdict.
        mean, low, high: mean difference and the limits of its interval, in points; NaN if nothing was compared.
    """

    plan: Plan
    digest: str
    verdict: str
    detail: str
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan

    def __repr__(self) -> str:
        return in_lines(f"seal {self.digest[:8]}: {self.detail}: {self.verdict}")


def run(plan: Plan, sealed: Sealed) -> Verdict:
    """Run a sealed plan on the recorded runs; the plan must be unchanged.

    Args:
        plan: as it stands now.
        sealed: its seal.

    Returns:
        ``not run`` if fewer seeds are recorded than the plan asks for; ``no verdict`` if the control fails a proof that
        the plan demands, whatever the accuracies; otherwise the verdict of the package's rule on the plan's interval.

    Raises:
        AsyncFLError: the plan was changed after it was sealed, or names a cell or a proof that does not exist.
    """
    unchanged(plan, sealed)
    of, asks, runs, control = case(plan.case), plan.asks, plan.runs, plan.control
    seeds = runs.seeds
    sides = (of.runs(cell, runs.column).loc[: seeds - 1] for cell in (asks.first, control.cell))
    missing = failed(control.shows, *sides)
    gap = of.gap(asks.first, asks.second, runs.metric, runs.column).loc[: seeds - 1]
    said = f"{asks.first} minus {asks.second}, {runs.metric}, {runs.column}"
    if len(gap) < seeds:
        return Verdict(plan, sealed.digest, NOT_RUN, f"{said}, {len(gap)} of {seeds} seeds are recorded")
    if missing:
        told = ", ".join(f"{name} fails on {count} of {seeds} seeds" for name, count in missing.items())
        return Verdict(plan, sealed.digest, NO_VERDICT, f"the control {control.cell} did not act: {told}")
    low, high = interval(gap.to_numpy(), runs.level)
    mean, verdict = float(gap.mean()), judged(plan, low, high, gap.to_numpy())
    asked = f"asked: above {asks.margin:g}" if asks.predicate == "above" else f"asked: within {asks.margin:g}"
    place = "inside" if low <= of.claimed <= high else "outside"
    shown = f"{with_ends(mean, low, high, 2)} ({asked}; the claimed {of.claimed:.2f} lies {place})"
    return Verdict(plan, sealed.digest, verdict, f"{said}, {seeds} seeds: {shown}", mean, low, high)


def judged(plan: Plan, low: float, high: float, gap: np.ndarray) -> str:
    """Return the verdict on a plan's question, judged by the plan's own margin.

    A plan chooses its own margin. If the whole interval lies above this margin, the claim holds, however small the
    difference is.
    """
    level = plan.asks.predicate == "level"
    bound = plan.asks.margin if level else 100 * EQUAL_POINTS
    equal = equivalence(gap, bound) <= 1 - plan.runs.level
    if level:
        return as_level(low, high, equal, bound)
    return judge(low, high, equal and low <= plan.asks.margin and high >= 0, plan.asks.margin)
