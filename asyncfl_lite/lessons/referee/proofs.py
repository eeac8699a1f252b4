"""What a control's runs can be asked to show, seed by seed, before their accuracy counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from asyncfl_lite.base.errors import ConfigError, unknown_name

SMALLEST = 1e-6
"""Accuracies, fractions, that differ by less are the same: one image is more."""
Proof = Callable[[pd.DataFrame, pd.DataFrame], pd.Series]

PROOFS: dict[str, Proof] = {
    "it_ran": lambda treated, control: np.isfinite(control["last5_accuracy"]),
    "other_weights": lambda treated, control: treated["weights_sha256"] != control["weights_sha256"],
    "other_accuracy": lambda treated, control: (treated["last5_accuracy"] - control["last5_accuracy"]).abs() > SMALLEST,
    "lower_accuracy": lambda treated, control: treated["last5_accuracy"] - control["last5_accuracy"] > SMALLEST,
    "same_schedule": lambda treated, control: treated["schedule_sha256"] == control["schedule_sha256"],
}
"""Name -> by seed, whether the treated cell's runs and the control's show it. ``same_schedule``: the same clients
arrive at the same times, so that the control changed nothing there."""


def failed(names: Iterable[str], treated: pd.DataFrame, control: pd.DataFrame) -> dict[str, int]:
    """Return each proof that fails -> on how many seeds.

    Args:
        names: of :data:`PROOFS`.
        treated: runs by seed, see :func:`.records.runs_of`.
        control: those of the control; seeds that only one of them has do not count.

    Raises:
        ConfigError: there is no such proof.
    """
    seeds = treated.index.intersection(control.index)
    sides = treated.loc[seeds], control.loc[seeds]
    found = {}
    for name in names:
        if name not in PROOFS:
            raise ConfigError(unknown_name("shows", name, PROOFS))
        wrong = int((~PROOFS[name](*sides)).sum())
        if wrong or not len(seeds):
            found[name] = wrong
    return found
