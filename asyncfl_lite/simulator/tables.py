"""What a simulation did, as tidy tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from asyncfl_lite.simulator.jobs import DUPLICATE, LOST, STILL_TRAINING, Arrival
from asyncfl_lite.simulator.simulation import Simulation

IN_FLIGHT = ["client", "dispatched_at", "start_version", "called_off_at", "why"]
CLIENTS = ["client", "num_samples", "category"]
CLASSES = ["class", "train_samples", "seen", "test_samples", "accuracy", "predicted"]
"""Columns of the tables of jobs that did not arrive, of clients, and of classes."""


class Schedule(NamedTuple):
    """Who trained when.

    Attributes:
        updates, in_flight, clients: the tables of :class:`~asyncfl_lite.runs.results.Result` of these names.
    """

    updates: pd.DataFrame
    in_flight: pd.DataFrame
    clients: pd.DataFrame


def who_did_what(simulation: Simulation, parts: Sequence[np.ndarray]) -> Schedule:
    """Return a simulation's arrivals, jobs still in flight, and clients as tables."""
    updates = pd.DataFrame(simulation.arrivals, columns=Arrival._fields)
    for told in ("refused", "trouble"):  # as a file has them: nothing where there is nothing to tell
        updates[told] = [text or math.nan for text in updates[told]]
    still = [(job.client, job.dispatched_at, job.start_version, math.nan, STILL_TRAINING) for job in simulation.jobs]
    in_flight = pd.DataFrame([*simulation.ended, *still], columns=IN_FLIGHT)
    sizes = [len(part) for part in parts]
    categories = getattr(simulation.delays, "categories", None) or [""] * len(sizes)  # a law need not have them
    clients = pd.DataFrame(dict(zip(CLIENTS, (range(len(sizes)), sizes, categories), strict=True)))
    return Schedule(updates, in_flight, clients)


def trouble_summary(schedule: Schedule) -> dict[str, int]:
    """Return how many jobs were dispatched and lost, and how many updates arrived late, cut short, twice or damaged."""
    updates, lost = schedule.updates, schedule.in_flight["why"].value_counts()
    struck = updates["trouble"].astype(str)
    again = updates["refused"] == DUPLICATE
    kinds = {"late": "crash", "partial": "partial", "damaged": "damage"}
    return {
        "dispatched_jobs": int((~again).sum() + len(schedule.in_flight)),
        "lost_jobs": int(sum(lost.get(why, 0) for why in LOST)),
        **{f"{why.replace(' ', '_')}_jobs": int(lost.get(why, 0)) for why in LOST},
        **{f"{name}_updates": int((struck.str.contains(kind) & ~again).sum()) for name, kind in kinds.items()},
        "duplicate_updates": int(again.sum()),
    }


def class_table(
    labels: np.ndarray,
    parts: Sequence[np.ndarray],
    updates: pd.DataFrame,
    tested: np.ndarray,
    right: np.ndarray,
    predicted: np.ndarray,
) -> pd.DataFrame:
    """Return a row a class: how often clients trained on it, and how well the model knows it; columns :data:`CLASSES`.

    Args:
        labels: ``(n,)`` of all training samples.
        parts: client -> places of its samples.
        updates: the table of updates.
        tested: ``(C,)`` test samples of each class.
        right: ``(C,)`` how many of them the final model gets right.
        predicted: ``(C,)`` how many test samples of any class it takes for this one.
    """
    held = np.array([np.bincount(labels[part], minlength=len(tested)) for part in parts])
    reports = np.bincount(updates["client"][updates["accepted"]].astype(int), minlength=len(parts))
    accuracy = np.divide(right, tested, out=np.full(len(tested), math.nan), where=tested > 0)
    columns = (range(len(tested)), held.sum(0), reports @ held, tested, accuracy, predicted)
    return pd.DataFrame(dict(zip(CLASSES, columns, strict=True)))


def class_summary(classes: pd.DataFrame) -> dict[str, float]:
    """Return a table of classes in three numbers.

    Returns:
        ``worst_class_accuracy``, the lowest of a class; ``least_seen_accuracy``, the mean over the fifth of the classes
        that were seen least; ``largest_prediction_share``, of all test samples those that the final model takes for the
        class that it names most often, 1 if it answers one class for everything. Empty without classes.
    """
    tested = classes[classes["test_samples"] > 0]
    if tested.empty:
        return {}
    least_seen = tested.sort_values("seen", kind="stable").head(max(1, len(tested) // 5))
    return {
        "worst_class_accuracy": float(tested["accuracy"].min()),
        "least_seen_accuracy": float(least_seen["accuracy"].mean()),
        "largest_prediction_share": float(classes["predicted"].max() / classes["predicted"].sum()),
    }


def is_constant_answer(summary: Mapping[str, Any]) -> bool:
    """Return whether a run's final model answers one class for every test sample, though others are asked for.

    Its accuracy is that class's share of the test set, and says nothing of how it was trained. A worst class at 0 is
    not enough: a model of many classes may know all but one. Where ``largest_prediction_share`` was not recorded, as in
    runs of earlier code and where samples have no class, nothing is known, and the answer is False.
    """
    return summary.get("largest_prediction_share") == 1 and summary["worst_class_accuracy"] == 0
