"""Recorded results by cell, and comparisons of cells by seed, usually by mean accuracy in the last five tests.

Accuracies and targets are fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from asyncfl_lite.runs.results import Result, is_constant_answer
from asyncfl_reproduction.claims.findings import Finding, against, as_equality, compare
from asyncfl_reproduction.grid.cells import ALL_PRINTED, SERVER_RATE, TWIN
from asyncfl_reproduction.number_texts import interval_text, time_text
from asyncfl_reproduction.statistics import EQUAL_POINTS, EQUAL_RATIO, contrast, log_ratios
from asyncfl_reproduction.verdict_words import NOT_RUN, OPEN

ACCURACY = "last5_accuracy"
"""The number that is compared by default: the mean of the last five tests."""
CONSTANT = "constant answer"
"""Mark after a number that comes from runs whose final model predicts one class for every input."""
UNTRAINED = "did not train"
"""What a comparison's text says if most runs of one side give constant answers."""
INSTEAD = {"tuned": (), "server_rate": (SERVER_RATE,), "printed": (TWIN, SERVER_RATE), "all_printed": (ALL_PRINTED,)}
"""Column -> endings of the cells that take the tuned cells' place; the first that the tier plans. Beside plain FedBuff,
other methods have a fixed server rate, too."""
TUNED, AT_FIXED_RATE = COLUMNS = ("tuned", "server_rate")
"""Columns in which trained claims are checked."""


@dataclass(frozen=True)
class Measured:
    """Recorded results of a tier, by cell.

    Attributes:
        summaries: cell -> its runs' summaries, one row per seed, with the column ``seed`` (without it, seeds are 0, 1,
            …); cells that were not run are absent.
        curves: cell -> its runs' curves (version, time, updates, accuracy, …), one per seed, in the same order.
        planned: the cells of the tier, recorded or not; by default those that are recorded.
    """

    summaries: Mapping[str, pd.DataFrame]
    curves: Mapping[str, Sequence[pd.DataFrame]] = field(default_factory=dict)
    planned: Collection[str] = ()

    @classmethod
    def of(cls, results: Mapping[str, Sequence[Result]], planned: Collection[str] = ()) -> Measured:
        """Return the summaries and curves of results by cell."""
        summaries = {
            cell: pd.DataFrame([run.summary | {"seed": run.config.seed} for run in runs])
            for cell, runs in results.items()
        }
        return cls(summaries, {cell: [run.curve for run in runs] for cell, runs in results.items()}, planned)

    def column(self, name: str) -> Measured:
        """Return the results for one column, a key of :data:`INSTEAD`, with the names of the tuned cells.

        A cell that the tier plans for the column takes the place of the tuned one, and counts as not run if it was not
        recorded. Other cells are the same in all columns, because nothing of them is fixed.
        """
        plan = self.planned or self.summaries
        found = {
            cell: next((cell + ending for ending in INSTEAD[name] if cell + ending in plan), cell)
            for cell in dict.fromkeys(name.partition("@")[0] for name in plan)
        }
        chosen = [{cell: of[own] for cell, own in found.items() if own in of} for of in (self.summaries, self.curves)]
        return replace(self, summaries=chosen[0], curves=chosen[1])

    @property
    def twins(self) -> set[str]:
        """Cells that also exist with a fixed server rate."""
        return {cell.removesuffix(SERVER_RATE) for cell in self.planned or self.summaries if cell.endswith(SERVER_RATE)}

    def plans(self, cell: str) -> bool:
        """Return whether the tier contains this cell, recorded or not."""
        return cell in (self.planned or self.summaries)

    def constant_runs(self, cell: str) -> int:
        """Return how many of a cell's runs predict one class for every input."""
        runs = self.summaries.get(cell)
        share = "largest_prediction_share"
        if runs is None or share not in runs or 1 not in runs[share].to_numpy():
            return 0
        columns = [share, "worst_class_accuracy"]
        return sum(map(is_constant_answer, runs[[name for name in columns if name in runs]].to_dict("records")))

    def is_constant(self, cell: str) -> bool:
        """Return whether more than half of a cell's runs predict one class for every input.

        The accuracy of such a run is that class's share of the test set, so a difference from it is evidence neither
        for nor against a method, and a comparison with such a cell is ``open``.
        """
        return 2 * self.constant_runs(cell) > len(self.summaries.get(cell, ()))

    def mark(self, *cells: str) -> str:
        """Return the mark to print after a number that rests on cells with constant answers, or an empty string.

        It gives the number of seeds with such answers, unless all seeds have them.
        """
        runs = sum(len(self.summaries[cell]) for cell in cells if cell in self.summaries)
        constant = sum(map(self.constant_runs, cells))
        return f" ({CONSTANT}{f' with {constant} of {runs} seeds' * (constant < runs)})" if constant else ""

    def without(self, cells: Collection[str]) -> Measured:
        """Return a copy without the results of these cells."""
        rest = [{name: of[name] for name in of if name not in cells} for of in (self.summaries, self.curves)]
        return replace(self, summaries=rest[0], curves=rest[1])

    def unmarked(self) -> Measured:
        """Return a copy in which no run counts as a constant answer."""
        frames = {cell: runs.drop(columns="largest_prediction_share", errors="ignore") for cell, runs in
                  self.summaries.items()}  # fmt: skip
        return replace(self, summaries=frames)

    def by_seed(self, cell: str, number: str = ACCURACY) -> pd.Series | None:
        """Return one number of a cell's summaries by seed (accuracies as fractions); None if the cell was not run."""
        if cell not in self.summaries or number not in self.summaries[cell]:  # summaries may lack newer numbers
            return None
        return pd.Series(self.summaries[cell][number].to_numpy(), self._seeds(cell))

    def values(self, cell: str, number: str = "final_accuracy") -> np.ndarray | None:
        """Return one number of a cell's summaries as ``(seeds,)`` (accuracies as fractions); None if it was not run."""
        found = self.by_seed(cell, number)
        return None if found is None else found.to_numpy()

    def gap(self, better: str, worse: str, number: str = ACCURACY) -> pd.Series | None:
        """Return one cell's number minus another's by seed, or None if the cells have no seed in common."""
        left, right = self.by_seed(better, number), self.by_seed(worse, number)
        if left is None or right is None or not len(left.index.intersection(right.index)):
            return None
        return (left - right).dropna()

    def gap_in_time(self, better: str, worse: str) -> pd.Series | None:
        """Return one cell's accuracy minus another's by seed, at the time when the first of the two runs ends.

        The accuracy of the run that goes on is that of its last test up to this time. Without a common seed, the result
        is None.
        """
        left, right = (
            None if cell not in self.curves else pd.Series(list(self.curves[cell]), self._seeds(cell), dtype=object)
            for cell in (better, worse)
        )
        if left is None or right is None or not len(left.index.intersection(right.index)):
            return None
        found = {}
        for seed in left.index.intersection(right.index):
            end = min(_last_test(left[seed]), _last_test(right[seed]))
            found[seed] = accuracy_at(left[seed], end) - accuracy_at(right[seed], end)
        return pd.Series(found)

    def of_curves(self, cell: str, number: Callable[[pd.DataFrame], float]) -> pd.Series | None:
        """Return a number computed from each of a cell's curves, by seed, or None if the cell was not run."""
        if not self.curves.get(cell):
            return None
        return pd.Series([number(curve) for curve in self.curves[cell]], self._seeds(cell))

    def _seeds(self, cell: str) -> list[int]:
        runs = self.summaries.get(cell)
        if runs is None or "seed" not in runs:
            return list(range(len(self.curves.get(cell, ()) if runs is None else runs)))
        return runs["seed"].tolist()

    def times_to(self, cell: str, target: float | pd.Series, window: int = 1) -> pd.Series | None:
        """Return, by seed, the virtual time at which a cell reaches ``target`` accuracy, or None if it was not run.

        The target is a fraction, or one fraction for each seed; a seed without a target is left out.
        """
        if cell not in self.curves:
            return None
        curves = dict(zip(self._seeds(cell), self.curves[cell], strict=True))
        goals = target.dropna().to_dict() if isinstance(target, pd.Series) else dict.fromkeys(curves, target)
        times = {seed: time_to(curve, goals[seed], window) for seed, curve in curves.items() if seed in goals}
        return pd.Series(times, dtype=float)

    def sooner(
        self,
        faster: str,
        slower: str,
        target: float | pd.Series,
        windows: tuple[int, int] = (1, 1),
        factor: float = 1.0,
    ) -> Finding:
        """Check whether one cell reaches ``target`` sooner than another, by the ratio of their times with each seed.

        The finding is on the mean log ratio, and asks that ``slower`` takes more than ``factor`` times as long. A run
        that never reaches the target is censored, see :func:`.log_ratios`. Times are those of running averages over
        ``windows`` evaluations, see :func:`time_to`.
        """
        if isinstance(target, pd.Series) and target.empty:
            return Finding(NOT_RUN, f"{against(faster, slower)}: no target")
        label = f"{against(faster, slower)}, time to {100 * np.mean(target):.3g}%"
        times = [self.times_to(cell, target, window) for cell, window in zip((faster, slower), windows, strict=True)]
        if any(one is None for one in times):
            return Finding(NOT_RUN, f"{label}: not run")
        both = pd.concat(times, axis=1, join="inner")
        if both.empty:
            return Finding(NOT_RUN, f"{label}: no seed with a target in common")
        ratios, bounds, reached = self.time_ratios(faster, slower, times)
        equal = EQUAL_RATIO if reached else None
        found = contrast(ratios, label, math.log(factor), unit="log ratio", equal=equal, bounds=bounds)
        shown = (f"{time_text(both[side])}{self.mark(cell)}" for side, cell in zip(both, (faster, slower), strict=True))
        asked = f" (asked: above {factor:g})" if factor != 1 else ""
        text = f"{label}: {', '.join(shown)}, {interval_text(found)}{asked}"
        if self.is_constant(faster) or self.is_constant(slower):
            return Finding(OPEN, f"{text}, {UNTRAINED}")
        return Finding(found.verdict, text, found)

    def time_ratios(
        self, faster: str, slower: str, times: Sequence[pd.Series]
    ) -> tuple[np.ndarray, tuple[bool, bool], bool]:
        """Return the log ratios of two cells' times to a target, with three flags about runs that miss it.

        The flags say whether the ratios bound their mean from below and from above, and whether all runs reached the
        target. A run is taken to reach a target no sooner than at its first test after the start, because no earlier
        time is known.
        """
        columns = []
        for cell, own in zip((faster, slower), times, strict=True):
            first, end = (self.of_curves(cell, of) for of in (_first_test, _last_test))
            columns += [own.clip(lower=first.reindex(own.index)), end]
        a, end_a, b, end_b = pd.concat(columns, axis=1, join="inner", keys=range(4)).to_numpy().T
        return *log_ratios(a, b, (end_a, end_b)), bool(np.isfinite([a, b]).all())

    def above(self, better: str, worse: str, margin: float = 0.0, number: str = ACCURACY) -> Finding:
        """Check whether one cell is above another by more than ``margin``, by seed."""
        label = against(better, worse) + ("" if number == ACCURACY else f", {number.replace('_', ' ')}")
        sides = self.by_seed(better, number), self.by_seed(worse, number)
        unit, scale = ("points", 100.0) if "accuracy" in number else ("", 1.0)
        marks = self.mark(better), self.mark(worse)
        finding = compare(*sides, label, margin, unit=unit, scale=scale, marks=marks)
        if finding.verdict != NOT_RUN and (self.is_constant(better) or self.is_constant(worse)):
            return Finding(OPEN, f"{finding.detail}, {UNTRAINED}")
        return finding

    def at_least(self, better: str, worse: str) -> Finding:
        """Check whether one cell is at most one point below another."""
        return self.above(better, worse, -EQUAL_POINTS)

    def level(self, left: str, right: str) -> Finding:
        """Check whether two cells are within a point of each other; a clearly larger difference is ``reversed``."""
        return as_equality(self.above(left, right))


def _first_test(curve: pd.DataFrame) -> float:
    """Return the time of a run's first test after its start."""
    times = curve["time"].to_numpy()
    return float(times[times > 0][0]) if (times > 0).any() else 1.0


def _last_test(curve: pd.DataFrame) -> float:
    return float(curve["time"].iloc[-1])


def accuracy_at(curve: pd.DataFrame, time: float) -> float:
    """Return a curve's last tested accuracy up to a virtual time, as a fraction; NaN before the first test."""
    until = curve["accuracy"][curve["time"] <= time]
    return float(until.iloc[-1]) if len(until) else math.nan


def time_to(curve: pd.DataFrame, target: float, window: int = 1) -> float:
    """Return the virtual time of the first evaluation at which accuracy is at least ``target``.

    Args:
        curve: a run's evaluations in order, with ``time`` and ``accuracy`` (a fraction).
        target: a fraction.
        window: number of last evaluations to average over (fewer at the start), as in FedRevive's running average.

    Returns:
        The time, or infinity if the target is not reached.
    """
    reached = np.flatnonzero(running_average(curve, window).to_numpy() >= target)
    return float(curve["time"].iloc[reached[0]]) if len(reached) else math.inf


def running_average(curve: pd.DataFrame, window: int) -> pd.Series:
    """Return the running average of a curve's accuracy over this many evaluations, with fewer at the start."""
    return curve["accuracy"] if window == 1 else curve["accuracy"].rolling(window, min_periods=1).mean()


def best_average(curve: pd.DataFrame, window: int) -> float:
    """Return the highest running average of a curve's accuracy over this many evaluations, as a fraction."""
    return float(running_average(curve, window).max())
