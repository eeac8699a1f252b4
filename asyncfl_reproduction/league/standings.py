"""A newcomer's standing against each method, by setting and seed, and its mean rank over the settings.

All runs have the same number of client updates, but not the same duration. So the difference at the time when the first
of two runs ends is given as well. There is only one look at a league, so intervals are at 95 %, whatever the number of
seeds. Verdicts follow the project's rule (:mod:`asyncfl_reproduction.statistics`), corrected by Holm's method over the
methods of a place. A verdict is ``equivalent`` if two one-sided tests still put the paired differences within a point;
otherwise ``better`` or ``worse`` if the t test still rejects 0; otherwise ``open``. So a verdict is never stronger
than the interval beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.results import Result
from asyncfl_reproduction.claims.measured import ACCURACY, Measured
from asyncfl_reproduction.league.across import TARGET_SHARE
from asyncfl_reproduction.league.field import REFERENCE, Place
from asyncfl_reproduction.report.head_to_head import Ranking, ranking
from asyncfl_reproduction.statistics import ERROR_LEVEL, Contrast, contrast, holm, interval
from asyncfl_reproduction.verdict_words import EQUIVALENT, OPEN

BETTER, WORSE = "better", "worse"
VERDICTS = (BETTER, WORSE, EQUIVALENT, OPEN)
MOST_SEEDS = 100
"""Largest number of seeds that is given as enough to decide."""


class Times(NamedTuple):
    """The median virtual time to the target over seeds, and the number of seeds that never reached it.

    The ratio is the log of the method's time over the newcomer's, positive where the newcomer is sooner.
    """

    median: float
    never: int
    ratio: Contrast | None


class Row(NamedTuple):
    """One method's results in one setting.

    Attributes:
        method: its name.
        mean, low, high: accuracy over the seeds that are compared, with its own 95 % interval; fractions.
        seeds: number of these seeds.
        difference: the newcomer's accuracy minus this method's; None for the newcomer itself.
        verdict: the newcomer's verdict against this method, one of :data:`VERDICTS`; empty for the newcomer itself.
        to_decide: about how many seeds would decide an open difference; None if it is decided, or if too many
            would be needed.
        times: times to the target; None without a target.
        in_time: the difference when the first of the two runs ends; None for the newcomer itself.
        verdict_in_time: the verdict on that difference.
    """

    method: str
    mean: float
    low: float
    high: float
    seeds: int
    difference: Contrast | None
    verdict: str
    to_decide: int | None
    times: Times | None
    in_time: Contrast | None
    verdict_in_time: str


class Standings(NamedTuple):
    """The ranking of a newcomer and the field's methods in one setting, best first.

    The target accuracy for times is a mean over seeds; NaN without FedBuff. The cells of ``measured`` have the names of
    their methods.
    """

    place: Place
    rows: list[Row]
    missing: list[str]
    target: float
    measured: Measured
    configs: Mapping[str, Config]

    def counts(self) -> dict[str, int]:
        """Return the number of methods by verdict, for the verdicts that occur."""
        verdicts = [row.verdict for row in self.rows]
        return {verdict: verdicts.count(verdict) for verdict in VERDICTS if verdict in verdicts}


def standings(place: Place, newcomer: str, results: Mapping[str, Sequence[Result]]) -> Standings:
    """Compare a newcomer with all methods in a setting.

    Of each method's results, runs with seeds that the setting does not have are left out.
    """
    runs = {method: [run for run in own if run.config.seed in place.seeds] for method, own in results.items()}
    runs = {method: own for method, own in runs.items() if own}
    measured = Measured.of(runs)
    at_end, in_time = (_against(measured, newcomer, gap) for gap in (measured.gap, measured.gap_in_time))
    target = None if REFERENCE not in runs else TARGET_SHARE * measured.by_seed(REFERENCE)
    itself = None, ""
    rows = [
        _row(measured, newcomer, method, at_end.get(method, itself), in_time.get(method, itself), target)
        for method in runs
    ]
    return Standings(
        place,
        sorted(rows, key=lambda row: -row.mean),
        [method for method in place.searches if method not in runs],
        math.nan if target is None else float(target.mean()),
        measured,
        {method: own[0].config for method, own in runs.items()},
    )


def _against(
    measured: Measured, newcomer: str, gap: Callable[[str, str], pd.Series | None]
) -> dict[str, tuple[Contrast, str]]:
    """Map each other method to the newcomer's difference from it and to the verdict on that difference."""
    others, found = [method for method in measured.summaries if method != newcomer], []
    for method in others:
        differences = gap(newcomer, method)
        values = np.array([]) if differences is None else differences.to_numpy()
        found.append(contrast(values, method, alpha=ERROR_LEVEL))
    constant = {method for method in measured.summaries if measured.is_constant(method)}
    return {
        method: (difference, OPEN if constant & {method, newcomer} else verdict)
        for method, difference, verdict in zip(others, found, judged(found), strict=True)
    }


def judged(found: Sequence[Contrast]) -> list[str]:
    """Return the verdicts on a newcomer's differences from all methods, corrected for the number of methods."""
    different, equal = holm([one.p for one in found]), holm([one.equal for one in found])
    return [
        EQUIVALENT if level <= ERROR_LEVEL else (BETTER if one.mean > 0 else WORSE) if p <= ERROR_LEVEL else OPEN
        for one, p, level in zip(found, different, equal, strict=True)
    ]


def seeds_to_decide(found: Contrast, among: int = 1) -> int | None:
    """Estimate how many seeds would show a difference if its mean and deviation stayed the same.

    The comparison is one at 5 %, corrected for ``among`` methods by the strictest of Holm's steps. The result is None
    if it would be above :data:`MOST_SEEDS`, or if nothing can be said.
    """
    if not math.isfinite(found.high - found.low) or found.mean == 0:
        return None
    error = (found.high - found.low) / 2 / special.stdtrit(found.seeds - 1, 1 - ERROR_LEVEL / 2)
    deviation = error * math.sqrt(found.seeds)
    counts = np.arange(found.seeds + 1, MOST_SEEDS + 1)
    halves = special.stdtrit(counts - 1, 1 - ERROR_LEVEL / among / 2) * deviation / np.sqrt(counts)
    enough = counts[halves < abs(found.mean)]
    return int(enough[0]) if len(enough) else None


def _row(
    measured: Measured,
    newcomer: str,
    method: str,
    at_end: tuple[Contrast | None, str],
    in_time: tuple[Contrast | None, str],
    target: pd.Series | None,
) -> Row:
    values, (found, verdict) = measured.by_seed(method, ACCURACY).to_numpy(), at_end
    low, high = interval(values, 1 - ERROR_LEVEL) if len(values) > 1 else (-math.inf, math.inf)
    to_decide = seeds_to_decide(found, len(measured.summaries) - 1) if verdict == OPEN else None
    times = None if target is None else _times(measured, newcomer, method, target)
    return Row(method, float(values.mean()), low, high, len(values), found, verdict, to_decide, times, *in_time)


def _times(measured: Measured, newcomer: str, method: str, target: pd.Series) -> Times | None:
    times = measured.times_to(method, target)
    if times.empty:
        return None
    median, never = float(np.median(times)), int(np.isinf(times).sum())
    if method == newcomer:
        return Times(median, never, None)
    ratios, bounds, _ = measured.time_ratios(newcomer, method, [measured.times_to(newcomer, target), times])
    return Times(
        median, never, contrast(ratios, method, unit="log ratio", equal=None, bounds=bounds, alpha=ERROR_LEVEL)
    )


def ranked(places: Sequence[Standings]) -> tuple[Ranking | None, list[str]]:
    """Rank the methods that occur in all settings of a column, and name those that some setting lacks."""
    every = {row.method for one in places for row in one.rows}
    there = {}
    for one in places:
        by_seed = pd.DataFrame({row.method: one.measured.by_seed(row.method) for row in one.rows})
        full = by_seed.dropna(axis="columns")
        there[one.place.name] = {method: full[method].to_numpy() for method in full}
    found = ranking(there, sorted(every))
    return found, sorted(every - set(() if found is None else found.ranks.index))
