"""Exercises of the course's fifth part, "Judging": lessons 14 to 18."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from asyncfl_course import referee, zoo
from asyncfl_course.evidence import in_column
from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, expect, in_order, letters, shown
from asyncfl_course.records import EQUIVALENT, HOLDS, REVERSED, TUNED, rule
from asyncfl_course.zoo.cards import AT_LEAST, NAMING, REST, WRITING
from asyncfl_course.zoo.exhibits import EXHIBITS, SHELVES
from asyncfl_lite.base.errors import AsyncFLError

# --- 14: theory -----------------------------------------------------------------------------------


def _missed(g: Tensor, delays: Sequence[int], *, squared: bool = True, own: int = 0) -> np.ndarray:
    """Return, for each version, the added lengths of the steps that its gradient missed."""
    size = (g.square().sum(1) if squared else g.square().sum(1).sqrt()).numpy()
    return np.array([size[t - late : t + own].sum() for t, late in enumerate(delays)])


_RNG = np.random.default_rng(0)

asks_for(
    "14.1", "What staleness costs in one version",
    lambda g, late, eta, L: L**2 * eta**2 * max(late) * _missed(g, late),
    cases=[
        ((torch.from_numpy(_RNG.integers(-2, 3, (len(delays), 2)).astype(float)), delays, eta, smooth),
         "at version t, add the squared lengths of the steps t - delays[t] to t - 1, of which a fresh gradient has "
         "none; L and η are squared, but τ, the largest delay, is not")
        for delays, eta, smooth in (([0, 1, 2, 2], 0.4, 1.0), ([0, 0, 0], 0.1, 2.0), ([0, 1, 0, 3, 4, 2], 0.2, 3.0))
    ],
    right="Each missed step moved the model, and smoothness turns distance into error.",
    mistakes={
        "You count the step of version t itself, too; the sum ends at t − 1.":
            lambda g, late, eta, L: L**2 * eta**2 * max(late) * _missed(g, late, own=1),
        "The lengths of the steps must be squared.":
            lambda g, late, eta, L: L**2 * eta**2 * max(late) * _missed(g, late, squared=False),
        "L must be squared.":
            lambda g, late, eta, L: L * eta**2 * max(late) * _missed(g, late),
        "η must be squared.":
            lambda g, late, eta, L: L**2 * eta * max(late) * _missed(g, late),
        "τ must not be squared.":
            lambda g, late, eta, L: L**2 * eta**2 * max(late) ** 2 * _missed(g, late),
        "The factor τ, the largest delay, is missing.":
            lambda g, late, eta, L: L**2 * eta**2 * _missed(g, late),
    },
)  # fmt: skip

asks_for(
    "14.2", "The largest step that does not explode", lambda tau, L: 2 * np.sin(np.pi / (2 * (2 * tau + 1))) / L,
    cases=[
        (inputs,
         "x shrinks as long as all roots of z^(τ+1) - z^τ + ηL lie inside the unit circle; return the largest such η, "
         "not the largest that the theorem allows")
        for inputs in ((0, 1.0), (1, 1.0), (10, 1.0), (4, 5.0))
    ],
    atol=0,
    rtol=1e-2,
    right="Beyond it, the correction arrives when the model is already on the other side.",
    mistakes={
        "This is the largest step that the theorem allows; the question is which is the largest that works.":
            lambda tau, L: 1 / (2 * L * (1 + tau)),
        "This fits τ = 0 and 1 only; look at the roots for larger τ.":
            lambda tau, L: 2 / (L * (1 + tau)),
        "L is missing: the step is divided by it.":
            lambda tau, L: 2 * np.sin(np.pi / (2 * (2 * tau + 1))),
    },
)  # fmt: skip

asks_for(
    "14.3", "Where FedBuff settles", lambda d, c: np.average(c, weights=1 / np.array(d)),
    cases=[
        (inputs,
         "a client of duration d arrives 1/d times in a unit of time; where the model settles, the pulls of all "
         "arrivals add up to zero")
        for inputs in (((1.0, 10.0), (1.0, -1.0)), ((1.0, 2.0, 4.0), (1.0, 1.0, -1.0)), ((3.0, 3.0), (0.0, 1.0)))
    ],
    atol=0.02,
    right="A client of duration d arrives 1/d times per unit of time, and each arrival pulls once.",
    mistakes={
        "You weigh all clients equally; a fast client arrives more often.":
            lambda d, c: np.mean(c),
        "You weigh by duration; a client of duration d arrives 1/d times in a unit of time.":
            lambda d, c: np.average(c, weights=d),
    },
)  # fmt: skip


# --- 15: statistics -------------------------------------------------------------------------------


def _alarms(n: int, scale: float = 1.0) -> float:
    """Return the probability that two equal methods' means differ by over ``scale`` pooled standard deviations."""
    return 2 * stats.t.sf(scale * math.sqrt(n / 2), 2 * n - 2)


asks_for(
    "15.1", "How often a method differs from itself", lambda n, trials: _alarms(n),
    cases=[
        ((n, 20_000),
         "return a share, not percent; count differences in either direction, and divide the squares of each side by "
         "seeds - 1 (ddof=1) before you average the two variances and take the root")
        for n in (3, 5, 10)
    ],
    atol=0.012,  # six standard deviations of a simulated share
    rtol=0.03,
    right="With three seeds the deviation is itself mostly luck, so equal methods often look different.",
    mistakes={
        "You count differences in one direction only; take the absolute value.":
            lambda n, trials: _alarms(n) / 2,
        "Divide the squares by n − 1 (ddof=1).":
            lambda n, trials: _alarms(n, math.sqrt((n - 1) / n)),
        "You divide the deviation by √n; the rule compares with the deviation of a run.":
            lambda n, trials: _alarms(n, 1 / math.sqrt(n)),
        "This is in percent; a share is asked for.":
            lambda n, trials: 100 * _alarms(n),
    },
)  # fmt: skip


def _ends(d: np.ndarray, half: float) -> tuple[float, float]:
    return d.mean() - half, d.mean() + half


def _t(d: np.ndarray, quantile: float) -> float:
    return float(stats.t.ppf(quantile, len(d) - 1))


asks_for(
    "15.2", "The interval of a mean", rule.interval,
    cases=[
        ((np.array(differences), level),
         "the half width is the quantile (1 + level) / 2 of t with n - 1 degrees of freedom, times s / √n with ddof=1; "
         "return (low, high)")
        for differences, level in (
            ([2.0, 4.0, 6.0], 0.95), ([0.4, -1.2, 0.3, 2.1, -0.6], 0.99), ([1.0, 3.0], 0.95), ([5.0, 1.0] * 5, 0.5),
        )
    ],
    right="The t quantile pays for not knowing the deviation, and the root of n for averaging.",
    mistakes={
        "You used the normal distribution; with few seeds the t distribution is wider.":
            lambda d, level: _ends(d, stats.norm.ppf((1 + level) / 2) * d.std(ddof=1) / len(d) ** 0.5),
        "This quantile leaves 1 − level on one side; half of that belongs on each.":
            lambda d, level: _ends(d, _t(d, level) * d.std(ddof=1) / len(d) ** 0.5),
        "Your deviation divides by n; divide by n − 1 (ddof=1).":
            lambda d, level: _ends(d, _t(d, (1 + level) / 2) * d.std() / len(d) ** 0.5),
        "This is the interval of one difference; the interval of their mean is narrower by a factor of √n.":
            lambda d, level: _ends(d, _t(d, (1 + level) / 2) * d.std(ddof=1)),
    },
)  # fmt: skip


def _seeds_needed(points: float, deviation: float) -> int:
    return next(n for n in range(2, 10_000) if referee.chance("above", 0, points, deviation, n, 0.95) >= 0.8)


asks_for(
    "15.3", "How many seeds a difference needs", _seeds_needed,
    cases=[
        (inputs,
         "power takes the difference in deviations, points / deviation; return the first n, from 2 on, at which the "
         "power is at least 0.8")
        for inputs in ((2.0, 2.0), (5.0, 4.0), (1.0, 3.0), (9.0, 2.0))
    ],
    right="Power depends on the difference in deviations only, times the root of n.",
)  # fmt: skip

asks_for(
    "15.4", "The verdict of an interval", rule.judge,
    cases=[
        ((0.5, 3.0, False, 0.0), "the whole interval is above the margin"),
        ((-3.0, -0.5, False, 0.0), "the whole interval is below 0"),
        ((-1.6, 0.6, False, 0.0), "an interval that contains 0 shows nothing by itself"),
        ((-0.4, 0.3, True, 0.0), "both one-sided tests put the difference within a point"),
        ((3.1, 10.6, False, 25.0), "it is surely above 0, and surely below the claimed gain"),
        ((-1.6, 3.6, False, 7.0), "it may be zero or negative, but it is surely not the claimed gain"),
        ((-0.4, 0.3, True, 7.0), '"within a point" says more than "below the margin", and comes first'),
        ((0.1, 0.6, True, 7.0), "it is within a point, even if the sign is sure"),
        ((3.1, 30.0, False, 25.0), "it may be above the margin or below it"),
        ((26.0, 30.0, False, 25.0), "the whole interval exceeds the margin"),
        ((0.1, 0.6, True, 0.0), "equivalence comes first: a difference can be sure and smaller than a point"),
        ((-0.6, -0.1, True, 0.0), "equivalence comes first, whichever method is ahead"),
    ],
    right="Equivalence is asked first, so a certain but tiny difference is no lead.",
)  # fmt: skip


def _stepped(p: np.ndarray) -> np.ndarray:
    return np.sort(p) * np.arange(len(p), 0, -1)


asks_for(
    "15.5", "Holm's correction", rule.holm,
    cases=[
        ((np.array(values),),
         "multiply the smallest by k, the next by k - 1, and so on; none may be below the one before it, or above 1; "
         "return them in the order in which they came")
        for values in ([0.01, 0.04, 0.02, 0.3], [0.01, 0.011, 0.012], [0.5, 0.6], [0.02, 0.02, 0.02, 0.02])
    ],
    right="Only the smallest value pays for all tests; each later one pays for those that are left.",
    mistakes={
        "This is Bonferroni's correction, every value times k; Holm multiplies by k, k − 1, and so on.":
            lambda p: np.minimum(1, len(p) * p),
        "A value may not fall below the one before it: take the running maximum.":
            lambda p: np.minimum(1, _stepped(p))[np.argsort(np.argsort(p))],
        "You gave them back sorted; give them back in the order in which they came.":
            lambda p: np.minimum(1, np.maximum.accumulate(_stepped(p))),
    },
)  # fmt: skip


# --- 16: evidence ---------------------------------------------------------------------------------


def _luckiest(tries: int) -> float:
    """Return the mean of the largest of n standard normal numbers."""
    x = np.linspace(-9, 9, 20_001)
    mean = np.trapezoid(x * tries * stats.norm.pdf(x) * stats.norm.cdf(x) ** (tries - 1), x)
    return round(mean, 4) + 0.0


asks_for(
    "16.1", "The luckiest of n tries", _luckiest,
    cases=[
        ((tries,),
         "draw n scores from the same normal distribution, keep the largest, and average that over many repetitions")
        for tries in (1, 2, 6, 60)
    ],
    atol=0.05,
    rtol=0,
    right="More tries find a luckier best, although no setting is better. So every method needs as many tries.",
    mistakes={
        "This is a quantile of one score, not the mean of the best of n.":
            lambda n: stats.norm.ppf(1 - 1 / (n + 1)),
        "You took the absolute value; a score below the mean stays below it.":
            lambda n: math.sqrt(2 / math.pi) if n == 1 else None,
        "You averaged the n scores; keep the largest of them.":
            lambda n: 0.0 if n > 1 else None,
    },
)  # fmt: skip


def _effective(n: Tensor, acc: Tensor) -> Tensor | float:
    weights = n * (1 - acc)
    return weights.sum() ** 2 / weights.square().sum() if weights.any() else 0.0


def _clients(sizes: tuple, accuracies: tuple) -> tuple[Tensor, Tensor]:
    return torch.tensor(sizes).double(), torch.tensor(accuracies).double()


asks_for(
    "16.2", "How many clients count", _effective,
    cases=[
        (_clients((1, 1, 1, 1), (0.5, 0.5, 0.5, 0.5)), "four equal shares count as four"),
        (_clients((1, 1, 1, 1), (1, 1, 0.99, 0.98)), "the shares are 0, 0, 1/3 and 2/3"),
        (_clients((100, 300), (0.6, 0.2)), "sizes count too, and the shares are 1/7 and 6/7"),
        (_clients((5, 7), (1, 1)), "no client has any weight, so none counts"),
    ],
    right="Clients without an error have no weight, so one that errs on one sample in fifty outweighs the others.",
    mistakes={
        "Nobody has a weight here, so you divide 0 by 0; return 0.":
            lambda n, acc: math.nan if not (n * (1 - acc)).sum() else None,
        "The sizes n are missing: the weights are n (1 − acc).":
            lambda n, acc: _effective(torch.ones_like(n), acc),
        "You count the clients that have any weight; a client with a small weight counts for less than one.":
            lambda n, acc: ((1 - acc) > 0).sum(),
    },
)  # fmt: skip


@exercise("16.3", "Accuse somebody")
def order(answer: Any) -> str:
    """Compare the answer's order of KUIPER's four reward variants at bias 1 with the recorded order."""
    right = ["received", "no reward", "last epoch", "trained"]
    asked = f"Your answer {shown(answer)}: a list of the four names is asked for, {shown(sorted(right))} in some order."
    given = in_order(answer, right, asked)
    if given != right:
        _accuse(given)
    return "The received model's error says what the global model lacks; a trained model knows its own few classes."


def _accuse(given: list[str]) -> None:
    """Explain the wrong assumption behind an order that differs from the recorded one."""
    looks = (
        f"Your answer {shown(given)} is not the recorded order. On its own four classes, how accurate is each of the "
        "three models, and how many clients then keep a weight?"
    )
    rank = {name: given.index(name) for name in given}
    if max(rank["received"], rank["no reward"]) > min(rank["last epoch"], rank["trained"]):
        raise Wrong(
            f"Your answer {shown(given)} has a reading of the local model among the first two. A trained model is "
            "nearly perfect on its four classes, so most weights vanish. Equal weights would be better.",
            looks,
        )
    if rank["received"] > rank["no reward"]:
        raise Wrong(
            f"Your answer {shown(given)} has no reward first. The received model errs most where the global model "
            "lacks a client's classes, and its reward points there. In the recorded runs it ends above no reward.",
            looks,
        )
    raise Wrong(
        f"Your answer {shown(given)} has the trained model above the last epoch. The last epoch still counts errors "
        "that training then removes, so fewer of its weights are exactly 0.",
        looks,
    )


SHAPES, DIGITS = "kuiper/fig3b", "fedrevive/table1/cifar10"
STATEMENTS = {
    "A": (f"{SHAPES}/bias0", TUNED, REVERSED),
    "B": (f"{SHAPES}/bias1", TUNED, REVERSED),
    "C": (f"{SHAPES}/bias0", "plain FedBuff at 1", HOLDS),
    "D": (DIGITS, TUNED, EQUIVALENT),
    "E": (DIGITS, TUNED, HOLDS),
    "F": ("fedrevive/same-rates/cifar10-shifted", TUNED, EQUIVALENT),
}
"""Statement -> the cells without their method, the column, and the verdict on "above FedBuff" that supports it."""


@exercise("16.4", "What the record supports")
def supported(answer: Any) -> str:
    """Check which lettered statements the recorded intervals support."""
    asked = f"Your answer {shown(answer)} is not a set of letters; give one such as {{'A', 'B'}}."
    chosen = letters(answer, "".join(STATEMENTS), asked)
    for letter, (place, column, wanted) in STATEMENTS.items():
        paper = place.split("/")[0]
        found = in_column(paper, column).above(f"{place}/{paper}", f"{place}/fedbuff")
        told = f"{letter}: the record says {found.verdict} ({found.detail})"
        looks = f"{letter}: read its interval and its verdict again."
        if found.verdict == wanted and letter not in chosen:
            raise Wrong(f"You left out {told}, which supports it.", f"You left out {looks}")
        if found.verdict != wanted and letter in chosen:
            raise Wrong(f"You took {told}, which does not support it.", f"You took {looks}")
    return 'An interval that contains zero decides nothing; "equivalent" needs one that lies within a point of it.'


# --- 17: the bug zoo ------------------------------------------------------------------------------


def named(letters: str, answer: Any) -> str:
    """Check which suspect the answer names for each bug, and return the bugs as diffs once all names are right."""
    expect(
        isinstance(answer, dict) and set(answer) == set(letters),
        f"Give a dictionary with the keys {', '.join(letters)}; your answer is {shown(answer)}.",
    )
    given = {letter: str(name).strip().lower() for letter, name in answer.items() if name is not ...}
    right = [letter for letter, name in given.items() if name == EXHIBITS[letter].place]
    found = f"{', '.join(right)} found. " if right else ""
    for letter, name in given.items():
        one = EXHIBITS[letter]
        expect(name in one.suspects, f"{name!r} is not a suspect of {letter}, but {', '.join(one.suspects)} are.")
        expect(name == one.place, f"{found}{letter} is not {name!r}. {one.look}")
    if left := [letter for letter in letters if letter not in given]:
        raise NotImplementedError(f"{found}Replace the dots of {', '.join(left)} with the name of a suspect.")
    return "\n\n".join(f"{EXHIBITS[letter].reveal()}\n{EXHIBITS[letter].known}".rstrip() for letter in letters)


for (_id, _letters), _shelf in zip(NAMING.items(), SHELVES, strict=True):
    exercise(_id, f"What is wrong with {_letters[0]}, {_letters[1]}, {_letters[2]}: {_shelf}")(partial(named, _letters))
for _id, _letter in WRITING.items():
    exercise(_id, f"An invariant for {_letter}")(partial(zoo.grade, _letter))


@exercise(REST, "Three more invariants")
def rest(answer: Any) -> str:
    """Grade each of the reader's invariants on the exhibit that it was written for."""
    left = sorted(set(EXHIBITS) - set(WRITING.values()))
    expect(
        isinstance(answer, dict) and set(answer) <= set(left),
        f"Give a dictionary of invariants, with keys among {', '.join(left)}; your answer is {shown(answer)}.",
    )
    if not answer:
        raise NotImplementedError(f"Write an invariant for {AT_LEAST} of {', '.join(left)}, each under its letter.")
    grades = [zoo.grade(letter, invariant) for letter, invariant in sorted(answer.items())]
    expect(len(answer) >= AT_LEAST, f"{' '.join(grades)} Write at least {AT_LEAST}.")
    return "\n".join(grades)


# --- 18: the referee ------------------------------------------------------------------------------


asks_for(
    "18.1", "A seal", lambda content: referee.digest_of(referee.canonical(content)),
    cases=[
        ((content,),
         "return the hexadecimal SHA-256 of what json.dumps writes, in UTF-8; the order of names does not matter at "
         "any depth, but every value does")
        for content in (
            {"seeds": 10, "margin": 0.5},
            {"margin": 0.5, "seeds": 10},
            {"margin": 0.5, "seeds": 11},
            {"runs": {"seeds": 10, "level": 0.95}, "case": "α"},
            {"case": "α", "runs": {"level": 0.95, "seeds": 10}},
        )
    ],
    right="Sorted names make one text of a plan, so the same plan has the same seal, and any change shows.",
)  # fmt: skip


def _runs(weights: str, schedule: str, seeds: Sequence[int]) -> pd.DataFrame:
    """Return a table of runs, one per seed, with single letters as the digests of weights and schedule."""
    return pd.DataFrame({"weights_sha256": list(weights), "schedule_sha256": list(schedule)}, list(seeds))


@exercise("18.3", "Did the control act?")
def acted(answer: Any) -> str:
    """Check the answer on runs whose digests show whether the control changed the weights and nothing else."""
    treated = _runs("abc", "xyz", [0, 1, 2])
    cases = (
        (_runs("def", "xyz", [0, 1, 2]), True, "with every seed the weights differ and the schedule is the same"),
        (_runs("abc", "xyz", [0, 1, 2]), False, "with every seed the weights are the treated run's"),
        (_runs("dbf", "xyz", [0, 1, 2]), False, "with seed 1 the weights are the treated run's"),
        (_runs("def", "xyw", [0, 1, 2]), False, "with seed 2 other clients arrived, so more than one thing changed"),
        (_runs("cba", "zyx", [2, 1, 0]), False, "rows are in another order; by seed, weights and schedules agree"),
        (_runs("fed", "zyx", [2, 1, 0]), True, "rows are in another order; by seed, only the weights differ"),
        (_runs("def", "xyz", [7, 8, 9]), False, "the tables have no common seed, so they show nothing"),
    )
    for control, wanted, why in cases:
        given = bool(answer(treated, control))
        told = f"weights {list(control['weights_sha256'])}, schedules {list(control['schedule_sha256'])} of seeds "
        expect(
            given is wanted,
            f"A control with {told}{list(control.index)}, against weights ['a', 'b', 'c'], schedules ['x', 'y', 'z'] "
            f"of seeds [0, 1, 2]: your function says {given}, but should say {wanted}, because {why}.",
        )
    return "Other weights show that something changed, and the same schedule shows that not everything did."


def _planned(answer: Any, name: str) -> str:
    """Check that a plan's design gets full marks, and show the marks."""
    expect(isinstance(answer, referee.Plan), f"Give a referee.Plan; your answer is a {type(answer).__name__}.")
    expect(answer.case == name, f"This plan is for the case {answer.case!r}, but the exercise asks for {name!r}.")
    try:
        found = referee.grade(answer)
    except AsyncFLError as error:
        raise Wrong(f"The plan cannot be graded: {error}.") from None
    lost = " ".join(f"{line.name}: {line.says}" for line in found.lost)
    expect(not found.lost, f"{found.points} of {len(found.lines)} points. These lines are lost: {lost}")
    return f"\n{found!r}"


for _id, _name, _title in (
    ("18.2", "lead", "A plan for the lead"),
    ("18.4", "deaf", "A plan for a loss of nothing"),
    ("18.5", "weight", "A plan for half a point"),
):
    exercise(_id, _title)(partial(_planned, name=_name))
