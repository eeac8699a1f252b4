"""Summaries of a finished run, and the final model's accuracy on each class."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor, cat

from asyncfl_lite.base.plugins import on_copies
from asyncfl_lite.models.vectors import batch_sizes
from asyncfl_lite.simulator.tables import Schedule
from asyncfl_lite.simulator.trouble.jobs import DUPLICATE, LOST
from asyncfl_lite.tasks import Task
from asyncfl_lite.tasks.partitions import by_client

CLASSES = ["class", "train_samples", "seen", "test_samples", "accuracy", "predicted"]
"""Columns of the table of classes."""


def curve_summary(curve: pd.DataFrame) -> dict[str, float]:
    """Return the final value of each score of a curve, the mean of the last five accuracies, and the best accuracy."""
    scores = curve.columns[list(curve.columns).index("accuracy") :]
    return {
        **{f"final_{score}": float(curve[score].iloc[-1]) for score in scores},
        "last5_accuracy": float(curve["accuracy"].iloc[-5:].mean()),
        "best_accuracy": float(curve["accuracy"].max()),
    }


def update_summary(updates: pd.DataFrame) -> dict[str, float]:
    """Return the numbers of updates that arrived and that were refused, and statistics of their staleness."""
    staleness = updates["staleness"]
    return {
        "client_updates": len(updates),
        "refused_updates": len(updates) - int(updates["accepted"].sum()),
        "mean_staleness": float(staleness.mean()) if len(updates) else 0.0,
        "max_staleness": int(staleness.max()) if len(updates) else 0,
    }


def trouble_summary(schedule: Schedule) -> dict[str, int]:
    """Return the numbers of dispatched and lost jobs, and of late, cut-short, duplicated and damaged updates."""
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


def classes_of(
    task: Task, predict: Callable[[Tensor], Tensor], parts: Sequence[np.ndarray], updates: pd.DataFrame
) -> pd.DataFrame:
    """Return a run's table of classes (see :func:`class_table`), which is empty if samples have no class.

    Args:
        task: the task, whose test set is used.
        predict: function from ``(n, …)`` inputs to the model's ``(n, …)`` outputs.
        parts: client -> indices of its samples.
        updates: the table of updates.
    """
    answers: list[Tensor] = []

    def noted(inputs: Tensor) -> Tensor:
        outputs = predict(inputs)
        answers.append(on_copies(task.class_logits)(outputs).argmax(-1))
        return outputs

    scored = task.evaluate_classes(noted)
    if scored is None:
        return pd.DataFrame(columns=CLASSES)
    predicted = np.bincount(cat(answers).cpu().numpy(), minlength=task.num_classes)
    return class_table(task.labels.cpu().numpy(), parts, updates, *scored, predicted)


def class_table(
    labels: np.ndarray,
    parts: Sequence[np.ndarray],
    updates: pd.DataFrame,
    tested: np.ndarray,
    right: np.ndarray,
    predicted: np.ndarray,
) -> pd.DataFrame:
    """Return a table of how often clients trained on each class, and how accurate the final model is on it.

    Args:
        labels: ``(n,)`` labels of all training samples.
        parts: client -> indices of its samples.
        updates: the table of updates.
        tested: ``(C,)`` number of test samples of each class.
        right: ``(C,)`` number of these that the final model predicts correctly.
        predicted: ``(C,)`` number of test samples, of any class, for which the model predicts this class.

    Returns:
        One row per class, with the columns :data:`CLASSES`.
    """
    held = np.array([np.bincount(labels[part], minlength=len(tested)) for part in parts])
    reports = np.bincount(updates["client"][updates["accepted"]].astype(int), minlength=len(parts))
    accuracy = np.divide(right, tested, out=np.full(len(tested), math.nan), where=tested > 0)
    columns = (range(len(tested)), held.sum(0), reports @ held, tested, accuracy, predicted)
    return pd.DataFrame(dict(zip(CLASSES, columns, strict=True)))


def score_clients(
    clients: pd.DataFrame, task: Task, predict: Callable[[Tensor], Tensor], parts: Sequence[np.ndarray]
) -> pd.DataFrame:
    """Add the model's accuracy on each client's test samples to the table of clients.

    Args:
        clients: the table, one row per client.
        task: the task that these clients came with.
        predict: function from ``(n, …)`` inputs to the model's ``(n, …)`` outputs.
        parts: client -> indices of its training samples.

    Returns:
        The same table with the columns name, test_samples, accuracy (on the client's test samples, NaN if it has none)
        and train_accuracy (on its training samples).
    """

    def hits(inputs: Tensor, labels: Tensor) -> np.ndarray:
        sizes = batch_sizes(inputs, 500)
        batches = zip(inputs.split(sizes), labels.split(sizes), strict=True)
        return cat([on_copies(task.hits)(predict(batch), wanted).float() for batch, wanted in batches]).cpu().numpy()

    tested = np.full(len(task.test_labels), -1) if task.test_owners is None else task.test_owners
    right, trained = hits(task.test_inputs, task.test_labels), hits(task.inputs, task.labels)
    of = by_client(tested, len(parts))
    return clients.assign(
        name=list(task.clients),
        test_samples=[len(places) for places in of],
        accuracy=[_mean(right[places]) for places in of],
        train_accuracy=[_mean(trained[part]) for part in parts],
    )


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else math.nan


def client_summary(clients: pd.DataFrame) -> dict[str, float]:
    """Return the lowest accuracy of any client, if clients have test samples of their own."""
    tested = clients["accuracy"].dropna() if "accuracy" in clients else clients[:0]
    return {"worst_client_accuracy": float(tested.min())} if len(tested) else {}


def class_summary(classes: pd.DataFrame) -> dict[str, float]:
    """Summarise a table of classes in three numbers.

    Returns:
        ``worst_class_accuracy``, the lowest accuracy of a class; ``least_seen_accuracy``, the mean accuracy over the
        fifth of the classes that were seen least; ``largest_prediction_share``, the share of the test samples for which
        the final model predicts the class that it predicts most often, 1 if it always predicts one class. The mapping
        is empty if there are no classes.
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
    """Return whether a run's final model predicts one class for all test samples, which belong to several classes.

    The accuracy of such a model is that class's share of the test set, and says nothing about its training. A worst
    class with accuracy 0 is not enough: a model of many classes may know all but one. If ``largest_prediction_share``
    was not recorded, as in runs of earlier code and in those whose samples have no class, this function returns False.
    """
    return summary.get("largest_prediction_share") == 1 and summary["worst_class_accuracy"] == 0
