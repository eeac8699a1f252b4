"""Verdicts of sealed plans on recorded runs, and the envelopes with the truth behind each claim.

The control's proofs decide first, and the difference second. An envelope is fixed before a plan is run.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asyncfl_course.records import EQUAL_POINTS, NOT_RUN, as_level, equivalence, interval, judge, with_ends
from asyncfl_course.referee.cases import case
from asyncfl_course.referee.plan import Plan, Sealed, digest_of, failed, in_lines, seal, unchanged
from asyncfl_lite.base.errors import AsyncFLError

NO_VERDICT = "no verdict"
"""Verdict if the control fails one of its proofs."""
FOLDER = Path(__file__).parent / "sealed"
"""Folder outside the notebooks, so that students do not see the envelopes' content in the file browser."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a sealed plan.

    Attributes:
        plan: the plan.
        digest: the SHA-256 digest of its seal.
        verdict: one of :data:`asyncfl_reproduction.verdict_words.VERDICTS`, or ``no verdict``.
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
    """Run a sealed plan on the recorded runs.

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
    """Return the verdict on a plan's question: by its own margin, so a sure difference holds, however small it is."""
    level = plan.asks.predicate == "level"
    bound = plan.asks.margin if level else 100 * EQUAL_POINTS
    equal = equivalence(gap, bound) <= 1 - plan.runs.level
    if level:
        return as_level(low, high, equal, bound)
    return judge(low, high, equal and low <= plan.asks.margin and high >= 0, plan.asks.margin)


@dataclass(frozen=True)
class Envelope:
    """The truth behind a claim, from an opened envelope, and its SHA-256, as stated by the case.

    ``verdicts`` maps the subject of each plan in it to that plan's verdict on the records, computed now.
    """

    digest: str
    says: str
    verdicts: dict[str, Verdict]

    def __repr__(self) -> str:
        plans = [f"{about}\n    {found.detail}: {found.verdict}" for about, found in self.verdicts.items()]
        return in_lines("\n".join([f"envelope {self.digest[:8]}, as committed", self.says, *plans]))


def open_envelope(verdict: Verdict, folder: Path = FOLDER) -> Envelope:
    """Open the envelope for the case of a plan that was run.

    Raises:
        AsyncFLError: the plan was not run, or the envelope is not the one to which the case is committed.
    """
    of = case(verdict.plan.case)
    if verdict.verdict == NOT_RUN:
        raise AsyncFLError(f"{of.name}: the envelope stays sealed until a plan has been run; {verdict.detail}")
    content = (folder / f"{of.name}.json").read_bytes()
    digest = digest_of(content)
    if digest != of.commitment:
        raise AsyncFLError(f"{of.name}: the envelope is not the one that was committed to: {digest[:8]}, not "
                           f"{of.commitment[:8]}")  # fmt: skip
    told = json.loads(content)
    plans = {about: Plan.from_mapping(plan) for about, plan in told["plans"].items()}
    return Envelope(digest, told["says"], {about: run(plan, seal(plan)) for about, plan in plans.items()})
