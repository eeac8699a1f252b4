"""Faults at clients: what is lost, late, cut short, doubled or damaged, and clients that come and go."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asyncfl_lite import Config, run
from asyncfl_lite.algorithms import ALGORITHMS, make_algorithm
from asyncfl_lite.base.errors import DataError, SimulationError
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.clock_only import VersionCounter
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.faults import DROPPED_OUT, DUPLICATE, GIVEN_UP, LEFT, Faults
from asyncfl_lite.simulator.faulty_simulation import KINDS, Fates, FaultyClock, FaultySimulation, Presence, read_spells
from asyncfl_lite.simulator.jobs import Fate, Outcome
from asyncfl_lite.simulator.scheduling import SCHEDULING, Continuous, SameClient
from asyncfl_lite.simulator.simulation import Simulation
from conftest import EVERYTHING, Fixed, line

STRIKING = {
    "dropout": {"dropout": 0.3, "time_out": 4.0},
    "crash": {"crash": 0.5, "late": 2.5},
    "partial": {"partial": 0.6},
    "duplicate": {"duplicate": 0.6},
    "damage": {"damage": 0.4},
    "time_out": {"time_out": 1.5},
    "away": {"available": 5.0, "away": 2.0, "time_out": 4.0},
}
"""A faults of each kind."""
SMALL = {
    "clients": 6, "concurrency": 3, "rounds": 8, "eval_every": 4, "local_steps": 3, "batch_size": 8, "client_lr": 0.05,
    "delay": "fedecho_mild", "seed": 1,
}  # fmt: skip


def config(algorithm="fedbuff", **changes) -> Config:
    method = ALGORITHMS.get(algorithm)
    own = {"buffer_size": 2} if method.buffered and method.scheduling != "rounds" else {}
    own |= {"settings": {"distill_samples": 20}} if algorithm == "fedecho" else {}
    return Config(**{**SMALL, "algorithm": algorithm, **own, **changes})


def clock(policy, delays, clients, faults, *, buffer=1, in_flight=None, fates=None, **options) -> FaultyClock:
    """Run a server without a model; ``fates`` of jobs by number replace what is drawn."""
    scheduling = policy if not isinstance(policy, str) else SCHEDULING.get(policy)(in_flight or clients, buffer)
    simulation = FaultyClock(
        VersionCounter(scheduling.buffer_size), scheduling, delays, range(clients), faults=Faults(**faults), **options
    )
    if fates is not None:
        simulation.fates.draw = lambda client: fates.get(simulation.sequence_no - 1)
    simulation.run_alone()
    return simulation


def arrivals(simulation) -> list[tuple[float, int, int]]:
    """Time, client and start version of every arrival."""
    return [(row.arrived_at, row.client, row.start_version) for row in simulation.arrivals]


def adds_up(simulation) -> None:
    """Every job that was dispatched has arrived once, was lost, was called off, or is in flight."""
    first = [row for row in simulation.arrivals if row.refused != DUPLICATE]
    assert simulation.sequence_no == len(first) + len(simulation.ended) + simulation.in_flight
    assert len({(row.client, row.dispatched_at) for row in first}) <= len(first) == simulation.received


def test_by_default_nothing_goes_wrong():
    assert Faults().none and Config().faults == Faults()
    assert all(not Faults(**faults).none for faults in STRIKING.values())
    assert type(Run(config()).simulation) is Simulation
    assert type(Run(config(faults={"crash": 0.1})).simulation) is FaultySimulation


@pytest.mark.parametrize("algorithm", ["fedbuff", "fedavg", "kuiper", "fedasmu", "fedecho"])
@pytest.mark.parametrize("faults", [{"time_out": 1e9}, {"time_out": 1e9, "available": 1e12, "away": 1e-6}], ids=str)
def test_trouble_that_never_strikes_changes_no_bit(algorithm, faults):
    plain, troubled = run(config(algorithm)), run(config(algorithm, faults=faults))
    for table in ("updates", "in_flight", "curve"):
        pd.testing.assert_frame_equal(getattr(plain, table), getattr(troubled, table), check_exact=True)
    assert plain.summary.items() <= troubled.summary.items()
    assert troubled.summary["lost_jobs"] == 0


def fates_drawn(kinds, count=300, seed=4) -> list[Fate]:
    chances = {kind: value for name in kinds for kind, value in STRIKING[name].items()}
    delays = DELAYS.get("exponential")().prepare(np.ones(3), np.random.default_rng(0))
    fates = Fates(Faults(**chances), delays, seed)
    return [fates.draw(number % 3) or Fate() for number in range(count)]


OF_KIND = {
    "dropout": lambda fate: fate.lost, "crash": lambda fate: fate.crashed, "partial": lambda fate: fate.share,
    "duplicate": lambda fate: fate.again, "damage": lambda fate: fate.damage,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None)
@given(others=st.sets(st.sampled_from(KINDS)), seed=st.integers(0, 5))
def test_a_kind_strikes_the_same_jobs_whatever_else_does(kind, others, seed):
    alone = list(map(OF_KIND[kind], fates_drawn([kind], seed=seed)))
    assert alone == list(map(OF_KIND[kind], fates_drawn({kind, *others}, seed=seed)))
    chance = STRIKING[kind][kind]
    struck = sum(told != OF_KIND[kind](Fate()) for told in alone) / len(alone)
    assert abs(struck - chance) < 5 * math.sqrt(chance * (1 - chance) / len(alone))


class Watched(Fixed):
    """Draws a number a job, and notes it; of the run's own stream only."""

    def __init__(self) -> None:
        self.drawn: dict[int, list[float]] = {}

    def draw(self, client, rng):
        number = rng.standard_exponential()
        self.drawn.setdefault(id(rng), []).append(number)
        return number


@pytest.mark.parametrize("kind", STRIKING)
@settings(max_examples=6, deadline=None)
@given(other=st.sampled_from(list(STRIKING)), seed=st.integers(0, 9))
def test_delays_and_presence_do_not_move(kind, other, seed):
    """Job number n draws the same from the law, and clients come and go at the same times."""
    drawn, left = [], []
    for faults in ({}, STRIKING[kind], {**STRIKING[kind], **STRIKING[other]}):
        delays = Watched()
        simulation = clock("before_agg", delays, 8, faults, in_flight=4, horizon=30.0, seed=seed)
        drawn.append(delays.drawn[id(simulation.delay_stream)])
        if simulation.present is not None:
            presence = simulation.present.presence
            presence.advance(30.0)
            left.append((presence.there, presence.leaves))
    shortest = min(map(len, drawn))
    assert shortest > 15
    assert drawn[0][:shortest] == drawn[1][:shortest] == drawn[2][:shortest]
    if left:
        expected = Presence(Faults(**STRIKING["away"]), range(8), seed)
        expected.advance(30.0)
        assert all(found == (expected.there, expected.leaves) for found in left)


def test_choices_and_batches_do_not_move():
    """Damage changes neither who is chosen nor when, and no kind what a job of a client trains on."""
    plain, struck = run(config()), run(config(faults={"damage": 0.4, "duplicate": 0.5}))
    first = struck.updates[struck.updates["refused"] != DUPLICATE].reset_index(drop=True)
    who = ["client", "dispatched_at", "arrived_at"]
    assert first[who][: len(plain.updates)].equals(plain.updates[who]) and len(first) > len(plain.updates)
    one = Run(config(faults={"partial": 1.0}))
    one.simulation.scheduling.start(one.simulation)
    for job in one.simulation.jobs:
        cut = one.trainer.plan(job).indices
        assert len(cut) == max(1, math.ceil(3 * job.fate.share))
        job.fate = None
        assert np.array_equal(cut, one.trainer.plan(job).indices[: len(cut)])


TIMELINES = {
    # client 0's first job is lost at 4, when the server gives up on it; client 1 takes 3
    "before_agg": (Fixed(1, 3), 2, 1, 0, 4.0, 7.0, [(3, 1, 0), (5, 0, 1), (6, 1, 0), (6, 0, 1), (7, 0, 3)]),
    "after_agg": (Fixed(1, 3), 2, 1, 0, 4.0, 7.0, [(3, 1, 0), (5, 0, 1), (6, 1, 1), (6, 0, 2), (7, 0, 4)]),
    # the round of three ends at 5 with two reports, the next one at 8 with three
    "rounds": (Fixed(1, 2, 3), 3, 3, 1, 5.0, 8.0, [(1, 0, 0), (3, 2, 0), (6, 0, 1), (7, 1, 1), (8, 2, 1)]),
    # bursts of two: 0 and 2 at 5, 3 and 0 at 6; 0 waits from 7 for 1, which is given up at 8, and goes on with it
    "burst": (
        Fixed(1, 3, 5, 6), 4, 2, 1, 8.0, 10.5,
        [(1, 0, 0), (5, 2, 0), (6, 3, 0), (6, 0, 1), (7, 0, 2), (9, 0, 3), (10, 2, 1)],
    ),
    "refill": (Fixed(1, 2), 2, 1, 0, 3.0, 5.0, [(2, 1, 0), (4, 1, 1), (4, 0, 1), (5, 0, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("policy", TIMELINES)
def test_worked_timelines_of_a_lost_job(policy):
    delays, clients, buffer, lost, time_out, horizon, expected = TIMELINES[policy]
    simulation = clock(
        policy, delays, clients, {"time_out": time_out}, buffer=buffer, fates={lost: Fate(DROPPED_OUT)},
        horizon=horizon, selection=SameClient(),
    )  # fmt: skip
    assert arrivals(simulation) == expected
    assert simulation.ended == [(lost, 0.0, 0, time_out, DROPPED_OUT)]
    adds_up(simulation)


@pytest.mark.parametrize("policy", list(SCHEDULING))
def test_the_server_gives_up_on_slow_clients(policy):
    """Client 1 needs 10 and is waited for 3; client 0 needs 1, and in a round waits with the server."""
    simulation = clock(policy, Fixed(1, 10), 2, {"time_out": 3}, buffer=2, horizon=9.5, selection=SameClient())
    assert {row.client for row in simulation.arrivals} == {0}
    assert [(client, ended, why) for client, _, _, ended, why in simulation.ended] == [
        (1, time, GIVEN_UP) for time in (3, 6, 9)
    ]
    assert len(simulation.arrivals) == (3 if policy in ("rounds", "burst") else 9)
    adds_up(simulation)


def test_late_cut_short_and_second_arrivals():
    """Durations 4 and 2: late by 3 at 12, half the work at 2, twice at 2 and 2 + 5; out of order from then on."""
    fates = {0: Fate(crashed=True), 1: Fate(again=5.0), 2: Fate(share=0.5)}
    faults = {"crash": 0.1, "late": 3, "duplicate": 0.1, "partial": 0.1}
    simulation = clock("after_agg", Fixed(4, 2), 2, faults, fates=fates, horizon=12.0, selection=SameClient())
    told = [(row.arrived_at, row.client, row.dispatched_at, row.refused, row.faults) for row in simulation.arrivals]
    assert told == [
        (2, 1, 0, "", "duplicate"),
        (3, 1, 2, "", "partial"),
        (5, 1, 3, "", ""),
        (7, 1, 0, DUPLICATE, "duplicate"),  # after jobs 1 and 2 of the same client
        (7, 1, 5, "", ""),
        (9, 1, 7, "", ""),
        (11, 1, 9, "", ""),
        (12, 0, 0, "", "crash"),
    ]
    assert [row.staleness for row in simulation.arrivals][3] == 3
    assert simulation.received == 7 and simulation.algorithm.version == 7


def test_damage_is_refused_by_the_method_and_named():
    result = run(config(faults={"damage": 0.6}, rounds=6))
    refused, sound = result.updates[~result.updates["accepted"]], result.updates[result.updates["accepted"]]
    assert (refused["faults"] == "damage").all() and sound["refused"].isna().all() and sound["faults"].isna().all()
    kinds = Counter(reason.split(" (")[0] for reason in refused["refused"])
    assert set(kinds) == {"not finite", "wrong shape"}
    assert result.summary["damaged_updates"] == result.summary["rejected_updates"] == len(refused) > 5


def test_lost_jobs_are_never_trained_and_leave_their_reason():
    one, trained = Run(config(faults=EVERYTHING, rounds=25)), []
    one.begin()
    one.simulation.run(lambda jobs: trained.extend(jobs) or one.train(jobs))
    assert not any(job.fate and job.fate.lost for job in trained)
    assert all(job.sequence_no not in {other.sequence_no for other in trained} for job in one.simulation.jobs
               if job.fate and job.fate.lost)  # fmt: skip
    assert {why for *_, why in one.simulation.ended} == {DROPPED_OUT, LEFT, GIVEN_UP}
    adds_up(one.simulation)


def write_trace(path, spells):
    rows = [f"{client},{start},{until}" for client, parts in spells.items() for start, until in parts]
    path.write_text("\n".join(["client,from,until", *rows]) + "\n")
    return path


def test_worked_timeline_of_a_client_that_leaves_and_one_that_comes(tmp_path):
    """Client 1 leaves at 2.5 with a job of 2 to 3 in hand; given up on at 4, when client 2 has come."""
    trace = write_trace(tmp_path / "t.csv", {0: [(0, "inf")], 1: [(0, 2.5)], 2: [(4, 9)]})
    simulation = clock(
        "after_agg", Fixed(1), 3, {"trace": trace, "time_out": 2}, in_flight=2, horizon=5.0, selection=SameClient()
    )
    times = [(row.arrived_at, row.client) for row in simulation.arrivals]
    assert times == [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (4, 0), (5, 2), (5, 0)]
    assert simulation.ended == [(1, 2.0, 4, 4.0, LEFT)]


@pytest.mark.parametrize("policy", list(SCHEDULING))
def test_dispatches_are_owed_until_somebody_comes(policy, tmp_path):
    trace = write_trace(tmp_path / "t.csv", {0: [(0, 20)], 1: [(5.5, 20)]})
    simulation = clock(policy, Fixed(1, 1), 2, {"trace": trace, "time_out": 3}, buffer=2, horizon=8.0)
    times = [(row.dispatched_at, row.client) for row in simulation.arrivals]
    assert [time for time, client in times if client == 0][:5] == [0, 1, 2, 3, 4]  # nobody waits for who is not there
    assert min(time for time, client in times if client == 1) == 5.5
    adds_up(simulation)


def test_who_waits_in_a_burst_fills_no_other_slot(tmp_path):
    """Client 1 reports at 1 and is gone from 1.1 to 1.2, while the server works until 1.4; client 2 is owed work."""
    trace = write_trace(tmp_path / "t.csv", {0: [(0, 9)], 1: [(0, 1.1), (1.2, 9)], 2: [(5, 9)]})
    faults = {"trace": trace, "time_out": 3}
    simulation = clock("burst", Fixed(2, 1, 1), 3, faults, buffer=1, in_flight=3, server_time=0.4, horizon=8.0)
    assert arrivals(simulation)[:3] == [(1, 1, 0), (2, 0, 0), (2.4, 1, 1)]
    assert min(row.dispatched_at for row in simulation.arrivals if row.client == 2) == pytest.approx(5.0, abs=0.4)
    adds_up(simulation)


def test_nobody_there_and_nobody_to_come_is_one_line(tmp_path):
    trace = write_trace(tmp_path / "t.csv", {0: [(0, 2.5)], 1: [(1, 3.5)]})
    options = {"trace": trace, "time_out": 3}
    with pytest.raises(
        SimulationError, match=r"^nobody is in flight at time [\d.]+, version \d of 99, and no client comes back"
    ):
        clock("after_agg", Fixed(1), 2, options, rounds=99)
    assert clock("after_agg", Fixed(1), 2, options, rounds=99, horizon=50.0).clock == 50


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nobody_is_sent_work_while_away(data, tmp_path):
    clients = data.draw(st.integers(1, 6))
    times = st.lists(st.floats(0, 30).map(lambda x: round(x, 1)), min_size=2, max_size=6, unique=True)
    spells = {}
    for client in range(clients):
        edges = sorted(data.draw(times))
        spells[client] = list(zip(edges[::2], edges[1::2], strict=False))
    policy = data.draw(st.sampled_from(list(SCHEDULING)))
    in_flight = data.draw(st.integers(1, clients))
    faults = {
        "trace": write_trace(tmp_path / "t.csv", spells), "time_out": data.draw(st.sampled_from([0.5, 3.0])),
        "dropout": data.draw(st.sampled_from([0.0, 0.3])), "duplicate": data.draw(st.sampled_from([0.0, 0.5])),
    }  # fmt: skip
    simulation = clock(
        policy, Fixed(*data.draw(st.lists(st.floats(0.1, 5), min_size=1, max_size=4))), clients, faults,
        in_flight=in_flight, buffer=data.draw(st.integers(1, in_flight)), horizon=30.0,
        server_time=data.draw(st.sampled_from([0.0, 0.4])), seed=data.draw(st.integers(0, 9)),
    )  # fmt: skip
    adds_up(simulation)
    for row in simulation.arrivals:
        in_time = row.arrived_at if row.refused != DUPLICATE else row.dispatched_at
        assert any(start <= row.dispatched_at < until and in_time <= until for start, until in spells[row.client])
    for client, when, _, ended, why in simulation.ended:
        stay = next(until for start, until in spells[client] if start <= when < until)
        assert why != LEFT or stay < ended
    for job in simulation.jobs:
        assert any(start <= job.dispatched_at < until for start, until in spells[job.client])


def test_spells_have_the_means_that_were_asked_for():
    faults = Faults(available=6.0, away=2.0, time_out=1.0)
    presence, there, times = Presence(faults, range(400), 0), [], np.arange(0, 40, 1.0)
    for time in times:
        presence.advance(time)
        there.append(len(presence.there) / 400)
    assert np.mean(there) == pytest.approx(0.75, abs=0.02) and there[0] == pytest.approx(0.75, abs=0.08)
    remaining = [presence.leaves[client] - 39 for client in presence.there]
    assert np.mean(remaining) == pytest.approx(6.0, rel=0.2)
    before = (set(presence.there), dict(presence.leaves))
    presence.advance(100.0)
    presence.go_back_to(39.0)
    assert (presence.there, presence.leaves) == before


def test_a_trace_is_read_as_it_says(tmp_path):
    path = write_trace(tmp_path / "t.csv", {1: [(4, 6), (0, 2), (1, 3), (6, 8)], 9: [(0, 1)]})
    assert read_spells(path, range(3)) == {0: [], 1: [(0, 3), (4, 8)], 2: []}


BAD_TRACES = [
    ("client,start,end\n", "line 1: the header must name the columns client,from,until"),
    ("client,from,until\n0.5,0,1\n", "line 2: client must be a whole number of at least 0, got '0.5'"),
    ("client,from,until\n0,0,1\n0,-1,1\n", "line 3: from must be a time of at least 0, got '-1'"),
    ("client,from,until\n0,2,2\n", "line 2: until must be a time later than from, got '2' and '2'"),
    ("client,from,until\n0,0\n", "line 2: until must be a time later than from, or inf, got None"),
    ("client,from,until\n77,0,1\n", "none of the run's 6 clients is ever there"),
    (None, "No such file or directory"),
]


@pytest.mark.parametrize(("text", "message"), BAD_TRACES, ids=[message[:30] for _, message in BAD_TRACES])
def test_a_bad_trace_is_one_line(text, message, tmp_path):
    path = tmp_path / "there.csv"
    if text is not None:
        path.write_text(text)
    told = line(lambda: Run(config(faults={"trace": path, "time_out": 3})), DataError)
    assert message in told and str(path) in told


def damaged(damage: float, delta: float) -> FaultySimulation:
    """A run of one in flight, whose clients send this delta, many of them damaged."""
    method = make_algorithm("fedbuff")
    method.start(torch.zeros(1), keep_versions=False)
    chosen = {"faults": Faults(damage=damage), "rounds": 60, "seed": 3}
    simulation = FaultySimulation(method, Continuous(1, 1), Fixed(1), range(2), **chosen)
    simulation.run(lambda jobs: [Outcome(torch.full((1,), delta)) for _ in jobs])
    return simulation


def test_much_damage_is_no_divergence_and_divergence_is_still_found_among_damage():
    """With nine of ten updates broken a run meets dozens in a row, more than divergence allows."""
    simulation = damaged(0.95, 0.0)
    accepted = "".join("x" if row.accepted else "." for row in simulation.arrivals)
    assert max(map(len, accepted.split("x"))) > 20 and simulation.algorithm.version == 60
    with pytest.raises(SimulationError, match="^the last 20 updates were all refused .not finite.*lower client_lr"):
        damaged(0.5, math.nan)


@pytest.mark.parametrize("policy", list(SCHEDULING))
def test_a_run_that_loses_every_job_ends(policy):
    with pytest.raises(
        SimulationError, match="^the last 10000 jobs were all lost or damaged, .*given up: raise time_out"
    ):
        clock(policy, Fixed(2), 3, {"time_out": 1}, rounds=5)
    assert clock(policy, Fixed(2), 3, {"time_out": 1}, rounds=5, horizon=7.0).clock == 7


@pytest.mark.parametrize(
    ("algorithm", "kind"), [*(("fedbuff", kind) for kind in STRIKING), *((name, "everything") for name in ALGORITHMS)]
)
def test_a_method_goes_on_under_faults_and_they_are_counted(algorithm, kind):
    faults = EVERYTHING if kind == "everything" else STRIKING[kind]
    one = Run(config(algorithm, faults=faults, rounds=10))
    result = one.finish()
    assert torch.isfinite(result.x).all() and result.summary["versions"] == 10
    adds_up(one.simulation)
    counts = result.summary
    assert counts["dispatched_jobs"] == one.simulation.sequence_no
    assert counts["lost_jobs"] == sum(counts[f"{why}_jobs"] for why in ("dropped_out", "left", "given_up"))
    told = {
        "dropout": "dropped_out_jobs", "crash": "late_updates", "partial": "partial_updates",
        "duplicate": "duplicate_updates", "damage": "damaged_updates", "time_out": "given_up_jobs", "away": "left_jobs",
    }  # fmt: skip
    for other, count in told.items():
        if kind == other:
            assert counts[count] > 0
        elif kind != "everything" and other not in ("time_out",):
            assert counts[count] == 0
    assert not result.updates["accepted"][result.updates["refused"].notna()].any()
    assert result.updates["accepted"][result.updates["refused"].isna()].all()


def test_a_version_that_a_loss_completes_is_tested_and_told_once():
    """Rounds of two whose second client never reports in time: every version is made by giving up."""
    one = Run(config("fedavg", clients=2, concurrency=2, rounds=6, eval_every=1, delay="constant",
                     faults={"time_out": 5.0}))  # fmt: skip
    one.simulation.fates.draw = lambda client: Fate(DROPPED_OUT) if client == 1 else None
    result = one.finish()
    assert result.curve["version"].tolist() == list(range(7))
    assert result.curve["time"].tolist() == [0, 5, 10, 15, 20, 25, 30]
    assert result.summary["lost_jobs"] == 6 and result.summary["client_updates"] == 6
