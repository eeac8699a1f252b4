"""Checkers for lesson 00: an hour with a slow phone, a timeline, FedBuff's step, gains and costs, mean staleness."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, expect_close, numbers, words
from asyncfl_course.explore import predicted_staleness, run_clock
from asyncfl_lite import Update, make_algorithm


@exercise("00.1", "An hour with a slow phone")
def slow_phone(answer: Any) -> str:
    """Check two whole numbers: updates that arrive in an hour, and the slow phone's staleness."""
    said = numbers(answer, 2, "Two numbers are asked for: (updates, staleness).")
    durations = (2, 2, 2, 2, 59)
    heard = run_clock(
        "per_client", durations=durations, clients=5, concurrency=5, buffer_size=4, versions=None, horizon=60
    ).updates
    updates, staleness = len(heard), int(heard["staleness"][heard["client"] == 4].iloc[0])
    expect_close(said[0], None, updates, atol=0.5, because=HEARD.get(said[0], "how often does one fast phone report?"))
    expect_close(said[1], None, staleness, atol=0.5, because=OLD.get(said[1], "versions that the other four have made "
                 "by minute 59, at 2, 4, …, 58"))  # fmt: skip
    return "A fast phone reports every two minutes; the fifth phone's age counts the versions made meanwhile."


HEARD = {
    120: "these are the reports of the four fast phones; what does the slow one add?",
    5: "that would be a server that waits for all",
    124: "the slow phone reports once in the hour, and the four fast ones 30 times each",
    116: "a report at minute 60 counts",
}
OLD = {
    30: "at minute 60 that would be right, but the slow phone reports at 59",
    116: "these are updates; four of them make one version",
    120: "these are updates; four of them make one version",
    59: "staleness counts versions, not minutes",
}
"""Wrong staleness -> a hint on what the number counts; ``HEARD`` is the same for the number of updates."""


TIMELINE = (
    "this is the first report, and no version has been made yet",
    "client 1 was sent v0, and the server still has v0; this report then fills the buffer",
    "client 0 got v0 again at time 1, and arrival 2 has just made v1",
    "client 0 got v1 at time 2, and no version has been made since",
    "client 1 was sent v0 at time 2, before its own report filled the buffer, and the server has v2",
    "client 0 was sent v1 at time 3, before its own report made v2, and the server has v2",
    "client 2 has worked from v0 since time 0, and three versions were made meanwhile",
    "client 0 was sent v2 at time 4, before its own report made v3, and the server has v3",
    "client 1 was sent v2 at time 4, and versions 3 and 4 have been made since",
)


@exercise("00.2", "Nine arrivals")
def nine_arrivals(answer: Any) -> str:
    """Check nine whole numbers, the staleness of each arrival."""
    three = run_clock("per_client", durations=(1, 2, 5), clients=3, concurrency=3, buffer_size=2, versions=5).updates
    wanted, swapped = [0, 0, 1, 0, 1, 0, 3, 0, 2], three["staleness"].tolist()[:9]
    said = numbers(answer, 9, "Nine numbers are asked for, one per arrival.")
    if said == wanted:
        raise Wrong(
            "These are the numbers of the other convention, in which the client that fills the buffer gets the new "
            "version. Here a client is sent its next model first. Look at arrivals 5, 6 and 8 again."
        )
    for number, (given, right, why) in enumerate(zip(said, swapped, TIMELINE, strict=True), start=1):
        row = three.iloc[number - 1]
        who = f"Arrival {number}, client {row['client']} at time {row['arrived_at']:g}"
        if given != right:
            looks = "From which version did this client work, and which one does the server have when it reports?"
            raise Wrong(f"{who}: you say {given:g}. Think again: {why}.", f"{who}: you say {given:g}. {looks}")
    return "Staleness counts versions between dispatch and arrival, so it depends on what the others do."


def _fedbuff(x: Tensor, deltas: Tensor, staleness: Tensor, rate: float) -> Tensor:
    size = len(deltas)
    server = make_algorithm("fedbuff", buffer_size=size, server_lr=rate, staleness_weight="poly")
    server.start(x)
    for _ in range(size * int(staleness.max())):  # versions that change nothing
        server.receive(Update(client=0, delta=torch.zeros_like(x), start_version=server.version))
    now = server.version
    for delta, late in zip(deltas, staleness, strict=True):
        server.receive(Update(client=0, delta=delta, start_version=now - int(late)))
    return server.x


def _buffer(x: list, deltas: list, staleness: list, rate: float) -> tuple[Tensor, Tensor, Tensor, float]:
    return *(torch.tensor(one, dtype=torch.float64) for one in (x, deltas, staleness)), rate


def _poly(staleness: Tensor) -> Tensor:
    return (1 + staleness) ** -0.5


asks_for(
    "00.3", "FedBuff with staleness weights", _fedbuff,
    cases=[
        (_buffer([1.0, 0.0], [[0.4, 0.0], [0.0, 0.8]], [0, 0], 0.5),
         "fresh updates have the weight 1, so this is plain FedBuff"),
        (_buffer([1.0, 0.0], [[0.4, 0.0], [0.0, 0.8]], [0, 3], 0.5),
         "an update of staleness 3 has the weight ½, and the sum is divided by the number of updates, not by the sum "
         "of the weights"),
        (_buffer([0.0, 2.0], [[1.0, 1.0]], [8], 1.0),
         "a buffer of one update of staleness 8 moves the model by a third of it"),
        (_buffer([0.0], [[3.0], [0.0], [-3.0]], [0, 1, 0], 1.0), "the deltas cancel here"),
    ],
    right="Dividing by M makes a stale buffer's step shorter, and not only differently directed.",
    mistakes={
        "This is plain FedBuff: the staleness weights are missing.":
            lambda x, d, s, lr: x + lr * d.mean(0),
        "You divide by the sum of the weights; the paper divides by the number of updates.":
            lambda x, d, s, lr: x + lr * _poly(s) @ d / _poly(s).sum(),
        "You take the sum of the updates; divide it by their number.":
            lambda x, d, s, lr: x + lr * _poly(s) @ d,
        "The server learning rate is missing.":
            lambda x, d, s, lr: x + _poly(s) @ d / len(d),
        "You move away from the updates; they are added.":
            lambda x, d, s, lr: x - lr * _poly(s) @ d / len(d),
        "Each weight belongs to an update, which is a row of deltas; your weights multiply the columns.":
            lambda x, d, s, lr: x + lr * (d * _poly(s)).mean(0),
    },
)  # fmt: skip


@exercise("00.4", "Bought and paid")
def bought_and_paid(answer: Any) -> str:
    """Check which server leads after equal time, and which after the same number of updates."""
    names = ("fedavg", "fedbuff")
    time, updates = words(answer, 2, names, 'Two names are asked for, each "fedavg" or "fedbuff".')
    if time != "fedbuff":
        raise Wrong(
            "(a) A round of five phones lasts as long as its slowest phone, which is 50 to 80 units if one of them is "
            "slow. By time 60 FedBuff, with 25 phones at work, has received some 550 updates. FedAvg's updates are "
            "good, but there are few of them.",
            "(a) How many updates has each server received by time 60?",
        )
    if updates != "fedavg":
        raise Wrong(
            "(b) After 100 updates both have made 20 versions of 5 updates. FedAvg's updates were all computed from "
            "the model that they change, and FedBuff's from older models. Why would the older ones be better?",
            "(b) Both have received equally many updates. From which model was each one computed?",
        )
    return "Not waiting brings many more updates in the same time, and each of them is worth less."


asks_for(
    "00.5", "The mean staleness", lambda in_flight, size, policy: predicted_staleness(policy, in_flight, size),
    cases=[
        ((25, 5, "before_agg"), "25 jobs age with each version, and each version uses up 5 updates"),
        ((25, 5, "after_agg"),
         "the reporting client's slot is still empty when the version is made, so 24 jobs age"),
        ((8, 4, "after_agg"), "seven jobs age with each version, and four updates share that"),
        ((100, 1, "after_agg"), "this is FedAsync's kind of server, where every update makes a version"),
        ((1, 1, "before_agg"), "a client alone is sent its next job before its own report makes a version"),
    ],
    right="Every version makes all jobs in flight one version older, and the updates that arrive share this growth.",
    mistakes={
        "The ratio is upside down. A larger buffer makes fewer versions, so updates are fresher.":
            lambda in_flight, size, policy: size / in_flight,
    },
)  # fmt: skip
