"""Oort: numbers worked out by hand, identities and switches, and runs."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfl_lite import Config, run
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.simulator import oort as constants
from asyncfl_lite.simulator.oort import (
    Oort,
    drawn,
    paced,
    preferred_duration,
    scores,
    speed_factor,
    statistical_utility,
    temporal_term,
)
from asyncfl_lite.simulator.scheduling import IdleClients
from conftest import update

SMALL = {"algorithm": "fedavg", "task": "digits", "clients": 12, "concurrency": 4, "local_steps": 3, "rounds": 6}
UTILITIES, DURATIONS, LAST = [6, 4, 2, 1], [20, 10, 5, 40], [1, 5, 9, 9]


def report(client, *, utility=1.0, duration=1.0, size=1):
    """A report of one client whose utility is as given."""
    square = (utility / size) ** 2
    return update([0.0], client=client, num_samples=size, duration=duration, mean_square_loss=square)


@pytest.fixture
def constant(monkeypatch):
    """Give some of Oort's constants other values."""
    return lambda **values: [monkeypatch.setattr(constants, name.upper(), value) for name, value in values.items()]


def started(sizes, **options) -> Oort:
    oort = Oort(**options)
    oort.start(sizes if isinstance(sizes, dict) else dict(enumerate(sizes)))
    return oort


def chosen(oort, count, rng, clients=None):
    """The clients of one round, taken out of the idle ones as the simulation does."""
    idle, taken = IdleClients(list(oort.num_samples if clients is None else clients)), []
    for client in oort.choose(idle, count, None, rng):
        idle.remove(client)  # fails where a client is not idle, or comes twice
        taken.append(client)
    return taken


def frequencies(counts, expected):
    """Whether counts are as likely as they should be: each within four standard deviations of its share."""
    counts, shares = np.array(counts), np.array(expected) / np.sum(expected)
    deviation = np.sqrt(counts.sum() * shares * (1 - shares))
    return bool((np.abs(counts - counts.sum() * shares) <= 4 * deviation).all())


def test_worked_utility_speed_and_age():
    utility = statistical_utility(3, (1 + 4 + 9) / 3)
    assert utility == pytest.approx(6.480740698, rel=1e-7)
    assert speed_factor([20.0], 10.0, 2.0)[0] == 0.25
    assert utility * speed_factor([20.0], 10.0, 2.0)[0] == pytest.approx(1.620185175, rel=1e-7)
    np.testing.assert_allclose(temporal_term([1, 20], 21), [0.5517719128, 0.1233799505], rtol=1e-7)


def test_worked_scores():
    preferred = preferred_duration(DURATIONS, 50)
    assert preferred == 20  # place 2 of 5, 10, 20, 40
    score = scores(UTILITIES, DURATIONS, LAST, 10, preferred)
    np.testing.assert_allclose(score, [1.47985259, 0.81467659, 0.36011083, 0.04003771], rtol=0, atol=5e-9)
    without = scores(UTILITIES, DURATIONS, LAST, 10, preferred, penalty=0)
    np.testing.assert_allclose(without[3], 0.16015082, rtol=0, atol=5e-9)


def test_an_outlier_counts_as_the_clip_bound(constant):
    utilities = [*range(1, 100), 1e6]  # place int(0.98 * 100) of the sorted ones holds 99
    score = scores(utilities, np.ones(100), np.ones(100), 1, math.inf)
    assert score[99] == score[98] == 1.0
    constant(clip_bound=1.0)
    assert scores(utilities, np.ones(100), np.ones(100), 1, math.inf)[98] < 1e-3


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 30)), min_size=1, max_size=8),
    st.floats(0, 1e6),
    st.floats(0, 5),
)
def test_scores_are_finite_and_not_negative(rows, preferred, penalty):
    score = scores(*map(np.array, zip(*rows, strict=True)), 30, preferred, penalty=penalty)
    assert np.isfinite(score).all() and (score >= 0).all()


@pytest.mark.parametrize(
    ("threshold", "before", "now", "expected"),
    [
        (10, 10, 10.9, 15), (10, 10, 9, 15), (10, 0, 0, 15), (10, 10, 11.5, 10), (10, 10, 5, 10),
        (10, 10, 59, 10), (10, 10, 60, 5), (10, 0, 3, 5), (98, 1, 1, 100), (7, 1, 6, 5),
    ],
)  # fmt: skip
def test_the_pacers_rule(threshold, before, now, expected):
    assert paced(threshold, before, now) == expected


@pytest.mark.parametrize(
    ("utility_of", "expected"),
    [
        (lambda r: 4.0, [10, 10, 10, 10, 15, 15, 20, 20, 25]),
        (lambda r: 10.0**r, [10, 10, 10, 10, 5, 5, 5, 5, 5]),
    ],
)
def test_the_pacer_looks_once_a_window(utility_of, expected, constant):
    """With windows of two rounds: first after the fourth round, then after every second."""
    constant(pacer_step=2, exploration=0, exploration_min=0)
    oort, rng = started([1] * 4), np.random.default_rng(0)
    for client in range(4):  # known from the start, so that every round exploits
        oort.observe(report(client, utility=utility_of(1)))
        oort.last_rounds[client] = 1
    seen = []
    for r in range(1, 10):
        for client in chosen(oort, 2, rng):
            oort.observe(report(client, utility=utility_of(r)))
        seen.append(oort.threshold)
    assert seen == expected


def test_neither_who_was_explored_nor_who_was_called_off_paces(constant):
    constant(exploration=0, exploration_min=0)
    oort, rng = started([1] * 3), np.random.default_rng(0)
    for reports in ({0: 90.0, 1: 90.0, 2: 90.0}, {0: 2.0, 1: 4.0}, {}):
        chosen(oort, 3, rng)
        for client, utility in reports.items():
            oort.observe(report(client, utility=utility))
    assert oort.history == [0.0, 3.0]  # nobody to exploit in the first round


def test_exploration_decays_to_its_minimum():
    oort = started([1])
    for oort.round, expected in ((1, 0.882), (2, 0.9 * 0.98**2), (3, 0.9 * 0.98**3), (1000, 0.2)):
        assert oort.epsilon == pytest.approx(expected)


def test_exploring_alone_tries_everyone_once_before_anyone_twice(constant):
    constant(exploration_min=1)
    oort, rng = started([1, 5, 2, 9, 3, 7, 1, 1, 4, 20]), np.random.default_rng(3)
    rounds = []
    for _ in range(4):
        rounds.append(chosen(oort, 3, rng))
        for client in rounds[-1]:
            oort.observe(report(client))
    first_nine = [client for row in rounds[:3] for client in row]
    assert len(set(first_nine)) == 9
    assert set(range(10)) - set(first_nine) <= set(rounds[3]) and len(set(rounds[3])) == 3


def test_drawing_without_replacement_is_proportional_among_those_left():
    rng, weights = np.random.default_rng(1), np.array([1.0, 2.0, 5.0])
    picked = Counter(tuple(drawn([7, 8, 9], weights, 2, rng)) for _ in range(8000))
    pairs = list(permutations(range(3), 2))
    expected = [weights[a] / 8 * weights[b] / (8 - weights[a]) for a, b in pairs]
    assert frequencies([picked[7 + a, 7 + b] for a, b in pairs], expected)


def exploiting():
    """After one round, four tried clients score 1.26, 1.26, 1.01 and 0.26; two of them are wanted."""
    oort = started([1] * 4)
    oort.round = 1
    for client, utility in enumerate([10.0, 10.0, 8.0, 2.0]):
        oort.observe(report(client, utility=utility))
    return oort


@pytest.mark.parametrize(("cut_off", "possible"), [(1.0, {0, 1, 2}), (0.7, {0, 1, 2}), (0.2, {0, 1, 2, 3})])
def test_the_cut_off_goes_by_the_best_client_that_is_not_wanted(cut_off, possible, constant):
    """The third score of four, with two wanted: a part of the second would leave the third out."""
    constant(cut_off=cut_off, exploration=0, exploration_min=0, round_threshold=100)  # and no preferred duration
    rng = np.random.default_rng(0)
    picked = Counter(chosen(exploiting(), 2, rng)[0] for _ in range(3000))
    assert set(picked) == possible
    score = scores([10, 10, 8, 2], np.ones(4), np.ones(4), 2, math.inf)
    allowed = sorted(possible)
    assert frequencies([picked[client] for client in allowed], score[allowed])


def test_new_clients_are_drawn_among_the_five_times_as_many_most_promising(constant):
    """The sixth largest never comes when one is wanted; a large one known to be slow is not among the first five."""
    rng, sizes = np.random.default_rng(0), [10, 9, 8, 7, 6, 5.9]
    assert {chosen(started(sizes), 1, rng)[0] for _ in range(500)} == {0, 1, 2, 3, 4}
    slow = Counter()
    constant(exploration_min=1, round_threshold=0)
    for _ in range(500):
        oort = started(sizes)
        oort.round, oort.durations = 1, {0: 20.0, 1: 2.0}
        slow.update(chosen(oort, 1, rng))
    assert set(slow) == {1, 2, 3, 4, 5}


@settings(deadline=None)
@given(data=st.data())
def test_as_many_different_idle_clients_as_asked_for(data):
    number = data.draw(st.integers(1, 12))
    oort = started(
        data.draw(st.lists(st.integers(1, 50), min_size=number, max_size=number)),
        penalty=data.draw(st.floats(0, 50)),
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    for _ in range(4):
        idle = data.draw(st.lists(st.integers(0, number - 1), min_size=1, unique=True))
        count = data.draw(st.integers(1, len(idle)))
        taken = chosen(oort, count, rng, idle)
        assert len(set(taken)) == len(taken) == count and set(taken) <= set(idle)
        for client in taken[: data.draw(st.integers(0, count))]:
            utility, duration = data.draw(st.floats(0, 1e9)), data.draw(st.floats(0, 1e9))
            oort.observe(report(client, utility=utility, duration=duration))


def test_who_is_called_off_is_known_to_be_slower_than_the_round():
    oort, rng = started([1] * 3), np.random.default_rng(0)
    assert set(chosen(oort, 3, rng)) == {0, 1, 2}
    oort.observe(report(0, duration=2.0))
    oort.observe(report(1, duration=3.0))
    assert 2 in chosen(oort, 1, rng)  # still never tried
    assert oort.durations == {0: 2.0, 1: 3.0, 2: 3.0}
    oort.observe(report(2, duration=60.0))
    chosen(oort, 3, rng)
    oort.observe(report(0, duration=4.0))
    chosen(oort, 3, rng)
    assert oort.durations == {0: 4.0, 1: 4.0, 2: 60.0}


def test_a_round_invites_more_and_calls_the_slowest_off():
    result = run(Config(**SMALL, selection="oort"))
    assert result.summary["versions"] == 6 and result.summary["client_updates"] == 24
    updates, called_off = result.updates, result.in_flight.dropna()
    assert len(called_off) == 5  # one of ceil(1.1 * 4) a round, but for the last round, in which it still trains
    assert len(result.in_flight) == 6
    for row in called_off.itertuples():
        mates = updates[updates["dispatched_at"] == row.dispatched_at]
        assert len(mates) == 4 and row.client not in set(mates["client"])
        assert mates["arrived_at"].max() == row.called_off_at
    assert set(updates["staleness"]) == {0}


@pytest.mark.parametrize("option", [{"penalty": 0.0}, {"overcommit": 1.5}])
def test_every_option_counts(option):
    base = {**SMALL, "rounds": 15, "eval_every": 10, "clients": 9, "selection": "oort"}
    runs = [schedule(Config(**base, selection_settings=one)).updates for one in ({}, option)]
    columns = ["client", "dispatched_at", "arrived_at"]
    assert not runs[0][columns].equals(runs[1][columns])
