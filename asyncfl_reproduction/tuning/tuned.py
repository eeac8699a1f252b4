"""Settings chosen by studies' searches; choices are read from outcomes and never written down.

``asyncfl-lite tune`` saves the outcomes (:mod:`~asyncfl_reproduction.tuning.outcomes`), and cells and the file of
defaults use them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

from asyncfl_reproduction.tuning.outcomes import METRIC, Row, of_studies, rows_of


def name_of(study: str, method: str, column: str) -> str:
    """Return the name of a search from its study, method and column.

    >>> name_of("fedecho-overlaid_mnist", "fedbuff", "tuned")
    'fedecho-overlaid_mnist/fedbuff-tuned'
    """
    return f"{study}/{method}-{column}"


def tried(study: str, method: str, column: str, folder: Path | None = None) -> list[Row]:
    """Return the outcomes of a finished search, or none if it was not made; ``folder`` is the package's own if None."""
    return rows_of(of_studies(folder), name_of(study, method, column))


def has_outcomes(study: str, method: str, column: str) -> bool:
    """Return whether a study has searched a method's settings in this column."""
    return bool(tried(study, method, column))


def best_of(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the combination with the highest mean accuracy over seeds; of equal ones, the first.

    A combination with a run that diverged is chosen only if every combination has one.
    """
    by_point: dict[str, list[float]] = {}
    for row in outcomes:
        by_point.setdefault(row["point"], []).append(row[METRIC])
    means = {point: fmean(accuracies) for point, accuracies in by_point.items()}
    return json.loads(max(means, key=lambda point: -1.0 if isnan(means[point]) else means[point]))


def edges_of(best: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the options whose best value is the smallest or largest tried, so that a better one may lie beyond.

    Values that are not numbers have no order, and so no edge.
    """
    points = [json.loads(point) for point in dict.fromkeys(row["point"] for row in outcomes)]
    tried = {knob: {point[knob] for point in points} for knob in best}
    ends = {
        knob: (min(values), max(values))
        for knob, values in tried.items()
        if len(values) > 1 and all(isinstance(value, int | float) for value in values)
    }
    return [knob.removeprefix("settings.") for knob in best if best[knob] in ends.get(knob, ())]


def chosen(study: str, method: str, column: str = "tuned") -> dict[str, Any]:
    """Return the settings that a study chose for a method, in the form that a configuration takes."""
    return nested(best_of(tried(study, method, column)))


def in_words(point: Mapping[str, Any]) -> str:
    """Return a combination as text, such as ``client_lr 0.1, distill_lr 0.0001``."""
    return ", ".join(f"{knob.removeprefix('settings.')} {_shown(value)}" for knob, value in point.items())


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else "as the clients'" if value is None else str(value)


def nested(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a combination's settings nested by group.

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
