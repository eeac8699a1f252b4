"""The rule of verdicts: known answers against the libraries, false alarms and power by simulation, odd input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

from asyncfl_reproduction.statistics import (
    EQUAL_POINTS,
    Contrast,
    benjamini_hochberg,
    contrast,
    holm,
    judge,
    level_at,
    log_ratios,
    within_a_claim,
)
from asyncfl_reproduction.verdict_words import EQUIVALENT, FAILS, HOLDS, OPEN, REVERSED


def differences(mean: float, deviation: float, seeds: int = 10) -> np.ndarray:
    """Numbers of exactly this mean and sample deviation, in no order."""
    raw = np.random.default_rng(3).standard_normal(seeds)
    return mean + deviation * (raw - raw.mean()) / raw.std(ddof=1)


@pytest.mark.parametrize(("seeds", "level"), [(3, 0.05), (9, 0.05), (10, 0.01), (16, 0.015), (31, 0.015), (40, 0.025)])
def test_numbers_are_those_of_the_libraries(seeds, level):
    d = differences(0.004, 0.01, seeds)
    found = contrast(d, "a against b")
    ends = DescrStatsW(d).tconfint_mean(level)
    assert level_at(seeds) == level == pytest.approx(1 - found.level)
    assert (found.low, found.high) == pytest.approx(ends)
    assert found.p == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
    assert found.wilcoxon == pytest.approx(stats.wilcoxon(d).pvalue)
    assert found.equal == pytest.approx(DescrStatsW(d).ttost_mean(-EQUAL_POINTS, EQUAL_POINTS)[0])
    rests_on = found.equal if found.verdict == EQUIVALENT else found.p
    assert found.scaled == pytest.approx(min(1, rests_on * 0.05 / level))
    assert found.apart == pytest.approx(min(1, 2 * stats.ttest_1samp(d, EQUAL_POINTS, alternative="greater").pvalue))
    assert (found.seeds, found.mean) == (seeds, pytest.approx(0.004))
    assert contrast(d, "", 0.001).p == pytest.approx(stats.ttest_1samp(d, 0.001).pvalue)  # against the margin
    assert contrast(d, "", 0.03).p == pytest.approx(found.p)  # between 0 and it: against 0


@pytest.mark.parametrize(
    ("mean", "deviation", "margin", "verdict"),
    [
        (0.17, 0.05, 0.07, HOLDS),
        (0.03, 0.01, 0.07, FAILS),
        (0.06, 0.03, 0.07, OPEN),  # above 0, but the margin lies within
        (0.0, 0.008, 0.07, EQUIVALENT),
        (0.0, 0.05, 0.0, OPEN),
        (0.0, 0.05, 0.07, FAILS),  # neither more than 0 nor level, but surely not what was claimed
        (-0.03, 0.01, 0.0, REVERSED),
        (-0.03, 0.01, 0.07, REVERSED),
        (-0.004, 0.003, 0.0, EQUIVALENT),  # its sign is sure, and it is within a point
        (0.004, 0.003, 0.0, EQUIVALENT),
        (0.004, 0.003, 0.07, EQUIVALENT),
        (0.012, 0.003, 0.0, HOLDS),
        (-0.004, 0.003, -0.01, HOLDS),  # not more than a point below
        (-0.03, 0.01, -0.01, REVERSED),
        (-0.01, 0.01, -0.01, OPEN),
    ],
)
def test_verdicts(mean, deviation, margin, verdict):
    assert contrast(differences(mean, deviation), "", margin).verdict == verdict


def test_the_verdict_is_read_off_the_interval():
    assert judge(0.01, 0.02, False) == HOLDS and judge(0.0, 0.02, False) == OPEN
    assert judge(0.01, 0.02, False, 0.05) == FAILS and judge(-0.01, 0.005, True) == EQUIVALENT
    assert judge(0.001, 0.005, True) == judge(-0.005, -0.001, True) == judge(0.001, 0.005, True, 0.05) == EQUIVALENT
    assert judge(-0.012, 0.005, True, -0.01) == HOLDS  # of "not more than a point below"
    assert judge(-math.inf, -0.01, False) == REVERSED and judge(0.01, math.inf, False, 0.05) == OPEN
    assert judge(-0.02, 0.04, False, 0.05) == FAILS and judge(-0.02, 0.04, False, 0.03) == OPEN
    assert judge(-0.02, 0.04, False, -0.01) == OPEN


def test_log_ratios_of_censored_times_are_never_further_from_zero_than_the_truth():
    inf, ends = math.inf, (np.full(6, 100.0), np.full(6, 50.0))
    faster, slower = np.array([10, 10, 80, inf, inf, 20.0]), np.array([40, inf, inf, 20, inf, 10.0])
    ratios, bounds = log_ratios(faster, slower, ends)
    assert np.exp(ratios) == pytest.approx([4, 5, 1, 0.2, 1, 0.5])  # the third's run ended before it could show a lead
    assert bounds == (False, False)
    assert log_ratios(faster[:3], slower[:3], (ends[0][:3], ends[1][:3]))[1] == (True, False)
    assert log_ratios(faster[3:4], slower[3:4], (ends[0][:1], ends[1][:1]))[1] == (False, True)
    assert log_ratios(faster[4:5], slower[4:5], (ends[0][:1], ends[1][:1]))[1] == (True, True)


def test_an_end_that_censoring_opens_decides_nothing_on_its_side():
    d = differences(0.5, 0.1)
    at_least = contrast(d, "", unit="log ratio", bounds=(True, False))
    assert (at_least.verdict, at_least.high, at_least.equal) == (HOLDS, math.inf, 1)
    assert contrast(d, "", 2.0, bounds=(True, False)).verdict == OPEN  # it may be more than 2
    assert contrast(d, "", 2.0, bounds=(True, True)).verdict == FAILS
    assert contrast(d, "", bounds=(False, True)).verdict == OPEN
    assert contrast(-d, "", bounds=(False, True)).verdict == REVERSED


def test_families_of_p_values():
    p = [0.01, 0.04, math.nan, 0.03, 0.005]
    known = [0.01, 0.04, 0.03, 0.005]
    for ours, method in ((holm, "holm"), (benjamini_hochberg, "fdr_bh")):
        adjusted = ours(p)
        assert math.isnan(adjusted[2])
        assert np.delete(adjusted, 2) == pytest.approx(multipletests(known, method=method)[1])
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(holm([math.nan])).all() and len(holm([])) == 0


def parts(*means: float, margin: float = 0.0, deviation: float = 0.01) -> list[Contrast]:
    return [contrast(differences(mean, deviation), "", margin) for mean in means]


def usable(parts: list[Contrast]) -> list[str]:
    return [verdict for verdict, _ in within_a_claim(parts)]


def test_one_refuted_part_of_many_has_to_stand_by_holm():
    one = -0.0125  # p = 0.0033 with ten seeds, whose bar is 0.01
    assert usable(parts(one)) == [REVERSED]
    assert usable(parts(*[0.05] * 20, one)) == [HOLDS] * 20 + [OPEN]
    assert usable(parts(*[0.05] * 20, -0.05)) == [HOLDS] * 20 + [REVERSED]
    assert within_a_claim([]) == []
    level = parts(0.0, deviation=0.01)  # equal by one test, p = 0.006
    assert usable(level) == [EQUIVALENT]
    assert usable([*level, *parts(*[0.05] * 9)])[0] == OPEN
    assert usable(level * 10) == [EQUIVALENT] * 10  # that all are needs no correction
    less = parts(0.03, margin=0.0425, deviation=0.01)
    assert usable(less) == [FAILS] and usable([*less, *parts(*[0.5] * 19, margin=0.1)])[0] == OPEN


def test_a_parts_p_is_corrected_only_where_it_refutes():
    """That other parts hold beyond doubt does not make one reversed part surer."""
    found = within_a_claim(parts(*[0.05] * 3, -0.0125))
    alone = parts(-0.0125)[0].scaled
    assert found[-1] == (OPEN, pytest.approx(4 * alone)) and found[0][1] == parts(0.05)[0].scaled


@pytest.mark.parametrize(("seeds", "verdict"), [(3, OPEN), (5, OPEN), (6, HOLDS), (32, HOLDS)])
def test_equal_differences_and_odd_input_decide_nothing_by_accident(seeds, verdict):
    found = contrast(np.full(seeds, 0.3) + 1e-16 * np.arange(seeds), "")
    assert found.verdict == verdict and found.p == pytest.approx(0.5 ** (seeds - 1))
    for few in ([], [0.5], [0.5, 0.4, np.nan], [np.inf, 1.0, 2.0, 3.0]):
        assert contrast(np.array(few), "").verdict == OPEN
