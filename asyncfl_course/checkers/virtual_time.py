"""Checkers for lesson 01: a clock, mean staleness in four papers, report rates, two remedies."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, call, expect, numbers, shown, words
from asyncfl_course.explore import predicted_staleness, report_rates, run_clock
from asyncfl_lite.base.errors import how_many


@exercise("01.1", "A clock of your own")
def my_clock(answer: Any) -> str:
    """Compare the answer's clock with the package's: times, clients and staleness of all arrivals."""
    fleets = (([1.0, 2.0, 5.0], 2, 5), ([2**0.5, 3**0.5, 13.0**0.5, 170**0.5], 3, 40), ([1.5], 1, 4))
    for durations, size, versions in fleets:
        for policy in ("before_agg", "after_agg"):
            many = len(durations)
            planned = run_clock(
                "per_client", durations=durations, clients=many, concurrency=many, buffer_size=size,
                scheduling=policy, versions=versions,
            )  # fmt: skip
            columns = planned.updates[["arrived_at", "client", "staleness"]]
            wanted = list(columns.itertuples(index=False, name=None))
            given = [tuple(one) for one in call(answer, list(durations), size, versions, policy)]
            _same_arrivals(given, wanted, f"my_clock({shown(durations)}, {size}, {versions}, {policy!r})")
    return "A heap always has the earliest job on top, so the clock never needs to look at the others."


def _same_arrivals(given: list[tuple], wanted: list[tuple], called: str) -> None:
    names = ("time", "client", "staleness")
    heard = set()
    for number, (mine, theirs) in enumerate(zip(given, wanted, strict=False), start=1):
        expect(len(mine) == 3, f"{called}: an arrival is (time, client, staleness), but yours is {shown(mine)}.")
        for name, one, other in zip(names, mine, theirs, strict=True):
            if not np.isclose(float(one), float(other)):
                hints = {
                    "time": "The next job begins when its client reports.",
                    "client": "The earliest job is next. On a tie, it is the one with the smaller number.",
                    "staleness": "Which version was this client sent when it last reported, the one from before that "
                    "report or the one from after it? Staleness counts the versions since.",
                }
                if name == "staleness" and theirs[1] not in heard:
                    hints[name] = (
                        "This client was sent version 0 and reports for the first time. How many versions were there "
                        "before this report came? A version that the report itself completes does not count."
                    )
                raise Wrong(f"{called}: arrival {number} has {name} {one:g}, expected {other:g}. {hints[name]}")
        heard.add(theirs[1])
    expect(
        len(given) == len(wanted),
        f"{called} gives {how_many(len(given), 'arrival')}, expected {len(wanted)}. Stop at the last version.",
    )


@exercise("01.2", "Four papers")
def four_papers(answer: Any) -> str:
    """Check the mean staleness of updates in FedEcho, FedRevive, KUIPER and FedAvg."""
    said = numbers(answer, 4, "Four numbers are asked for.")
    cases = (  # each with the tolerance for a mean that was simulated
        ("FedEcho", ("before_agg", 25, 5), 0.1, "25 jobs age with each version, and 5 updates share that."),
        ("FedRevive", ("after_agg", 100, 1), 0.5, "the reporting client's slot is empty when the version is made."),
        ("KUIPER", ("burst", 12, 4), 0.1, "four clients wait while the version is made; how many train?"),
        ("FedAvg", ("rounds", 25, 25), 0.1, "when the version of a round is made, no client trains."),
    )
    for given, (name, setting, near, why) in zip(said, cases, strict=True):
        if abs(given - predicted_staleness(*setting)) > near:
            looks = "How many jobs age when a version is made, and how many updates does it use up?"
            raise Wrong(f"{name}: you say {given:g}. Think again: {why}", f"{name}: you say {given:g}. {looks}")
    return "Only who is in flight when a version is made decides; no delay enters."


asks_for(
    "01.3", "Who reports how often", report_rates,
    cases=[
        ((np.array([1.0] * 6 + [8.0] * 2), 3), "reports × duration is the share of a slot; shares must add up to 3"),
        ((np.array([2.0] * 10), 5),
         "identical clients are busy half of the time, so each reports once in four units"),
        ((np.array([1.0, 1.0, 1.0, 100.0]), 2), "a client that is 100 times slower is hardly ever idle"),
        ((np.array([0.5, 4.0]), 1),
         "two clients share one slot, so each cycle of the two takes as long as both jobs"),
    ],
    rtol=5e-3,
    right="The idle rate is the one number that all clients share, and it must fill exactly the slots that there are.",
    mistakes={
        "Those are shares of a slot, which add up to the jobs in flight; the question asks for reports a unit of time.":
            lambda d, a: report_rates(d, a) * d,
        "This shares the slots out evenly; but a slow client holds its slot for longer.":
            lambda d, a: a / len(d) / d,
        "This is the rate of a client that is never idle; but there are more clients than slots.":
            lambda d, a: 1 / d,
    },
)  # fmt: skip


@exercise("01.4", "Two remedies")
def two_remedies(answer: Any) -> str:
    """Check which remedy makes updates fresher, and which one lets the server hear from stragglers more often."""
    asked = 'Two names are asked for, each "faster" or "fewer".'
    fresher, heard = words(answer, 2, ("faster", "fewer"), asked)
    wrong = []
    if fresher != "fewer":
        wrong.append(
            'Fresher: you say "faster". That halves their jobs, and with them their staleness, from 126 to 64 versions.'
            " But how many versions does one whole job miss when only 12 clients make them?"
        )
    if heard != "fewer":
        wrong.append(
            'More often heard: you say "faster". That takes them from 0.76% of the updates to 1.44%. But what share '
            "do they have if most clients, fast and slow, are idle and are called equally often?"
        )
    if wrong:
        looks = "How many versions does one whole job miss, and how large a share of the calls goes to stragglers?"
        raise Wrong(" ".join(wrong), f"Not both are right. Ask for each remedy: {looks[0].lower()}{looks[1:]}")
    return "With fewer slots versions are made more slowly, while a straggler works almost as much as before."
