"""Checkers for lesson 04, the server's learning rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import call, expect, number, shown, words
from asyncfl_course.explore import swing

asks_for(
    "04.1", "Swing", swing,
    cases=[
        (([50, 60, 50, 60], 4),
         "all three jumps are 10 long, up or down, and the distance from the mean does not count"),
        (([0, 90, 80, 82, 79], 3), "only the last 3 tests count, and 3 tests have 2 differences"),
        (([0.7, 0.7, 0.7], 20), "there are fewer tests than asked for, so all of them count"),
    ],
    right="Absolute values first: ups and downs would cancel.",
    mistakes={
        "The sign of a jump does not count: take absolute values before the mean.":
            lambda tests, last: np.diff(tests[-last:]).mean(),
        "You take all tests; only the last ones count.":
            lambda tests, last: np.abs(np.diff(tests)).mean(),
        "You take the last differences; take the last tests, then their differences.":
            lambda tests, last: np.abs(np.diff(tests))[-last:].mean(),
        "This is the standard deviation, the distance from the mean; swing is the distance from the test before.":
            lambda tests, last: np.std(tests[-last:]),
        "You divide by the number of tests; n tests have n − 1 differences.":
            lambda tests, last: np.abs(np.diff(tests[-last:])).sum() / len(tests[-last:]),
    },
)  # fmt: skip

asks_for(
    "04.2", "The noise at rest", lambda eta, k, sigma, m: sigma * (eta * k / (2 - eta * k) / m) ** 0.5,
    cases=[
        ((1.0, 1.0, 1.0, 1), "at η = 1 and κ = 1 the model is one client's centre, whose deviation is σ"),
        ((1.0, 1.0, 3.0, 4),
         "at η = 1 and κ = 1 the model is the mean of M unrelated clients' centres; what variance does that have, and "
         "what deviation?"),
        ((0.3, 1.0, 1.0, 5), "at κ = 1 this is Section 2's quadratic, whose V is a variance"),
        ((1.0, 0.5, 1.0, 5), "clients that go half of the way change x_{t+1} by half as much; what replaces η?"),
        ((0.1, 0.2, 3.0, 10), "here both the server and the clients go only part of the way"),
    ],
    rtol=0.03,  # a few thousand simulated versions suffice
    right="Only the product of the server's step and the clients' share enters the recursion.",
    mistakes={
        "κ is missing: clients go only part of the way.":
            lambda eta, k, sigma, m: sigma * (eta / (2 - eta) / m) ** 0.5,
        "This is the variance; take its square root.":
            lambda eta, k, sigma, m: sigma**2 * eta * k / (2 - eta * k) / m,
        "The buffer is missing: a mean of M centres scatters less than one.":
            lambda eta, k, sigma, m: sigma * (eta * k / (2 - eta * k)) ** 0.5,
        "You divide the deviation by M; the variance is divided by M.":
            lambda eta, k, sigma, m: sigma * (eta * k / (2 - eta * k)) ** 0.5 / m,
    },
)  # fmt: skip


def _late(step: float, tau: int, versions: int) -> list[float]:
    path = [1.0]
    for version in range(versions):
        path.append(path[-1] - step * path[max(0, version - tau)])
    return path


asks_for(
    "04.3", "Old news", _late,
    cases=[
        ((0.5, 0, 3), "with τ = 0 each version keeps a share 1 − a of the last one"),
        ((0.3, 2, 5), "until version τ the update comes from the model of version 0, which is 1"),
        ((1.0, 1, 8), "a = 1 is the limit for τ = 1, where the path repeats itself"),
        ((0.29, 5, 60), "the update at version t comes from the model of version t − τ"),
        ((0.5, 3, 0), "after no version the list holds only x_0"),
    ],
    right="Each step repeats a correction that was already made, which is why a long step overshoots.",
    mistakes={
        "Versions before 0 are not part of the list, which goes from x_0 to the last version.":
            lambda a, tau, n: [1.0] * tau + _late(a, tau, n),
        "The list begins with x_0, which is 1.":
            lambda a, tau, n: _late(a, tau, n)[1:],
        "The list ends with the last version; yours stops before.":
            lambda a, tau, n: _late(a, tau, n)[:-1],
        "You look one version further back than τ.":
            lambda a, tau, n: _late(a, tau + 1, n),
        "This is τ = 0: each step uses the newest model.":
            lambda a, tau, n: _late(a, 0, n),
    },
)  # fmt: skip


@exercise("04.4", "Guess the control")
def guess_of_controls(answer: Any) -> str:
    """Compare the answer's order of four conditions with the recorded one; explain the error behind a wrong order."""
    right = ["clients alike", "as it is", "nobody late", "alike, nobody late"]
    asked = f"Four names are asked for, each once: {'; '.join(sorted(right))}."
    names = words(answer, 4, right, asked)
    expect(sorted(names) == sorted(right), asked)
    below = {name: index for index, name in enumerate(names)}
    expect(
        max(below["as it is"], below["clients alike"]) < min(below["nobody late"], below["alike, nobody late"]),
        f"{names[0]!r} first and {names[-1]!r} last is a fair guess, but the records differ. It takes unequal data for "
        "the cause. What did Section 3's clients, which agreed, do at a step of 1?",
    )
    expect(
        below["clients alike"] < below["as it is"],
        "'clients alike' above 'as it is' is what most would guess, but the records differ. In which of the two do all "
        "clients push the same old correction?",
    )
    expect(
        below["nobody late"] < below["alike, nobody late"],
        "You have 'nobody late' above 'alike, nobody late'. If no update is old, only unequal data can do harm.",
    )
    return "Staleness ruins the full step, and clients that agree all push the same old correction."


def _searches(lucky: float = 0.0) -> pd.DataFrame:
    """Return a table of the searches of two methods, A and B, with ``lucky`` added to one accuracy of A."""
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
def equal_lead(answer: Any) -> str:
    """Check that a function returns the difference between two methods' best mean accuracies."""
    table, lucky = _searches(), _searches(lucky=12.0)
    cases = [
        (table, "A", "B", 1.0, 7, "the server rate 1 holds for both methods, and their best means there are 75 and 68"),
        (table, "A", "B", None, -1, "each method may choose both rates, and the best means are 81 and 82"),
        (table, "B", "A", None, 1, "the second name is the baseline, whose best is subtracted"),
        (lucky, "A", "B", 1.0, 7, "A has one lucky seed at client rate 0.3, whose mean is 74, so judge by means"),
    ]
    for rows, method, baseline, rate, wanted, why in cases:
        given = call(answer, rows, method, baseline, rate)
        given = number(given, f"lead(table, {method!r}, …) gives {shown(given)}, which is no number.")
        called = f"lead(table, {method!r}, {baseline!r}, {rate})"
        expect(abs(given - wanted) < 1e-4, f"{called} gives {given:g}, expected {wanted}: {why}.")
    return "Each method is judged by its own best setting, and by means, so luck is not rewarded."
