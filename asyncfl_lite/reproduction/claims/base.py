"""The papers' claims as predicates over recorded results.

A verdict is ``holds``, ``undecided`` (a difference within one pooled standard deviation over seeds, or fewer
than three seeds), ``fails``, ``did not train`` (:meth:`Measured.is_constant`) or ``not run``; it never says more than
was measured. The rule is mild: of two equal methods with three seeds each, one lies beyond one pooled standard
deviation of the other in 29 % of trials, and in 5 % only from about nine seeds. What the paper's own printed numbers
say of the claim stands beside it. Accuracies and targets are fractions; the texts of findings print percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from asyncfl_lite.runs.summary import is_constant_answer

HOLDS, UNDECIDED, FAILS = "holds", "undecided", "fails"
DID_NOT_TRAIN, NOT_RUN = "did not train", "not run"
VERDICTS = (HOLDS, UNDECIDED, FAILS, DID_NOT_TRAIN, NOT_RUN)
CONSTANT = "constant answer"
"""Mark beside a number of runs that answer one class for everything."""
FEWEST_SEEDS = 3


class Finding(NamedTuple):
    """A verdict and the numbers behind it."""

    verdict: str
    detail: str


def compare(
    left: np.ndarray | None,
    right: np.ndarray | None,
    label: str,
    margin: float = 0.0,
    *,
    scale: float = 100.0,
    marks: tuple[str, str] = ("", ""),
) -> Finding:
    """Whether the mean of ``left`` lies above that of ``right`` by more than ``margin``.

    Args:
        left: ``(seeds,)`` numbers; None where nothing was run.
        right: likewise; the numbers of seeds may differ.
        label: what is compared, such as ``fedecho against fedbuff``.
        margin: in the unit of the numbers.
        scale: what numbers are multiplied by where they are printed: accuracies are fractions here, percent in texts.
        marks: what is printed behind each side's numbers.

    Returns:
        ``undecided`` within one pooled standard deviation or with fewer than three seeds, ``not run`` without numbers.
    """
    if left is None or right is None:
        return Finding(NOT_RUN, f"{label}: not run")
    shown = (f"{mean_text(scale * side)}{mark}" for side, mark in zip((left, right), marks, strict=True))
    text, difference = f"{label}: {', '.join(shown)}", left.mean() - right.mean() - margin
    if min(len(left), len(right)) < FEWEST_SEEDS or abs(difference) <= pooled_deviation(left, right):
        return Finding(UNDECIDED, text)
    return Finding(HOLDS if difference > 0 else FAILS, text)


@dataclass(frozen=True)
class Measured:
    """What was recorded, by cell.

    Attributes:
        summaries: cell -> its runs' summaries, one row per seed; cells that were not run are absent.
        curves: cell -> its runs' curves (version, time, updates, accuracy, …), one per seed.
    """

    summaries: Mapping[str, pd.DataFrame]
    curves: Mapping[str, Sequence[pd.DataFrame]] = field(default_factory=dict)

    def constant_runs(self, cell: str) -> int:
        """Return how many of a cell's runs answer one class for everything; see :func:`is_constant_answer`."""
        runs = self.summaries[cell].to_dict("records") if cell in self.summaries else []
        return sum(map(is_constant_answer, runs))

    def is_constant(self, cell: str) -> bool:
        """Return whether most of a cell's runs, more than half, answer one class for everything.

        Their accuracy is that class's share of the test set, so a difference from it speaks for no method and against
        none, however large it is. A comparison with such a cell on either side is therefore neither decided nor
        undecided: the cell did not train. With fewer such runs the cell has trained, if unsteadily, and they belong to
        its spread.
        """
        return 2 * self.constant_runs(cell) > len(self.summaries.get(cell, ()))

    def mark(self, *cells: str) -> str:
        """Return the mark behind a number of these cells: " (constant answer)", with how many seeds; or nothing."""
        runs = sum(len(self.summaries[cell]) for cell in cells if cell in self.summaries)
        constant = sum(map(self.constant_runs, cells))
        return f" ({CONSTANT}{f' with {constant} of {runs} seeds' * (constant < runs)})" if constant else ""

    def without(self, cells: Collection[str]) -> Measured:
        """Return the same as if these cells had not been run."""
        return Measured(*({name: of[name] for name in of if name not in cells} for of in (self.summaries, self.curves)))

    def unmarked(self) -> Measured:
        """Return the same without the number that shows which runs answer one class for everything."""
        frames = {cell: runs.drop(columns="largest_prediction_share", errors="ignore") for cell, runs in
                  self.summaries.items()}  # fmt: skip
        return Measured(frames, self.curves)

    def values(self, cell: str, number: str = "final_accuracy") -> np.ndarray | None:
        """Return one number of a cell's summaries, ``(seeds,)``; accuracies are fractions. None when it was not run."""
        if cell not in self.summaries or number not in self.summaries[cell]:  # some numbers came later than others
            return None
        return self.summaries[cell][number].to_numpy()

    def gap(self, better: str, worse: str, number: str = "final_accuracy") -> np.ndarray | None:
        """Return one cell's number less another's, seed by seed; None where the cells do not have the same seeds."""
        left, right = self.values(better, number), self.values(worse, number)
        return None if left is None or right is None or len(left) != len(right) else left - right

    def times_to(self, cell: str, target: float, window: int = 1) -> np.ndarray | None:
        """Return a cell's virtual times to an accuracy of ``target``, a fraction, one per seed; see :func:`time_to`."""
        if cell not in self.curves:
            return None
        return np.array([time_to(curve, target, window) for curve in self.curves[cell]])

    def sooner(self, faster: str, slower: str, target: float, window: int = 1) -> Finding:
        """Whether one cell's mean time to ``target`` is shorter than another's; never is infinitely long."""
        left, right = self.times_to(faster, target, window), self.times_to(slower, target, window)
        names = f"{against(faster, slower)}, time to {100 * target:g}%"
        if left is None or right is None:
            return Finding(NOT_RUN, f"{names}: not run")
        text = f"{names}: {time_text(left)}{self.mark(faster)}, {time_text(right)}{self.mark(slower)}"
        if self.is_constant(faster) or self.is_constant(slower):
            return Finding(DID_NOT_TRAIN, text)
        if np.isinf([left.mean(), right.mean()]).all() or min(len(left), len(right)) < FEWEST_SEEDS:
            return Finding(UNDECIDED, text)
        if np.isinf([left.mean(), right.mean()]).any():
            return Finding(HOLDS if np.isinf(right.mean()) else FAILS, text)
        difference = right.mean() - left.mean()
        if abs(difference) <= pooled_deviation(left, right):
            return Finding(UNDECIDED, text)
        return Finding(HOLDS if difference > 0 else FAILS, text)

    def above(self, better: str, worse: str, margin: float = 0.0, number: str = "final_accuracy") -> Finding:
        """Whether one cell's mean lies above another's by more than ``margin``, a fraction for accuracies."""
        label = against(better, worse) + ("" if number == "final_accuracy" else f", {number.replace('_', ' ')}")
        sides = self.values(better, number), self.values(worse, number)
        marks, scale = (self.mark(better), self.mark(worse)), 100.0 if "accuracy" in number else 1.0
        finding = compare(*sides, label, margin, scale=scale, marks=marks)
        if finding.verdict != NOT_RUN and (self.is_constant(better) or self.is_constant(worse)):
            return Finding(DID_NOT_TRAIN, finding.detail)
        return finding


def time_to(curve: pd.DataFrame, target: float, window: int = 1) -> float:
    """Return the virtual time of the first evaluation at which accuracy is at least ``target``.

    Args:
        curve: a run's evaluations in order, with ``time`` and ``accuracy`` (a fraction).
        target: a fraction.
        window: average over so many last evaluations (fewer at the start), as FedRevive's running average.

    Returns:
        The time, or infinity when it is not reached.
    """
    reached = curve["accuracy"].rolling(window, min_periods=1).mean() >= target
    return float(curve["time"][reached].iloc[0]) if reached.any() else math.inf


def mean_text(values: np.ndarray, digits: int = 1) -> str:
    """Return mean and standard deviation of ``(seeds,)`` numbers: ``93.1 ± 0.5``."""
    return f"{values.mean():.{digits}f} ± {deviation(values):.{digits}f}"


def time_text(times: np.ndarray) -> str:
    """Return ``31.2 ± 4.0``, or how many seeds did not reach the target."""
    never = int(np.isinf(times).sum())
    if never:
        return "not reached" + (f" with {never} of {len(times)} seeds" if never < len(times) else "")
    return mean_text(times)


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
    return Finding(next(v for v in (FAILS, DID_NOT_TRAIN, UNDECIDED, HOLDS) if v in verdicts), detail)


def all_ran(findings: Iterable[Finding], nothing: str = "not run") -> Finding:
    """Join findings as :func:`all_of`, but count those that were not run in place of naming each.

    Args:
        findings: of which every one must hold.
        nothing: what to say when none was run.
    """
    findings = list(findings)
    ran = [finding for finding in findings if finding.verdict != NOT_RUN]
    if not ran:
        return Finding(NOT_RUN, nothing)
    verdict, detail = all_of(*ran)
    missing = len(findings) - len(ran)
    return Finding(verdict, f"{detail}; {missing} of {len(findings)} comparisons not run" if missing else detail)


def short(cell: str) -> str:
    """Return a cell's name without its paper, as findings print it."""
    return cell.split("/", 1)[-1].removeprefix("table2/")


def against(left: str, right: str) -> str:
    """Return the label of a comparison of two cells."""
    return f"{short(left)} against {short(right)}"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper that can be checked.

    Attributes:
        id: paper, artefact and a letter, ``FE-T2-a``.
        artefact: the table or figure.
        text: what is claimed.
        printed: what the paper's own numbers say of it.
        check: from recorded results to a finding.
        of_constant_answers: whether the claim itself is that runs answer one class or do not train, so that such runs
            do not keep it from being decided.
    """

    id: str
    artefact: str
    text: str
    printed: str
    check: Callable[[Measured], Finding]
    of_constant_answers: bool = False


def not_run(why: str) -> Callable[[Measured], Finding]:
    """Return the check of a claim for which nothing can be run yet."""
    return lambda measured: Finding(NOT_RUN, why)


@dataclass(frozen=True)
class _Watched(Measured):
    """What was recorded, and of which cells accuracies, losses or times to a target were asked for."""

    asked: set[str] = field(default_factory=set)

    def values(self, cell: str, number: str = "final_accuracy") -> np.ndarray | None:
        if any(word in number for word in ("accuracy", "loss", "perplexity")):  # other numbers are the clock's
            self.asked.add(cell)
        return super().values(cell, number)

    def times_to(self, cell: str, target: float, window: int = 1) -> np.ndarray | None:
        self.asked.add(cell)
        return super().times_to(cell, target, window)


def check_claim(measured: Measured, claim: Claim) -> Finding:
    """Return a claim's finding; ``did not train`` if it rests on a cell that answers one class for everything.

    It rests on the cells whose accuracies or times it asks for, one such cell being enough
    (:meth:`Measured.is_constant`). It still fails if it fails without them: one comparison of cells that trained is
    enough to refute a claim.
    """
    given = measured.unmarked() if claim.of_constant_answers else measured
    watched = _Watched(given.summaries, given.curves)
    finding = claim.check(watched)
    constant = sorted(cell for cell in watched.asked if measured.is_constant(cell))
    if not constant or finding.verdict == NOT_RUN:
        return finding
    if not claim.of_constant_answers:
        rest = claim.check(measured.without(constant))
        finding = rest if rest.verdict == FAILS else Finding(DID_NOT_TRAIN, finding.detail)
    return Finding(finding.verdict, f"{finding.detail}; {CONSTANT}: {', '.join(map(short, constant))}")


def check_claims(measured: Measured, claims: Iterable[Claim]) -> pd.DataFrame:
    """Return one row per claim: id, artefact, claim, paper (what its numbers say), ours, detail."""
    rows = []
    for claim in claims:
        finding = check_claim(measured, claim)
        rows.append([claim.id, claim.artefact, claim.text, claim.printed, finding.verdict, finding.detail])
    return pd.DataFrame(rows, columns=["id", "artefact", "claim", "paper", "ours", "detail"])
