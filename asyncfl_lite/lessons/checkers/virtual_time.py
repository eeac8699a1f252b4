"""Lesson 01: a clock, four papers' mean staleness, who reports how often, two remedies, what failures cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfl_lite.explore import predicted_staleness, run_clock
from asyncfl_lite.lessons.exercises import Wrong, exercise
from asyncfl_lite.lessons.expectations import call, expect, expect_close, shown


@exercise("01.1", "A clock of your own")
def my_clock(answer: Any) -> None:
    """A function of durations, buffer size, versions and policy; compared with the package's clock."""
    fleets = (([1.0, 2.0, 5.0], 2, 5), ([2**0.5, 3**0.5, 13.0**0.5, 170**0.5], 3, 40), ([1.5], 1, 4))
    for durations, size, versions in fleets:
        for policy in ("before_agg", "after_agg"):
            many = len(durations)
            planned = run_clock(
                "per_client", durations=durations, clients=many, concurrency=many, buffer_size=size,
                redispatch=policy, versions=versions,
            )  # fmt: skip
            columns = planned.updates[["arrived_at", "client", "staleness"]]
            wanted = list(columns.itertuples(index=False, name=None))
            given = [tuple(one) for one in call(answer, list(durations), size, versions, policy)]
            _same_arrivals(given, wanted, f"my_clock({shown(durations)}, {size}, {versions}, {policy!r})")


def _same_arrivals(given: list[tuple], wanted: list[tuple], called: str) -> None:
    names = ("time", "client", "staleness")
    for number, (mine, theirs) in enumerate(zip(given, wanted, strict=False), start=1):
        expect(len(mine) == 3, f"{called}: an arrival is (time, client, staleness), yours is {shown(mine)}.")
        for name, one, other in zip(names, mine, theirs, strict=True):
            if not np.isclose(float(one), float(other)):
                raise Wrong(
                    f"{called}: arrival {number} has {name} {one:g}, expected {other:g}. "
                    + {
                        "time": "The next job begins when its client reports.",
                        "client": "The earliest job is next; on a tie, the one with the smaller number.",
                        "staleness": "Is the version sent the one from before the report, or from after it?",
                    }[name]
                )
    expect(
        len(given) == len(wanted),
        f"{called} gives {len(given)} arrivals, expected {len(wanted)}: stop when the last version is made.",
    )


@exercise("01.2", "Four papers")
def four_papers(answer: Any) -> None:
    """Four numbers, the mean staleness of FedEcho, FedRevive, KUIPER and FedAvg."""
    expect(isinstance(answer, tuple | list) and len(answer) == 4, "Four numbers are asked for.")
    cases = (
        ("FedEcho", ("before_agg", 25, 5), "25 jobs age with each version, 5 updates share that"),
        ("FedRevive", ("after_agg", 100, 1), "the reporter's slot is still empty when the version is made"),
        ("KUIPER", ("burst", 12, 4), "the four who reported wait while the version is made; who still trains?"),
        ("FedAvg", ("rounds", 25, 25), "when the version of a round is made, nobody trains"),
    )
    for given, (name, setting, why) in zip(answer, cases, strict=True):
        wanted = predicted_staleness(*setting)
        expect(np.isclose(float(given), wanted), f"{name}: you say {float(given):g}. Think again: {why}.")


@exercise("01.3", "Who reports how often")
def reports(answer: Any) -> None:
    """A function of mean durations and jobs in flight; the slots that it implies must add up."""
    cases = (
        (np.array([1.0] * 6 + [8.0] * 2), 3, "the shares of a slot must add up to 3"),
        (np.array([2.0] * 10), 5, "alike clients are busy half of the time, so each reports once in four units"),
        (np.array([1.0, 1.0, 1.0, 100.0]), 2, "a client that is 100 times slower is hardly ever idle"),
        (np.array([0.5, 4.0]), 1, "two clients share one slot, so each cycle of the two takes as long as both jobs"),
    )
    for durations, in_flight, why in cases:
        expect_close(answer, (durations, in_flight), _rates(durations, in_flight), because=why)


def _rates(durations: np.ndarray, in_flight: int) -> np.ndarray:
    low, high = 1e-9, 1e9
    for _ in range(200):  # by halves: the shares grow with the rate
        rate = (low * high) ** 0.5
        enough = (rate * durations / (1 + rate * durations)).sum() > in_flight
        low, high = (low, rate) if enough else (rate, high)
    return rate / (1 + rate * durations)


@exercise("01.4", "Two remedies")
def two_remedies(answer: Any) -> None:
    """Two names, which remedy makes fresher and which gets stragglers heard more."""
    expect(
        isinstance(answer, tuple | list) and len(answer) == 2 and set(answer) <= {"faster", "fewer"},
        'Two names are asked for, each "faster" or "fewer".',
    )
    fresher, heard = answer
    expect(
        fresher == "fewer",
        "Fresher: a straggler that is twice as fast halves its staleness, from 126 to 64 versions. But with 12 in "
        "flight the mean staleness of all falls to 12 / 5, and the stragglers' to 46.",
    )
    expect(
        heard == "fewer",
        "Heard: twice as fast gives them 1.44% of the updates, up from 0.76%. With 12 in flight many more fast clients "
        "are idle, and a straggler that reports is called again as readily as they: 1.87%.",
    )


@exercise("01.5", "Forecast the failures")
def failures(answer: Any) -> None:
    """Two numbers, updates per unit of time and the share of rounds that wait."""
    expect(isinstance(answer, tuple | list) and len(answer) == 2, "Two numbers are asked for: (updates, share).")
    updates, share = (float(one) for one in answer)
    expect(
        abs(updates - 25) > 0.5 and abs(updates - 22.5) > 0.5,
        f"(1) You say {updates:g}: a job that never returns also keeps its slot for 20 units, in which nobody else "
        "trains there.",
    )
    expect_close(
        updates, None, 25 * 0.9 / 2.9, rtol=0.02,
        because="(1) a slot is held for 0.9 · 1 + 0.1 · 20 units on average, and nine jobs in ten are heard",
    )  # fmt: skip
    expect(share <= 1, f"(2) You say {share:g}: write the share as a fraction of 1.")
    expect_close(
        share, None, 1 - 0.9**25, atol=0.006,
        because="(2) the chance that all 25 return is 0.9 to the power of 25",
    )  # fmt: skip
