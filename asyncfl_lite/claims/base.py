"""The papers' claims as predicates over recorded results.

A verdict is ``holds``, ``undecided`` (a difference within one pooled standard deviation over seeds, or fewer
than three seeds), ``fails`` or ``not run``; it never says more than was measured. What the paper's own printed
numbers say of the claim stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

HOLDS, UNDECIDED, FAILS, NOT_RUN = "holds", "undecided", "fails", "not run"
VERDICTS = (HOLDS, UNDECIDED, FAILS, NOT_RUN)
FEWEST_SEEDS = 3


class Finding(NamedTuple):
    """A verdict and the numbers behind it."""

    verdict: str
    detail: str


@dataclass(frozen=True)
class Measured:
    """What was recorded, by cell.

    Attributes:
        summaries: cell -> its runs' summaries, a row a seed; cells that were not run are absent.
    """

    summaries: Mapping[str, pd.DataFrame]

    def values(self, cell: str, number: str = "final_accuracy") -> np.ndarray | None:
        """Return one number over a cell's seeds, accuracies in points, or None when it was not run."""
        if cell not in self.summaries:
            return None
        return self.summaries[cell][number].to_numpy() * (100 if "accuracy" in number else 1)

    def above(self, better: str, worse: str, margin: float = 0.0, number: str = "final_accuracy") -> Finding:
        """Whether one cell's mean lies above another's by more than ``margin``."""
        left, right = self.values(better, number), self.values(worse, number)
        names = f"{_short(better)} against {_short(worse)}"
        if left is None or right is None:
            return Finding(NOT_RUN, f"{names}: not run")
        difference, spread = left.mean() - right.mean() - margin, pooled_deviation(left, right)
        text = f"{names}: {left.mean():.1f} ± {deviation(left):.1f}, {right.mean():.1f} ± {deviation(right):.1f}"
        if min(len(left), len(right)) < FEWEST_SEEDS or abs(difference) <= spread:
            return Finding(UNDECIDED, text)
        return Finding(HOLDS if difference > 0 else FAILS, text)


def deviation(values: np.ndarray) -> float:
    """Return the sample standard deviation, 0 for a single value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def pooled_deviation(left: np.ndarray, right: np.ndarray) -> float:
    """Return the pooled standard deviation of two samples."""
    freedom = max(1, len(left) + len(right) - 2)
    squares = ((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum()
    return float(np.sqrt(squares / freedom))


def all_of(*findings: Finding) -> Finding:
    """Join findings of which every one must hold; those not run are named, and decide only if nothing ran."""
    ran = [finding for finding in findings if finding.verdict != NOT_RUN]
    detail = "; ".join(finding.detail for finding in findings)
    if not ran:
        return Finding(NOT_RUN, detail)
    verdicts = {finding.verdict for finding in ran}
    return Finding(next(v for v in (FAILS, UNDECIDED, HOLDS) if v in verdicts), detail)


def _short(cell: str) -> str:
    return cell.split("/", 1)[-1].removeprefix("table2/")


@dataclass(frozen=True)
class Claim:
    """One statement of a paper that can be checked.

    Attributes:
        id: as in the list of experiments, ``FE-T2-a``.
        artefact: the table or figure.
        text: what is claimed.
        printed: what the paper's own numbers say of it.
        check: from recorded results to a finding.
    """

    id: str
    artefact: str
    text: str
    printed: str
    check: Callable[[Measured], Finding]


def not_run(why: str) -> Callable[[Measured], Finding]:
    """Return the check of a claim for which nothing can be run yet."""
    return lambda measured: Finding(NOT_RUN, why)


def check_claims(measured: Measured, claims: Iterable[Claim]) -> pd.DataFrame:
    """Return a row a claim: id, artefact, claim, paper (what its numbers say), ours, detail."""
    rows = []
    for claim in claims:
        finding = claim.check(measured)
        rows.append([claim.id, claim.artefact, claim.text, claim.printed, finding.verdict, finding.detail])
    return pd.DataFrame(rows, columns=["id", "artefact", "claim", "paper", "ours", "detail"])
