"""What searches for settings found: every outcome, and the best.

``asyncfl-lite tune`` writes ``results/tuning/<study>/<method>-<column>.csv``, one row per setting that was tried and
seed. The choice is never written down: it is read from these outcomes, by cells and by defaults.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import lru_cache
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

from asyncfl_reproduction import home

METRIC = "last5_accuracy"
"""What is best: its mean over seeds."""
FIELDS = ("point", "seed", METRIC, "final_accuracy", "config_hash", "meaning", "cpu_seconds")
"""Columns of the outcomes; ``point`` is what was tried, as JSON: ``{"client_lr": 0.1, "settings.distill_lr": 1e-3}``.

A run that diverged has no accuracy: ``nan``.
"""


def file_of(study: str, method: str, column: str, folder: Path | None = None) -> Path:
    """Return where a search's outcomes are."""
    return (home.TUNING if folder is None else folder) / study / f"{method}-{column}.csv"


def has_outcomes(study: str, method: str, column: str) -> bool:
    """Whether such a search was made."""
    return file_of(study, method, column).exists()


def best_of(outcomes: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the point whose mean accuracy over its seeds is highest, the first of equal ones.

    Args:
        outcomes: rows with ``point``, as a mapping or JSON, and the accuracy; at least one. A point of which a run
            diverged is not chosen, unless one of every point did.
    """
    by_point: dict[str, list[float]] = {}
    for row in outcomes:
        point = row["point"] if isinstance(row["point"], str) else json.dumps(row["point"])
        by_point.setdefault(point, []).append(float(row[METRIC]))
    means = {point: fmean(accuracies) for point, accuracies in by_point.items()}
    return json.loads(max(means, key=lambda point: -1.0 if isnan(means[point]) else means[point]))


def edges_of(best: Mapping[str, Any], outcomes: list[Mapping[str, Any]]) -> list[str]:
    """Return the knobs whose best value is the smallest or largest of several that were tried: better may lie beyond.

    Args:
        best: a point of the outcomes, see :func:`best_of`.
        outcomes: rows with ``point``, as a mapping or JSON.

    Returns:
        Such as ``["client_lr", "distill_lr"]``. Values that are no numbers have no order, and no edge.
    """
    points = [json.loads(row["point"]) if isinstance(row["point"], str) else row["point"] for row in outcomes]
    tried = {knob: {point[knob] for point in points} for knob in best}
    ends = {
        knob: (min(values), max(values))
        for knob, values in tried.items()
        if len(values) > 1 and all(isinstance(value, int | float) for value in values)
    }
    return [knob.removeprefix("settings.") for knob in best if best[knob] in ends.get(knob, ())]


def chosen(study: str, method: str, column: str = "tuned") -> dict[str, Any]:
    """Return the settings that a study chose for a method, as a configuration takes them.

    Args:
        study: such as ``fedecho-overlaid_mnist``.
        method: as the study calls it.
        column: ``tuned``, or ``printed``: the best clients' rate beside fixed settings of the server.

    There must be outcomes, see :func:`has_outcomes`.
    """
    path = file_of(study, method, column)
    return nested(_best_in(path, path.stat().st_mtime_ns))


@lru_cache(maxsize=1024)
def _best_in(path: Path, stamp: int) -> dict[str, Any]:
    with path.open(encoding="utf-8", newline="") as file:
        return best_of(list(csv.DictReader(file)))


def in_words(point: Mapping[str, Any]) -> str:
    """Return what was tried, as people read it: ``client_lr 0.1, distill_lr 0.0001``."""
    return ", ".join(f"{knob.removeprefix('settings.')} {_shown(value)}" for knob, value in point.items())


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else "as the clients'" if value is None else str(value)


def nested(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point's settings by group.

    >>> nested({"client_lr": 0.1, "settings.distill_lr": 0.001})
    {'client_lr': 0.1, 'settings': {'distill_lr': 0.001}}
    """
    settings: dict[str, Any] = {}
    for name, value in point.items():
        group, dot, own = name.partition(".")
        if dot:
            settings.setdefault(group, {})[own] = value
        else:
            settings[name] = value
    return settings
