"""How often the whole rule errs and what it sees: made-up claims, with their parts, their looks and Holm's correction.

The rule is written once more for thousands of claims at a time, and held to the package's on some of them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from asyncfl_reproduction.claims.findings import all_of, compare
from asyncfl_reproduction.statistics import EQUAL_POINTS, ERROR_LEVEL, LOOKS
from asyncfl_reproduction.verdict_words import EQUIVALENT, HOLDS, OPEN, REVERSED

POINT = EQUAL_POINTS
TRIALS = 4000
NAMES = np.array([OPEN, HOLDS, EQUIVALENT, REVERSED])
DEVIATIONS = (0.5, 1.2, 2.7, 5.0)
"""Of the differences over seeds, in points: of the recorded ones a tenth, a half, three quarters, nine tenths are less."""
DOCS = Path(__file__).parents[2] / "docs/adding_a_claim.md"


def at_a_look(d: np.ndarray) -> np.ndarray:
    """Return the verdicts of claims, (trials,) names, from their parts' differences, (trials, parts, seeds)."""
    parts, seeds = d.shape[1:]
    alpha, freedom = LOOKS[seeds], seeds - 1
    mean, error = d.mean(-1), d.std(-1, ddof=1) / np.sqrt(seeds)
    equal = np.maximum(*(special.stdtr(freedom, (side * mean - POINT) / error) for side in (1, -1)))
    p = 2 * special.stdtr(freedom, -np.abs(mean) / error)
    level = equal <= alpha
    sure = (p < alpha) & ~level
    holds, below = sure & (mean > 0), sure & (mean < 0)
    level &= level.all(-1, keepdims=True) | (adjusted(np.where(level, equal, 1.0)) <= alpha)
    below &= adjusted(np.where(below, p, 1.0)) <= alpha
    told = np.where((holds | level).all(-1), 2, 0)
    told = np.where(holds.all(-1), 1, told)
    return NAMES[np.where(below.any(-1), 3, told)]


def adjusted(p: np.ndarray) -> np.ndarray:
    """Return p values, (trials, parts), adjusted by Holm's method."""
    order = p.argsort(-1)
    steps = np.take_along_axis(p, order, -1) * np.arange(p.shape[-1], 0, -1)
    found = np.empty_like(p)
    np.put_along_axis(found, order, np.maximum.accumulate(steps, -1), -1)
    return found


def told_of(truths: tuple[float, ...], deviation: float, trials: int = TRIALS, seed: int = 0, tails: str = "") -> dict:
    """Return verdict -> its share, of claims with these true differences, after as many looks as they need."""
    rng = np.random.default_rng(seed)
    shape = (trials, len(truths), max(LOOKS))
    noise = rng.standard_t(3, shape) / np.sqrt(3) if tails else rng.standard_normal(shape)
    worlds = (np.array(truths)[:, None] + deviation * noise) / 100
    verdicts = np.full(trials, OPEN, NAMES.dtype)
    for look in LOOKS:
        verdicts = np.where(verdicts == OPEN, at_a_look(worlds[..., :look]), verdicts)
    return {name: float((verdicts == name).mean()) for name in NAMES}


def test_the_rule_written_here_is_the_packages():
    rng, found = np.random.default_rng(1), set()
    for look in LOOKS:
        truths = rng.choice([0.0, 0.3, 2.0, -2.0, 8.0], (25, 1)) + rng.choice([0.0, 1.0], (25, 3))
        worlds = (truths[..., None] + rng.choice([0.5, 2.0], (25, 3, 1)) * rng.standard_normal((25, 3, look))) / 100
        told = at_a_look(worlds)
        wanted = [all_of(compare(part, np.zeros(look), "") for part in world).verdict for world in worlds]
        assert told.tolist() == wanted
        found |= set(wanted)
    assert found == set(NAMES)


@pytest.mark.parametrize("deviation", DEVIATIONS)
@pytest.mark.parametrize("tails", ["", "heavy"])
@pytest.mark.parametrize("parts", [1, 4, 12])
def test_where_nothing_differs_a_direction_is_said_in_at_most_five_percent(parts, deviation, tails):
    told = told_of((0.0,) * parts, deviation, TRIALS // 2, seed=parts, tails=tails)
    assert told[HOLDS] + told[REVERSED] <= ERROR_LEVEL


@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_one_part_without_a_difference_keeps_a_claim_from_holding(deviation):
    """And one that is behind by nothing does not reverse it, however many are ahead."""
    told = told_of((9.0,) * 5 + (0.0,), deviation)
    assert told[HOLDS] <= ERROR_LEVEL and told[REVERSED] <= ERROR_LEVEL


@pytest.mark.parametrize("deviation", DEVIATIONS)
@pytest.mark.parametrize("truths", [(1.0,), (-1.0,), (1.0,) * 4, (1.0, 9.0, 9.0), (-1.0, 1.0, 9.0)])
def test_what_differs_by_just_a_point_is_called_level_in_at_most_five_percent(truths, deviation):
    told = told_of(truths, deviation, seed=2)
    assert told[EQUIVALENT] <= ERROR_LEVEL


@cache
def power() -> list[str]:
    """Rows of the table of docs/adding_a_claim.md: verdicts by true difference and deviation, in whole percents."""
    rows = []
    for truth in (0.0, 1.0, 2.0):
        for deviation in DEVIATIONS:
            one, all_ = (told_of((truth,) * parts, deviation, seed=3) for parts in (1, 4))
            shares = (one[HOLDS], one[EQUIVALENT], one[OPEN], all_[HOLDS], all_[EQUIVALENT])
            rows.append(f"| {truth:g} | {deviation} | {' | '.join(f'{100 * share:.0f} %' for share in shares)} |")
    return rows


def test_the_power_is_what_the_page_says():
    text = DOCS.read_text()
    assert [row for row in power() if row not in text] == []
