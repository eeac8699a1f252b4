"""Grades of a plan's design, given before the plan is run, so that the result cannot affect them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from asyncfl_course.records import ERROR_LEVEL
from asyncfl_course.referee.cases import PILOT, Case, case
from asyncfl_course.referee.plan import Plan, failed, in_lines
from asyncfl_course.referee.records import NUMBERS, tries

POWER = 0.8
"""Required probability of confirming a true claim; a false claim may pass with at most one minus that."""
RATES = ("client_lr", "server_lr")
STEPS = 2000
"""Number of equally likely deviations of a sample, over which the chance of ``level`` is averaged."""


class Line(NamedTuple):
    """One criterion of a grade, whether the plan earned the point, and why, with the numbers that decide."""

    name: str
    won: bool
    says: str


@dataclass(frozen=True)
class Grade:
    """The grade of a plan's design, one point per line."""

    lines: tuple[Line, ...]

    @property
    def points(self) -> int:
        """Number of points that the plan earned."""
        return sum(line.won for line in self.lines)

    @property
    def lost(self) -> tuple[Line, ...]:
        """Lines that earned no point."""
        return tuple(line for line in self.lines if not line.won)

    def __repr__(self) -> str:
        lines = [f"{'+' if line.won else '-'} {line.name:12} {line.says}" for line in self.lines]
        return in_lines("\n".join([*lines, f"{self.points} of {len(self.lines)} points"]))


def chance(predicate: str, margin: float, truth: float, deviation: float, seeds: int, level: float) -> float:
    """Return the probability that a plan's verdict is "holds" for a given true difference.

    Args:
        predicate: ``above``: the interval at ``level`` lies above the margin; ``level``: two one-sided tests put the
            difference within ± the margin.
        margin: the margin, in points.
        truth: the true mean difference, in points.
        deviation: standard deviation of the differences over seeds, in points; 0 if all seeds agree.
        seeds: number of seeds.
        level: level of the interval, such as 0.95.

    Example:
        A true difference of one deviation, ten seeds, beyond zero:

        >>> round(chance("above", 0, 1.0, 1.0, 10, 0.95), 2)
        0.8
        >>> round(chance("level", 1, 0.0, 0.5, 10, 0.95), 2)
        1.0
    """
    if deviation <= 0:
        return float(truth > margin if predicate == "above" else abs(truth) < margin)
    error = deviation / math.sqrt(seeds)
    if predicate == "above":
        bar = special.stdtrit(seeds - 1, (1 + level) / 2)
        return float(stats.nct.sf(bar, seeds - 1, (truth - margin) / error))
    shares = (np.arange(STEPS) + 0.5) / STEPS
    errors = error * np.sqrt(stats.chi2.ppf(shares, seeds - 1) / (seeds - 1))
    room = np.maximum(margin - special.stdtrit(seeds - 1, level) * errors, 0)
    return float((special.ndtr((room - truth) / error) - special.ndtr((-room - truth) / error)).mean())


def grade(plan: Plan) -> Grade:
    """Grade a plan's design, with one point for each line in :data:`LINES`.

    Raises:
        ConfigError: the plan names a cell or a proof that does not exist.
    """
    of = case(plan.case)
    return Grade(tuple(Line(name, *judged(plan, of)) for name, judged in LINES.items()))


def _question(plan: Plan, of: Case) -> tuple[bool, str]:
    asks = plan.asks
    asked, claimed = ((one.first, one.predicate, one.second) for one in (asks, of))
    return asked == claimed, f"The plan asks about {' '.join(asked)}; the claim says {' '.join(claimed)}."


def _number(plan: Plan, of: Case) -> tuple[bool, str]:
    """Return whether the plan's metric avoids each run's luckiest test, with the reason."""
    cells, mean = (plan.asks.first, plan.asks.second), NUMBERS[0]
    tables = [of.runs(cell, plan.runs.column).loc[: PILOT - 1] for cell in cells]
    luckiest = all((table[plan.runs.metric] >= table["best_accuracy"]).all() for table in tables)
    luck = [100 * (table[plan.runs.metric] - table[mean]).mean() for table in tables]
    shown = " and ".join(f"by {one:+.1f} points for {cell}" for one, cell in zip(luck, cells, strict=True))
    which = "is the luckiest test of each run" if luckiest else "does not pick the best test"
    return not luckiest, f"{plan.runs.metric} {which}. It differs from the mean of the last five {shown}."


def _power(plan: Plan, of: Case) -> tuple[bool, str]:
    found, spread = _chance(plan, of, of.claimed), _spread(plan, of)
    told = f"With a deviation of {spread:.2f} points, {plan.runs.seeds} seeds confirm a true difference of"
    return found >= POWER, f"{told} {of.claimed:.2f} in {found:.0%} of cases."


def _margin(plan: Plan, of: Case) -> tuple[bool, str]:
    found = _chance(plan, of, of.denied)
    told = f"A true difference of {of.denied:.2f} points, for which the claim is false, would pass"
    return found <= 1 - POWER, f"{told} in {found:.0%} of cases."


def _level(plan: Plan, of: Case) -> tuple[bool, str]:
    alarms = 1 - plan.runs.level
    return alarms <= ERROR_LEVEL + 1e-9, f"The interval misses the true difference in {alarms:.1%} of cases."


def _budget(plan: Plan, of: Case) -> tuple[bool, str]:
    """Return whether both sides have the same rates, or equally large searches of every rate, with the reason."""
    column, sides = plan.runs.column, (plan.asks.first, plan.asks.second)
    settings = [of.settings(cell, column) for cell in sides]
    if not {"algorithm", *RATES} & of.differing(*sides, column):
        return True, "Both sides are one method with the same rates."
    tried = [_tried(str(own["algorithm"]), column) for own in settings]
    alone = {f"{rate} of {cell}" for cell, values in zip(sides, tried, strict=True) for rate in RATES
             if len(values[rate]) < 2}  # fmt: skip
    counts = [values["in all"] for values in tried]
    shown = " and ".join(f"{len(count)} settings of {cell}" for count, cell in zip(counts, sides, strict=True))
    told = f"The search tried {shown}" + (f", but only one {' and only one '.join(sorted(alone))}" if alone else "")
    return len(counts[0]) == len(counts[1]) and not alone, f"{told}."


def _control(plan: Plan, of: Case) -> tuple[bool, str]:
    first, control = plan.asks.first, plan.control
    differs = of.differing(first, control.cell, plan.runs.column)
    rates = sorted(differs & {"algorithm", *RATES})
    if rates:
        return (
            False,
            f"A control should be {first} with one thing changed, but {control.cell} has another "
            f"{' and another '.join(rates)}.",
        )
    said, found = (", ".join(sorted(names)) or "nothing" for names in (control.changes, differs))
    right = bool(differs) and differs == set(control.changes)
    return right, f"{control.cell} differs from {first} in {found}; the plan says {said}."


def _proof(plan: Plan, of: Case) -> tuple[bool, str]:
    """Return whether the proofs accept a control that works and reject idle and excessive ones, with the reason."""
    column, shows = plan.runs.column, plan.control.shows
    treated, acting = (of.runs(cell, column).loc[: PILOT - 1] for cell in (of.first, of.acting))
    if not failed(shows, treated, treated):
        return False, f"A control with exactly the weights of {of.first} would pass every proof that the plan demands."
    if not failed(shows, treated, acting.assign(schedule_sha256="another")):
        return False, "A control in which other clients arrive changes more than one thing, but would pass every proof."
    for_nothing = acting.assign(**{name: treated[name] for name in NUMBERS})
    if refused := failed(shows, treated, for_nothing):
        return False, f"{', '.join(refused)} would refuse a control that acts and costs nothing, which is a result."
    if refused := failed(shows, treated, acting) | failed(shows, acting, treated):
        return False, f"{', '.join(refused)} would refuse a control that acts and has an effect."
    told = f"The proofs {', '.join(shows)} refuse a control that does nothing or too much"
    return True, f"{told}, and accept one that acts."


LINES: dict[str, Callable[[Plan, Case], tuple[bool, str]]] = {
    "question": _question,
    "number": _number,
    "power": _power,
    "margin": _margin,
    "level": _level,
    "budget": _budget,
    "control": _control,
    "proof": _proof,
}
"""Name -> whether a plan wins the line, and why."""


def _spread(plan: Plan, of: Case) -> float:
    return of.pilot(plan.asks.first, plan.asks.second, plan.runs.metric, plan.runs.column)


def _chance(plan: Plan, of: Case, truth: float) -> float:
    asks, runs = plan.asks, plan.runs
    return chance(asks.predicate, asks.margin, truth, _spread(plan, of), runs.seeds, runs.level)


def _tried(method: str, column: str) -> dict[str, set]:
    """Map each rate to the values that a search tried for a method, and ``in all`` to the combinations tried."""
    table = tries(method, column)
    return {rate: set(table[rate]) for rate in RATES} | {"in all": set(table.itertuples(index=False, name=None))}
