"""Exercises of the course's first part, "The world": lessons 00 to 02."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import integrate, stats
from torch import Tensor

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, call, expect, expect_close, numbers, shown, word, words
from asyncfl_course.explore import predicted_staleness, report_rates, run_clock
from asyncfl_lite import Update, make_algorithm
from asyncfl_lite.base.errors import how_many
from asyncfl_lite.tasks.partitions import total_variation

# --- 00: start here -------------------------------------------------------------------------------


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


# --- 01: virtual time -----------------------------------------------------------------------------


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


# --- 02: heterogeneity ----------------------------------------------------------------------------


def _largest_share(alpha: float, classes: int) -> float:
    """Return the mean of the largest of C gamma variables, divided by the mean of their sum."""
    above, _ = integrate.quad(lambda x: 1 - stats.gamma.cdf(x, alpha) ** classes, 0, np.inf)
    return above / (classes * alpha)


asks_for(
    "02.1", "The largest class", _largest_share,
    cases=[
        ((1, 10), "at α = 1 it is (1 + ½ + … + 1/10) / 10; is the integral divided by C α?"),
        ((1, 2), "at α = 1, one of two classes gets a uniform share and the other gets the rest"),
        ((0.5, 2), "α is the gamma distribution's parameter and also a divisor, which does not show at α = 1"),
        ((0.1, 10), "all C draws stay below x with probability F(x)^C"),
    ],
    atol=0.01,  # 2,000 simulated clients suffice
    right="Shares and their sum are independent, so the mean maximum divides by the mean sum.",
    mistakes={
        "You did not divide the integral by C α.":
            lambda alpha, classes: classes * alpha * _largest_share(alpha, classes),
    },
)  # fmt: skip


def _own(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum(1, keepdims=True)


asks_for(
    "02.2", "Total variation", total_variation,
    cases=[
        ((np.array([[8, 2], [2, 8]]),), "q is (½, ½), so each client is ½ (0.3 + 0.3) away; is the ½ there?"),
        ((np.array([[5, 5, 10], [50, 50, 100]]),), "both clients have the same shares, so nothing needs to be swapped"),
        ((np.array([[18, 0], [0, 1], [1, 0]]),),
         "q counts all samples, here (0.95, 0.05), so a large client weighs more in it"),
        ((np.array([[10, 0, 0], [0, 10, 0], [0, 0, 10]]),),
         "disjoint labels give the maximum, 1 − 1/C, for every client"),
    ],
    right="Half the sum of differences is the part of the samples that would have to move.",
    mistakes={
        "You compare each client with the mean of the clients' shares; q is the share among all samples.":
            lambda n: 0.5 * np.abs(_own(n) - _own(n).mean(0)).sum(1).mean(),
        "The factor ½ is missing.":
            lambda n: np.abs(_own(n) - n.sum(0) / n.sum()).sum(1).mean(),
        "You compare each client with equal shares of all classes; q is what all clients hold together.":
            lambda n: 0.5 * np.abs(_own(n) - 1 / n.shape[1]).sum(1).mean(),
    },
)  # fmt: skip


@exercise("02.3", "A law of your own")
def shards(answer: Any) -> str:
    """Check that the answer deals out each sample's index once, in two shards per client."""
    for count, kinds, clients in ((40, 4, 5), (103, 10, 6), (60, 2, 3)):
        labels = np.random.default_rng(count).integers(0, kinds, count)
        called = f"shards of {count} labels for {clients} clients"
        parts = [np.asarray(part) for part in call(answer, labels, clients, np.random.default_rng(0))]
        expect(len(parts) == clients, f"{called}: you return {how_many(len(parts), 'part')}, expected {clients}.")
        given = np.sort(np.concatenate(parts))
        expect(
            np.array_equal(given, np.arange(count)),
            f"{called}: every sample must be dealt out once, but the parts hold {len(given)} indices, of which "
            f"{len(np.unique(given))} differ. Parts hold the indices of samples, not labels.",
        )
        sizes = [len(part) for part in parts]
        expect(max(sizes) - min(sizes) <= 2, f"{called}: sizes are {sizes}, and should differ by two at most.")
        place = np.argsort(np.argsort(labels, kind="stable"), kind="stable")
        pieces = [int((np.diff(np.sort(place[part])) > 1).sum()) + 1 for part in parts]
        expect(
            max(pieces) <= 2,
            f"{called}: a client holds {max(pieces)} pieces of the samples sorted by label, expected two at most. "
            "Were they sorted before they were cut?",
        )
        again = [np.asarray(part) for part in call(answer, labels, clients, np.random.default_rng(1))]
        same = all(np.array_equal(np.sort(one), np.sort(other)) for one, other in zip(parts, again, strict=False))
        expect(not same, f"{called}: another generator gives the same parts, but shards must be given at random.")
    return "Sorted samples in two pieces: so a client can hold only a few classes."


@exercise("02.4", "One step or ten")
def one_step_or_ten(answer: Any) -> str:
    """Check that the answer calls ten local steps worse at α = 0.03 and better at α = 100."""
    unlike, alike = words(answer, 2, ("better", "worse"), 'Two words are asked for, each "better" or "worse".')
    if unlike != "worse":
        raise Wrong(
            "(a) At α = 0.03 each client's first step goes where its own samples pull, and the average of the twenty "
            "is a step on all data. Its next nine steps start from its own model, which knows only sevens and threes.",
            "(a) Where do a client's steps two to ten start from, if its data are one or two classes?",
        )
    if alike != "better":
        raise Wrong(
            "(b) At α = 100 clients hold nearly the same mix, so ten steps of each are nearly ten steps on all data.",
            "(b) What would ten steps of each client be if all held the same mix?",
        )
    return "Alike clients only gain training by more steps; different clients walk apart."


@exercise("02.5", "Labels or lateness")
def labels_or_lateness(answer: Any) -> str:
    """Check that the answer names staleness as the larger part of FedBuff's gap at server rate 1."""
    said = word(answer, ("labels", "staleness"), 'Your answer must be "labels" or "staleness".')
    expect(
        said == "staleness",
        "Unequal labels do cost something. But look at Section 8's right panel: at α = 10 labels are nearly equal, and "
        "with 25 in flight FedBuff does no better there.",
    )
    return "FedBuff already loses most on IID data, because at server learning rate 1 it adds late updates in full."
