"""Findings, which are verdicts with the numbers behind them, from one comparison by seed or from several.

Accuracies are fractions; texts print percent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from asyncfl_lite.base.errors import how_many
from asyncfl_reproduction import statistics
from asyncfl_reproduction.number_texts import interval_text, mean_text
from asyncfl_reproduction.statistics import EQUAL_POINTS, Contrast, contrast, within_a_claim
from asyncfl_reproduction.verdict_words import FAILS, HOLDS, NOT_RUN, REFUTED, joined, parts_counted

MOST_LISTED = 6
"""Largest number of parts of a claim that a finding lists one by one."""
Seeds = pd.Series | np.ndarray
"""Numbers of a cell's runs: a series by seed, or ``(seeds,)`` numbers for seeds 0, 1, …"""


class Finding(NamedTuple):
    """A verdict and the numbers behind it.

    Attributes:
        verdict: one of :data:`VERDICTS`.
        detail: the numbers in words.
        contrast: the comparison, if the finding is a single comparison.
        parts: the findings that it joins; empty if it joins none.
        p: p value of a decision without a contrast, scaled so that its threshold is 5 %; otherwise NaN.
    """

    verdict: str
    detail: str
    contrast: Contrast | None = None
    parts: tuple[Finding, ...] = ()
    p: float = math.nan

    @property
    def leaves(self) -> tuple[Finding, ...]:
        """The single findings that this one joins, or the finding itself if it joins none."""
        return self.parts or (self,)

    @property
    def contrasts(self) -> list[Contrast]:
        """The comparisons on which the finding rests."""
        return [leaf.contrast for leaf in self.leaves if leaf.contrast is not None]

    @property
    def verdicts(self) -> list[str]:
        """The verdicts of its parts; a refutation that does not pass Holm's correction over all parts is open."""
        if not self.parts:
            return [self.verdict]
        corrected = iter(within_a_claim(self.contrasts))
        return [leaf.verdict if leaf.contrast is None else next(corrected)[0] for leaf in self.parts]

    @property
    def weight(self) -> float:
        """The finding's p value, scaled so that its threshold is always 5 %; NaN if nothing was tested.

        If some parts refute the claim, it is the smallest of their p values after Holm's correction; otherwise it is
        the largest p value of all parts. A part that is equivalent, or that claims no difference, has the p value of
        equivalence.
        """
        tested = [(leaf.verdict, leaf.p) for leaf in self.leaves if leaf.contrast is None and not math.isnan(leaf.p)]
        tested += within_a_claim(self.contrasts)
        if not tested:
            return math.nan
        refuting = [p for verdict, p in tested if verdict == self.verdict in REFUTED]
        return min(refuting) if refuting else max(p for _, p in tested)


def as_finding(holds: bool, text: str) -> Finding:
    """Return a finding that holds or fails, for a claim that numbers alone decide, without a statistical test."""
    return Finding(HOLDS if holds else FAILS, text)


def by_seed(values: Seeds) -> pd.Series:
    """Return numbers as a series by seed; the numbers of an array belong to seeds 0, 1, …"""
    return values if isinstance(values, pd.Series) else pd.Series(np.asarray(values, float))


def compare(
    left: Seeds | None,
    right: Seeds | None,
    label: str,
    margin: float = 0.0,
    *,
    unit: str = "points",
    scale: float = 100.0,
    marks: tuple[str, str] = ("", ""),
) -> Finding:
    """Check whether ``left`` lies above ``right`` by more than ``margin``, over their common seeds.

    Args:
        left: numbers by seed; None if nothing was run.
        right: the same for the other side.
        label: what is compared, such as ``fedecho against fedbuff``.
        margin: the margin, in the unit of the numbers.
        unit: "points" for accuracies, which are equivalent within a point; other units have no such bounds.
        scale: factor for printed numbers; accuracies are fractions here, and percentages in texts.
        marks: texts that are printed after each side's numbers.

    Returns:
        One of the verdicts of a contrast, or ``not run`` without numbers.
    """
    if left is None or right is None:
        return Finding(NOT_RUN, f"{label}: not run")
    left, right = by_seed(left).dropna().align(by_seed(right).dropna(), join="inner")
    equal = EQUAL_POINTS if unit == "points" else None
    found = contrast((left - right).to_numpy(), label, margin, unit=unit, equal=equal)
    shown = (f"{mean_text(scale * side)}{mark}" for side, mark in zip((left, right), marks, strict=True))
    asked = f" (asked: above {scale * margin:g})" if margin else ""
    return Finding(found.verdict, f"{label}: {', '.join(shown)}, {interval_text(found, scale)}{asked}", found)


def as_equality(finding: Finding) -> Finding:
    """Turn a finding on a difference into a finding on the claim that there is no difference."""
    if finding.contrast is None:
        return finding
    found = statistics.as_equality(finding.contrast, EQUAL_POINTS)
    return Finding(found.verdict, f"{finding.detail} (asked: within {100 * EQUAL_POINTS:g})", found)


def all_of(findings: Iterable[Finding], nothing: str = "") -> Finding:
    """Join several findings into one for a claim that needs all of them to hold.

    Refutations are corrected over all parts, see :func:`.within_a_claim`. Up to six parts are listed one by one; of
    more parts, only those that decide. If none was run, the text is ``nothing``.
    """
    leaves = tuple(leaf for finding in findings for leaf in finding.leaves)
    if all(leaf.verdict == NOT_RUN for leaf in leaves):
        return Finding(NOT_RUN, nothing or "; ".join(leaf.detail for leaf in leaves[:MOST_LISTED]), parts=leaves)
    parts = Finding(NOT_RUN, "", parts=leaves).verdicts
    verdict = joined(parts)
    return Finding(verdict, _in_words(leaves, parts, verdict), parts=leaves)


def _in_words(leaves: Sequence[Finding], verdicts: Sequence[str], verdict: str) -> str:
    if len(leaves) == 1:
        return leaves[0].detail
    ran = [(leaf.detail, own) for leaf, own in zip(leaves, verdicts, strict=True) if own != NOT_RUN]
    listed = [detail for detail, own in ran if own == verdict or len(ran) <= MOST_LISTED]
    more = [f"{len(listed) - MOST_LISTED} more"] if len(listed) > MOST_LISTED else []
    share = f"{len(ran)} of " * (len(ran) < len(leaves))
    summary = f"{share}{how_many(len(leaves), 'part')}{' run' * bool(share)}: {parts_counted(verdicts)}"
    return "; ".join([summary, *listed[:MOST_LISTED], *more])


def pooled_deviation(left: np.ndarray, right: np.ndarray) -> float:
    """Return the pooled standard deviation of two samples."""
    freedom = max(1, len(left) + len(right) - 2)
    squares = ((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum()
    return float(np.sqrt(squares / freedom))


def short(cell: str) -> str:
    """Return a cell's name without its paper, as shown in findings."""
    return cell.split("/", 1)[-1].removeprefix("table2/")


def against(left: str, right: str) -> str:
    """Return the label of a comparison of two cells."""
    return f"{short(left)} against {short(right)}"
