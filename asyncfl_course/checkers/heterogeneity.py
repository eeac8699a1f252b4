"""Checkers for lesson 02: the largest class, total variation, shards, local steps, and labels against staleness."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate, stats

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, call, expect, word, words
from asyncfl_lite.base.errors import how_many
from asyncfl_lite.tasks.partitions import total_variation


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
