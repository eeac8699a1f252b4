"""The clock: the worked timeline, the staleness identities, the policies, the self-check."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfl_lite.algorithms import Algorithm, make_algorithm
from asyncfl_lite.base.errors import SimulationError
from asyncfl_lite.base.streams import stream
from asyncfl_lite.simulator.clock_only import ClockOnly, VersionCounter
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.jobs import Midway, Outcome
from asyncfl_lite.simulator.scheduling import (
    SCHEDULING,
    Burst,
    Continuous,
    IdleClients,
    Refill,
    Rounds,
    SameClient,
    Uniform,
)
from asyncfl_lite.simulator.simulation import Simulation
from conftest import Fixed

NOTHING = Outcome(torch.zeros(1))


class Counting(Algorithm):
    """Counts updates and makes a version of every M of them; no vectors."""

    def on_receive(self, update) -> bool:
        self.held = getattr(self, "held", 0) + 1
        return self.held == self.buffer_size and self.flush()

    def flush(self) -> bool:
        self.held = 0
        return self.new_version(self.x)


def simulate(scheduling, delays, clients, *, method=None, train=None, **options) -> Simulation:
    method = method or Counting(buffer_size=scheduling.buffer_size)
    method.start(torch.zeros(1), keep_versions=False)
    simulation = Simulation(method, scheduling, delays, range(clients), **options)
    simulation.run(train or (lambda jobs: [NOTHING] * len(jobs)))
    return simulation


TIMELINE = {
    "before_agg": "(1,0,0) (2,1,0)* (2,0,1) (3,0,0)* (4,1,2) (4,0,1)* (5,2,3) (5,0,1)* (6,1,2)",
    "after_agg": "(1,0,0) (2,1,0)* (2,0,1) (3,0,0)* (4,1,1) (4,0,0)* (5,2,3) (5,0,0)* (6,1,2)",
}


@pytest.mark.parametrize("scheduling", TIMELINE)
def test_worked_timeline(scheduling):
    """By hand: three clients of durations 1, 2, 5 and a buffer of two."""
    policy = Continuous(3, 2, scheduling=scheduling)
    simulation = simulate(policy, Fixed(1, 2, 5), 3, rounds=100, horizon=6.0, selection=SameClient())
    shown, version = [], 0
    for arrival in simulation.arrivals[:9]:
        star = "*" if arrival.version > version else ""
        shown.append(f"({arrival.arrived_at:g},{arrival.client},{arrival.staleness}){star}")
        version = arrival.version
    assert " ".join(shown) == TIMELINE[scheduling]


@pytest.mark.parametrize("scheduling", TIMELINE)
def test_who_trains_and_for_how_long_come_from_two_streams(scheduling):
    """Replayed by hand: a random idle client, of whom the one that has just reported is one, and the next duration."""
    law = SimpleNamespace(draw=lambda client, rng: 1 + rng.random())
    arrivals = simulate(Continuous(3, 2, scheduling=scheduling), law, 5, rounds=40, seed=7).arrivals
    choices, delays, idle, due = stream(7, "client choice"), stream(7, "delays"), IdleClients(range(5)), []

    def dispatched(now):
        idle.remove(client := idle.draw(choices))
        heappush(due, (now + (1 + delays.random()), client))
        return client

    for _ in range(3):
        dispatched(0.0)
    again = 0
    for arrival in arrivals:
        now, client = heappop(due)
        assert (arrival.arrived_at, arrival.client) == (now, client)
        idle.add(client)
        again += dispatched(now) == client
    assert 0.2 < again / len(arrivals) < 0.5  # of three idle clients, it is one


@pytest.mark.parametrize(
    ("law", "clients", "in_flight", "buffer", "scheduling", "versions", "expected", "within"),
    [
        pytest.param("fedecho_large", 50, 25, 5, "before_agg", 20_000, 5.0, 0.03, marks=pytest.mark.long),
        ("fedecho_mild", 50, 25, 5, "before_agg", 10_000, 5.0, 0.03),
        ("fedecho_mild", 50, 25, 5, "after_agg", 10_000, 4.8, 0.03),
        ("fedrevive", 1000, 100, 1, "after_agg", 8_000, 99.0, 1.3),
        ("fedrevive_shift", 1000, 100, 1, "after_agg", 8_000, 99.0, 1.3),
        ("constant", 10, 10, 2, "after_agg", 2_000, 4.5, 0.01),
    ],
)
def test_mean_staleness_identity(law, clients, in_flight, buffer, scheduling, versions, expected, within):
    """Little's law: A/M before aggregation, (A - 1)/M after it, whatever the delays."""
    delays = DELAYS.get(law)().prepare(np.full(clients, 80), np.random.default_rng(0))
    policy = Continuous(in_flight, buffer, scheduling=scheduling)
    simulation = simulate(policy, delays, clients, rounds=versions)
    staleness = np.array([arrival.staleness for arrival in simulation.arrivals])
    assert staleness.mean() == pytest.approx(expected, abs=within)


@pytest.mark.parametrize("policy", list(SCHEDULING))
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_policy_keeps_the_rules(policy, data):
    clients = data.draw(st.integers(2, 12))
    in_flight = data.draw(st.integers(1, clients))
    buffer = data.draw(st.integers(1, in_flight))
    durations = data.draw(st.lists(st.floats(0.01, 50), min_size=1, max_size=5))
    scheduling, seed = SCHEDULING.get(policy)(in_flight, buffer), data.draw(st.integers(0, 9))
    simulation = simulate(scheduling, Fixed(*durations), clients, rounds=12, seed=seed)
    times = [arrival.arrived_at for arrival in simulation.arrivals]
    assert times == sorted(times)
    assert simulation.algorithm.version == 12
    assert all(a.staleness >= 0 and a.arrived_at >= a.dispatched_at for a in simulation.arrivals)
    for client in range(clients):
        mine = [a for a in simulation.arrivals if a.client == client]
        assert all(before.arrived_at <= after.dispatched_at for before, after in zip(mine, mine[1:], strict=False))


@pytest.mark.parametrize(
    ("policy", "durations", "server_time", "ends"),
    [(Rounds(3, 3), (1, 2, 5), 0, 20), (Continuous(1, 1, scheduling="after_agg"), (1,), 0, 4),
     (Continuous(1, 1, scheduling="after_agg"), (1,), 0.5, 6)],
)  # fmt: skip
def test_rounds_wait_for_the_slowest_and_everyone_for_the_server(policy, durations, server_time, ends):
    simulation = simulate(policy, Fixed(*durations), len(durations), rounds=4, server_time=server_time)
    assert simulation.clock == ends and {one.staleness for one in simulation.arrivals} == {0}
    assert len(simulation.arrivals) == 4 * policy.buffer_size


def test_a_burst_blocks_its_clients_until_it_closes():
    simulation = simulate(Burst(4, 2), Fixed(1, 3, 10, 20), 4, rounds=4)
    rows = [(a.client, a.dispatched_at, a.arrived_at, a.start_version) for a in simulation.arrivals]
    # clients 0 and 1 close a burst at 3, 6 and 9; then 2 reports at 10 and waits for 0, who reports at 10
    assert rows[:6] == [(0, 0, 1, 0), (1, 0, 3, 0), (0, 3, 4, 1), (1, 3, 6, 1), (0, 6, 7, 2), (1, 6, 9, 2)]
    assert rows[6:] == [(2, 0, 10, 0), (0, 9, 10, 3)]


def test_refill_keeps_between_the_threshold_and_half_more_active():
    seen = []
    delays = DELAYS.get("fedadt")().prepare(np.ones(500), np.random.default_rng(0))
    method = Counting(buffer_size=1)
    method.start(torch.zeros(1), keep_versions=False)
    simulation = Simulation(method, Refill(100, 1), delays, range(500), rounds=3000, seed=0)
    simulation.observers.append(lambda s, arrival: seen.append(s.in_flight))
    simulation.run(lambda jobs: [NOTHING] * len(jobs))
    assert min(seen) == 100 and max(seen) == 149


def test_horizon_ends_before_later_arrivals_and_trains_nothing_for_them():
    trained = []

    def train(jobs):
        trained.extend(jobs)
        return [NOTHING] * len(jobs)

    simulation = simulate(Continuous(2, 1), Fixed(1, 100), 2, horizon=10.5, train=train, selection=SameClient())
    assert [a.arrived_at for a in simulation.arrivals] == list(range(1, 11))
    assert {job.client for job in trained} == {0}
    assert simulation.clock == 10.5


def test_a_simulation_that_is_interrupted_in_training_goes_on_in_another_call():
    def build():
        method = Counting(buffer_size=2)
        method.start(torch.zeros(1), keep_versions=False)
        return Simulation(method, Continuous(4, 2), Fixed(1, 2, 5, 7), range(8), rounds=20)

    whole = build()
    whole.run(lambda jobs: [NOTHING] * len(jobs))
    stepped = build()
    for _ in range(5):
        calls = iter([1])
        with pytest.raises(StopIteration):
            stepped.run(lambda jobs: [NOTHING] * (next(calls) * len(jobs)))  # noqa: B023
    stepped.run(lambda jobs: [NOTHING] * len(jobs))
    assert repr(stepped.arrivals) == repr(whole.arrivals)


@pytest.mark.parametrize("policy", ["rounds", "burst", "before_agg"])
def test_refused_updates_are_counted_and_the_run_goes_on(policy):
    def train(jobs):
        return [Outcome(torch.full((1,), math.nan if job.client == 0 else 1.0)) for job in jobs]

    method = make_algorithm("fedbuff", buffer_size=3)
    simulation = simulate(SCHEDULING.get(policy)(3, 3), Fixed(1, 2, 3), 3, method=method, train=train, rounds=8)
    refused = [a for a in simulation.arrivals if not a.accepted]
    assert method.version == 8
    assert refused and {a.client for a in refused} == {0}
    assert len(method.rejections) == len(refused)
    assert torch.isfinite(method.x).all()


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(0, 5))
def test_idle_clients_are_a_set_with_random_choice(commands, seed):
    idle, model, rng = IdleClients(range(5), highest=30), set(range(5)), np.random.default_rng(seed)
    for client in commands:
        if client in model:
            idle.remove(client)
            model.remove(client)
        else:
            idle.add(client)
            model.add(client)
        assert set(idle.as_list()) == model and len(idle) == len(model)
        assert not model or idle.draw(rng) in model


class Inviting(Uniform):
    """Uniform, one and a half times as many as wanted."""

    overcommit = 1.5


def test_an_overcommitted_round_ends_with_the_first_reports_and_calls_the_rest_off():
    simulation = simulate(Rounds(4, 4), Fixed(1, 2, 3, 4, 50, 60), 6, rounds=3, selection=Inviting())
    assert simulation.clock == 12
    assert [arrival.client for arrival in simulation.arrivals] == [0, 1, 2, 3] * 3
    assert [(client, ended) for client, _, _, ended, _ in simulation.ended] == [(4, 4), (5, 4), (4, 8), (5, 8)]
    assert sorted(simulation.idle.as_list()) == [0, 1, 2, 3]


class Merging(Counting):
    """Sends every client the newest version at half time."""

    midway = 0.5

    def midway_model(self, start_version):
        return Midway(torch.full((1,), float(self.version)), 1.0)

    def on_receive(self, update) -> bool:
        return self.new_version(torch.full((1,), float(self.version + 1)))


def test_half_way_models_are_those_of_that_time_and_jobs_train_after_it():
    """Client 0 reports at 1, 2, 3, …; client 1 needs 5: half-way, at 2.5, the version is 2."""
    seen = {}

    def train(jobs):
        for job in jobs:
            seen[job.client, job.number] = (job.midway.model.item(), job.start_version)
        return [NOTHING] * len(jobs)

    simulate(Continuous(2, 1, scheduling="after_agg"), Fixed(1, 5), 2, method=Merging(), train=train,
             horizon=5.0, selection=SameClient())  # fmt: skip
    assert seen[1, 0] == (2, 0)
    assert [seen[0, number] for number in range(4)] == [(number, number) for number in range(4)]


def dispatching(how) -> type:
    """A policy that does something else after a report."""
    return type(
        "Mine", (type(Continuous(1)),), {"after_receive": lambda self, simulation, client, changed: how(simulation)}
    )


@pytest.mark.parametrize(
    ("policy", "durations", "words"),
    [(dispatching(lambda one: one.dispatch(one.jobs[0].client))(2, 1), (1, 2, 3, 4), "was dispatched while it was training"),
     (dispatching(lambda one: one.dispatch_idle(2))(2, 1), (1, 2, 3, 4), "3 clients in flight, at most 2 allowed"),
     (Continuous(1, 1), (-1.0,), "client 0"), (Continuous(1, 1), (math.nan,), "client 0")],
)  # fmt: skip
def test_the_self_check_finds(policy, durations, words):
    with pytest.raises(SimulationError, match=words):
        simulate(policy, Fixed(*durations), len(durations), rounds=10)


@pytest.mark.parametrize("scheduling", ["before_agg", "after_agg"])
@pytest.mark.parametrize(
    ("law", "in_flight", "buffer_size", "options", "later"),
    [
        ("exponential", 12, 1, {"rounds": 60, "server_time": 0.2}, {"rounds": 70}),
        ("fedecho_mild", 10, 4, {"rounds": 25, "keep_arrivals": False}, {"rounds": 40}),
        ("fedecho_large", 10, 5, {"horizon": 30.0}, {}),
        ("constant", 3, 2, {"rounds": 0}, {"rounds": 1}),
    ],
)
def test_a_clock_alone_goes_as_a_simulation_does(scheduling, law, in_flight, buffer_size, options, later):
    """Bit for bit: times, choices, versions and random streams; also when it goes on."""
    left = []
    for kind in (ClockOnly, Simulation):
        delays = DELAYS.get(law)().prepare(np.arange(1, 31), np.random.default_rng(1))
        policy = Continuous(in_flight, buffer_size, scheduling=scheduling)
        clock = kind(VersionCounter(buffer_size), policy, delays, range(30), seed=3, **options)
        for _ in range(2):
            clock.run_alone() if kind is ClockOnly else clock.run(lambda jobs: [Outcome(None)] * len(jobs))
            state = {name: value for name, value in clock.state().items() if name not in ("jobs", "untrained")}
            left.append((kind, repr((state, clock.jobs, vars(clock.algorithm), clock.most_versions_in_flight))))
            for name, value in later.items():
                setattr(clock, name, value)
    assert [what for kind, what in left if kind is ClockOnly] == [what for kind, what in left if kind is Simulation]
