"""The capstone project of lesson 19: your own method, its invariants, a sealed plan, and runs with unseen seeds.

from asyncfl_course import capstone

entry = capstone.enter("my_method.py")                   # the league's rules
capstone.bench(entry.method, [invariant], changes, settings)
sealed = referee.seal(plan)                              # a capstone.Plan
outcome = capstone.run(plan, sealed, entry)              # on seeds that the seal draws
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from asyncfl_course.expectations import call
from asyncfl_course.records import ERROR_LEVEL, check_rules, interval, read_entry, with_ends
from asyncfl_course.referee.cases import PART
from asyncfl_course.referee.plan import Control, Question, Runs, Sealed, differing, failed, in_lines, unchanged
from asyncfl_course.referee.rubric import POWER, Grade, Line, chance
from asyncfl_course.referee.verdict import NO_VERDICT, judged
from asyncfl_course.zoo.bench import started
from asyncfl_course.zoo.exhibits import Invariant, Mutation
from asyncfl_lite.algorithms import ALGORITHMS, Algorithm
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, unknown_name
from asyncfl_lite.base.registry import Settings
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.lockstep import run_many

PLACE: dict[str, Any] = {
    "task": "digits", "clients": 20, "concurrency": 10, "buffer_size": 5, "rounds": 30, "eval_every": 3,
    "delay": "fedecho_large", "alpha": 0.1, "client_lr": 0.1, "local_epochs": 1,
}  # fmt: skip
"""Settings that all runs share; a cell adds its method, its server learning rate and its options."""
SEEN = range(5)
"""Seeds of the search and of the pilot. A plan may use what they showed."""
UNSEEN = range(1_000, 1_000_000)
"""Seeds from which a seal draws those of its plan."""
CHANGES = {
    "off by one": ("<= self.settings.patience", "< self.settings.patience"),
    "never drops": ("in_time = update", "in_time = True or update"),
    "divides by fewer": ("in_time, counted", "in_time, counted * in_time"),
}
"""Name -> a line of ``examples/fedpatience.py``, and its replacement in a copy with a bug."""

_entered: dict[str, str] = {}
"""Name of a module that was entered -> its folder."""


def enter(file: str | Path) -> Any:
    """Read a method from its file, anew if it has changed, and check it against the league's rules.

    Returns:
        The entry: ``name``, ``method`` (its class), ``grid``, and ``digest``, eight digits of the file's code.

    Raises:
        ConfigError: in one line, if the file holds no method, or the method breaks a rule.
    """
    path = Path(file).resolve()
    if (folder := _entered.pop(path.stem, None)) is not None:
        sys.modules.pop(path.stem, None)
        for name in [name for name in ALGORITHMS if ALGORITHMS.get(name).__module__ == path.stem]:
            ALGORITHMS.remove(name)
        if folder in sys.path:
            sys.path.remove(folder)
    known = path.stem in sys.modules
    try:
        entry = read_entry(path)
        check_rules(entry)
    finally:
        if not known:
            _entered[path.stem] = str(path.parent)
    return entry


def bench(
    method: type[Algorithm],
    invariants: Iterable[Invariant],
    changes: Mapping[str, tuple[str, str]],
    settings: Sequence[Mapping[str, Any]],
) -> pd.DataFrame:
    """Test invariants on a method and on copies of it with one bug each, on the test bench of lesson 17.

    Args:
        method: its class.
        invariants: functions of a server that was just started on the bench.
        changes: name of a copy -> a piece of the class's source that occurs exactly once, and its replacement in the
            copy.
        settings: options of the servers.

    Returns:
        Server (healthy, or the copy's name) × invariant: whether the invariant is True with all settings. If a copy
        raises an error, its bug is noticed, so the value is False.

    Raises:
        ConfigError: a piece to replace does not occur exactly once in the class.
    """
    tests = list(invariants)
    try:
        copies = {name: Mutation(method, *change).applied(method) for name, change in changes.items()}
    except ValueError as error:
        raise ConfigError(f"changes: {error}") from None
    rows = {"healthy": [all(bool(call(test, started(method(**one)))) for one in settings) for test in tests]}
    for name, copy in copies.items():
        rows[name] = [all(_passes(test, copy, one) for one in settings) for test in tests]
    return pd.DataFrame.from_dict(rows, orient="index", columns=[test.__name__ for test in tests])


def _passes(test: Invariant, copy: type[Algorithm], settings: Mapping[str, Any]) -> bool:
    try:
        return bool(test(started(copy(**settings))))
    except Exception:  # whatever the changed line does
        return False


class Cell(Settings):
    """One side of a comparison: a method, its server learning rate and its options."""

    algorithm: str
    server_lr: float = Field(ge=0)
    settings: dict[str, Any] = {}
    """Options of the method."""


class Plan(Settings):
    """A plan for a test of your own method, sealed before the seeds of its runs are known."""

    code: str
    """The entry's digest, which is eight digits of a hash of its code."""
    cells: dict[str, Cell]
    asks: Question
    runs: Runs
    control: Control
    claimed: float = Field(gt=0)
    """The lead that the method's author expects, in points."""
    deviation: float = Field(ge=0)
    """Standard deviation of the difference over the pilot's seeds, in points."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a sealed plan.

    Attributes:
        plan: the plan.
        digest: the SHA-256 digest of its seal.
        seeds: the seeds that were drawn from the seal.
        verdict: as in :class:`asyncfl_course.referee.Verdict`.
        differences: first minus second, in points, by seed; empty if there is no verdict.
        mean, low, high: mean of the differences, and the limits of its interval; NaN if there is no verdict.
        because: the reason if there is no verdict; otherwise empty.
    """

    plan: Plan
    digest: str
    seeds: tuple[int, ...]
    verdict: str
    differences: pd.Series
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    because: str = ""

    @property
    def interval(self) -> str:
        """The mean difference and its interval as reports quote them, or an empty string if there is no verdict."""
        return "" if self.verdict == NO_VERDICT else with_ends(self.mean, self.low, self.high, 2)

    def __repr__(self) -> str:
        asks = self.plan.asks
        found = self.because or f"{self.interval} (asked: {asks.predicate} {asks.margin:g})"
        which = f"{asks.first} minus {asks.second}, {len(self.seeds)} unseen seeds"
        return in_lines(f"seal {self.digest[:8]}: {which}: {found}: {self.verdict}")


def trained(cell: Cell, seeds: Iterable[int]) -> pd.DataFrame:
    """Run a cell in the setting :data:`PLACE`, and return three accuracies, as fractions, and two digests per seed."""
    configs = [Config(**PLACE, **cell.model_dump(), seed=seed) for seed in seeds]
    found = [result.summary for result in run_many(configs)]
    names = ["last5_accuracy", "final_accuracy", "best_accuracy", "weights_sha256", "schedule_sha256"]
    return pd.DataFrame(found, index=[config.seed for config in configs])[names]


def points(first: pd.DataFrame, second: pd.DataFrame, metric: str = "last5_accuracy") -> pd.Series:
    """Return the first table's accuracies minus the second's, seed by seed, in percentage points."""
    return 100 * (first[metric] - second[metric])


def unseen(sealed: Sealed, seeds: int) -> tuple[int, ...]:
    """Draw seeds from a seal's digest, so that nobody can know them before the plan is sealed.

    >>> unseen(Sealed("a plan", "ff"), 3), unseen(Sealed("another", "fe"), 3)
    ((176891, 924573, 808751), (291470, 902788, 445027))
    """
    rng = np.random.default_rng(int(sealed.digest, 16))
    return tuple(int(seed) for seed in rng.choice(UNSEEN, seeds, replace=False))


def grade(plan: Plan) -> Grade:
    """Grade a plan's design by five criteria of lesson 18, with one point each, without looking at results."""
    return Grade((*_numbers(plan), _control(plan), _proof(plan)))


def _numbers(plan: Plan) -> Iterable[Line]:
    asks, runs = plan.asks, plan.runs
    claimed, denied = (
        chance(asks.predicate, asks.margin, truth, plan.deviation, runs.seeds, runs.level)
        for truth in (plan.claimed, plan.claimed / PART)
    )
    seeds, alarms = f"{runs.seeds} seeds", 1 - runs.level
    told = f"If the lead is {plan.claimed:g} points, {seeds} see it in {claimed:.0%} of cases."
    yield Line("power", claimed >= POWER, told)
    told = f"If the lead is {plan.claimed / PART:g} points, the claim passes in {denied:.0%} of cases."
    yield Line("margin", denied <= 1 - POWER + 1e-9, told)
    told = f"The interval misses the true difference in {alarms:.1%} of cases."
    yield Line("level", alarms <= ERROR_LEVEL + 1e-9, told)


def _control(plan: Plan) -> Line:
    for name in (plan.asks.first, plan.control.cell):
        if name not in plan.cells:
            raise ConfigError(unknown_name("cells", name, plan.cells))
    first, control = (plan.cells[name].model_dump() for name in (plan.asks.first, plan.control.cell))
    found = set(differing(first, control))
    told = f"{plan.control.cell} differs from {plan.asks.first} in {', '.join(sorted(found)) or 'nothing'}"
    right = len(found) == 1 and found == set(plan.control.changes)
    return Line("control", right, f"{told}; the plan says {', '.join(plan.control.changes) or 'nothing'}.")


def _proof(plan: Plan) -> Line:
    treated = pd.DataFrame({"last5_accuracy": [0.8, 0.9], "weights_sha256": ["a", "b"], "schedule_sha256": ["x", "y"]})
    acts = treated.assign(weights_sha256=["c", "d"])
    shows = plan.control.shows
    if not failed(shows, treated, treated):
        return Line("proof", False, "A control that does nothing would pass every proof that the plan demands.")
    if not failed(shows, treated, acts.assign(schedule_sha256=["z", "w"])):
        return Line("proof", False, "A control in which other clients arrive would pass every proof.")
    if refused := failed(shows, treated, acts):
        return Line("proof", False, f"{', '.join(refused)} would refuse a control that acts and costs nothing.")
    return Line("proof", True, f"The proofs {', '.join(shows)} refuse a control that does nothing or too much.")


def run(plan: Plan, sealed: Sealed, entry: Any) -> Outcome:
    """Run a sealed plan with seeds drawn from its seal, check the control's proofs, then judge the difference.

    Raises:
        AsyncFLError: the plan or the method's code was changed after the plan was sealed.
    """
    unchanged(plan, sealed)
    if entry.digest != plan.code:
        raise AsyncFLError(f"the method was changed after it was sealed: its code was {plan.code}, is {entry.digest}")
    asks, seeds = plan.asks, unseen(sealed, plan.runs.seeds)
    ran = {name: trained(plan.cells[name], seeds) for name in (asks.first, asks.second, plan.control.cell)}
    if missing := failed(plan.control.shows, ran[asks.first], ran[plan.control.cell]):
        told = ", ".join(f"{name} fails on {count} of {len(seeds)} seeds" for name, count in missing.items())
        nothing = pd.Series(dtype=float)
        return Outcome(plan, sealed.digest, seeds, NO_VERDICT, nothing, because=f"the control did not act: {told}")
    gap = points(ran[asks.first], ran[asks.second], plan.runs.metric)
    low, high = interval(gap.to_numpy(), plan.runs.level)
    verdict = judged(plan, low, high, gap.to_numpy())
    return Outcome(plan, sealed.digest, seeds, verdict, gap, float(gap.mean()), low, high)
