"""Exercises of lesson 04, the server's step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from asyncfl_lite.explore import swing
from asyncfl_lite.lessons.exercises import exercise
from asyncfl_lite.lessons.expectations import call, expect, expect_close


@exercise("04.1", "Swing")
def mean_jump(answer: Any) -> None:
    """Hold a function to the mean absolute difference of the last tests."""
    hints = {
        ((50, 60, 50, 60), 4): "up and down must not cancel: take absolute values before the mean",
        ((0, 90, 80, 82, 79), 3): "only the last 3 tests count, and 3 tests have 2 differences",
        ((0.7, 0.7, 0.7), 20): "fewer tests than asked for: all of them count",
    }
    for (tests, last), why in hints.items():
        expect_close(answer, (list(tests), last), swing(tests, last), because=why)


@exercise("04.2", "The noise at rest")
def noise_at_rest(answer: Any) -> None:
    """Hold a function to the deviation of a quadratic's model at rest."""
    cases = {
        (1.0, 1.0, 1.0, 1): "at η = 1 and κ = 1 the model is the one stranger's centre, whose deviation is σ",
        (1.0, 1.0, 2.0, 4): "the mean of M centres has the deviation σ/√M; give the deviation, not the variance",
        (0.3, 1.0, 1.0, 5): "with a = ηκ the variance at rest is a/(2 − a) · σ²/M",
        (1.0, 0.5, 1.0, 5): "a client that walks a share κ is as good as a server that does: a = ηκ",
        (0.1, 0.2, 3.0, 10): "a client that walks a share κ is as good as a server that does: a = ηκ",
    }
    for (eta, share, sigma, size), why in cases.items():
        step = eta * share
        wanted = sigma * np.sqrt(step / (2 - step) / size)
        expect_close(answer, (eta, share, sigma, size), wanted, because=why)


@exercise("04.3", "Old news")
def old_news(answer: Any) -> None:
    """Hold a function to the path of a step along news that are some versions old."""
    cases = {
        (0.5, 0, 3): "with τ = 0 each version keeps 1 − a of the last",
        (0.3, 2, 5): "until version τ the news is the model of version 0, which is 1",
        (1.0, 1, 8): "a = 1 is the limit for τ = 1: the path repeats itself",
        (0.29, 5, 60): "the news at version t is the model of version t − τ",
        (0.5, 3, 0): "after no version there is x0 alone",
    }
    for (step, tau, versions), why in cases.items():
        path = [1.0]
        for version in range(versions):
            path.append(path[-1] - step * path[max(0, version - tau)])
        expect_close(answer, (step, tau, versions), path, because=why)


@exercise("04.4", "Guess the control")
def guess_of_controls(answer: Any) -> None:
    """Hold an order of the four conditions to what was recorded, and say what a wrong one takes for granted."""
    right = ["clients alike", "as it is", "nobody late", "alike, nobody late"]
    names = [str(one) for one in answer] if isinstance(answer, list | tuple) else []
    expect(sorted(names) == sorted(right), f"Four names are asked for, each once: {'; '.join(sorted(right))}.")
    below = {name: place for place, name in enumerate(names)}
    expect(
        max(below["as it is"], below["clients alike"]) < min(below["nobody late"], below["alike, nobody late"]),
        f"{names[0]!r} first and {names[-1]!r} last: that takes unequal data for the cause. With nobody late unequal "
        "clients end at 82%, with staleness both conditions end at or below 50%.",
    )
    expect(
        below["clients alike"] < below["as it is"],
        "'clients alike' above 'as it is': so one would think, but they end at 31% and unequal clients at 50%. Clients "
        "who agree all push the same old correction.",
    )
    expect(
        below["nobody late"] < below["alike, nobody late"],
        "'nobody late' above 'alike, nobody late': where no news is old, unequal data cost 6 points.",
    )


def _searches(lucky: float = 0.0) -> pd.DataFrame:
    """Return a made-up search of two methods: B is steady at a short step, A at any; one lucky seed may be added."""
    level = {
        ("A", 0.1, 1.0): 75, ("A", 0.3, 1.0): 70, ("A", 0.1, 0.3): 81, ("A", 0.3, 0.3): 80,
        ("B", 0.1, 1.0): 68, ("B", 0.3, 1.0): 40, ("B", 0.1, 0.3): 80, ("B", 0.3, 0.3): 82,
    }  # fmt: skip
    rows = [
        (*setting, seed, accuracy + shift + lucky * (setting == ("A", 0.3, 1.0) and not seed))
        for setting, accuracy in level.items()
        for seed, shift in enumerate((-1.0, 0.0, 1.0))
    ]
    return pd.DataFrame(rows, columns=["method", "client_lr", "server_lr", "seed", "accuracy"])


@exercise("04.5", "An equal comparison")
def equal_lead(answer: Any) -> None:
    """Hold a function to the difference of two methods' best means."""
    table, lucky = _searches(), _searches(lucky=12.0)
    cases = [
        (table, "A", "B", 1.0, 7, "at the server's rate 1 the best means are 75 and 68"),
        (table, "A", "B", None, -1, "each method may choose both rates: the best means are 81 and 82"),
        (table, "B", "A", None, 1, "the second name is the baseline, whose best is subtracted"),
        (lucky, "A", "B", 1.0, 7, "one seed of A is lucky at the clients' rate 0.3, whose mean is 74: judge by means"),
    ]
    for rows, method, baseline, rate, wanted, why in cases:
        given = call(answer, rows, method, baseline, rate)
        expect(isinstance(given, int | float | np.number), f"lead(table, {method!r}, …) gives {given!r}, no number.")
        if abs(float(given) - wanted) > 1e-6:
            expect_close(given, None, wanted, because=f"lead(table, {method!r}, {baseline!r}, {rate}): {why}")
