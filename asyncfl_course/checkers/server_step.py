"""Checkers for lesson 04, the server's learning rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from asyncfl_course.exercises import exercise
from asyncfl_course.expectations import call, expect, expect_close, number, shown, words
from asyncfl_course.explore import swing


@exercise("04.1", "Swing")
def mean_jump(answer: Any) -> str:
    """Compare the answer with the mean absolute difference between consecutive tests, over the last few tests."""
    hints = {
        ((50, 60, 50, 60), 4): "all three jumps are 10 long, up or down, and the distance from the mean does not count",
        ((0, 90, 80, 82, 79), 3): "only the last 3 tests count, and 3 tests have 2 differences",
        ((0.7, 0.7, 0.7), 20): "there are fewer tests than asked for, so all of them count",
    }
    for (tests, last), why in hints.items():
        expect_close(answer, (list(tests), last), swing(tests, last), because=why)
    return "Absolute values first: ups and downs would cancel."


SIMULATED = 0.03
"""Relative tolerance of a deviation, for which a few thousand simulated versions suffice."""


@exercise("04.2", "The noise at rest")
def noise_at_rest(answer: Any) -> str:
    """Compare the answer with the standard deviation of a model on a noisy quadratic, once it has settled."""
    cases = {
        (1.0, 1.0, 1.0, 1): "at η = 1 and κ = 1 the model is one client's centre, whose deviation is σ",
        (1.0, 1.0, 3.0, 4): "at η = 1 and κ = 1 the model is the mean of M unrelated clients' centres; what "
        "variance does that have, and what deviation?",
        (0.3, 1.0, 1.0, 5): "at κ = 1 this is Section 2's quadratic, whose V is a variance",
        (1.0, 0.5, 1.0, 5): "clients that go half of the way change x_{t+1} by half as much; what replaces η?",
        (0.1, 0.2, 3.0, 10): "here both the server and the clients go only part of the way",
    }
    for (eta, share, sigma, size), why in cases.items():
        step = eta * share
        wanted = sigma * np.sqrt(step / (2 - step) / size)
        expect_close(answer, (eta, share, sigma, size), wanted, because=why, rtol=SIMULATED)
    return "Only the product of the server's step and the clients' share enters the recursion."


@exercise("04.3", "Old news")
def old_news(answer: Any) -> str:
    """Compare the answer with the path of gradient steps whose gradients are several versions old."""
    cases = {
        (0.5, 0, 3): "with τ = 0 each version keeps a share 1 − a of the last one",
        (0.3, 2, 5): "until version τ the update comes from the model of version 0, which is 1",
        (1.0, 1, 8): "a = 1 is the limit for τ = 1, where the path repeats itself",
        (0.29, 5, 60): "the update at version t comes from the model of version t − τ",
        (0.5, 3, 0): "after no version the list holds only x_0",
    }
    for (step, tau, versions), why in cases.items():
        path = [1.0]
        for version in range(versions):
            path.append(path[-1] - step * path[max(0, version - tau)])
        given = call(answer, step, tau, versions)
        expect(
            not hasattr(given, "__len__") or len(given) == len(path),
            f"late({step}, {tau}, {versions}) gives a list of the wrong length. It must go from x_0 to x_{versions}. "
            "Versions before 0 are not part of it.",
        )
        expect_close(answer, (step, tau, versions), path, because=why)
    return "Each step repeats a correction that was already made, which is why a long step overshoots."


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
