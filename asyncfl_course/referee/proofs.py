"""Checks that a control's runs must pass, seed by seed, before their accuracy counts as evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from asyncfl_lite.base.errors import ConfigError, unknown_name

SMALLEST = 1e-6
"""Difference of accuracies, as a fraction, below which they count as the same; one image makes more."""


class Proof(NamedTuple):
    """A property that a plan may require of its control's runs.

    Attributes:
        says: the property in words.
        shown: function of the treated cell's runs and of the control's, which says for each seed whether they have
            the property.
    """

    says: str
    shown: Callable[[pd.DataFrame, pd.DataFrame], pd.Series]

    def __repr__(self) -> str:
        return self.says


PROOFS: dict[str, Proof] = {
    "it_ran": Proof("the control has an accuracy", lambda treated, control: np.isfinite(control["last5_accuracy"])),
    "other_weights": Proof(
        "its final weights differ from the treated run's",
        lambda treated, control: treated["weights_sha256"] != control["weights_sha256"],
    ),
    "other_accuracy": Proof(
        "its accuracy differs",
        lambda treated, control: (treated["last5_accuracy"] - control["last5_accuracy"]).abs() > SMALLEST,
    ),
    "lower_accuracy": Proof(
        "its accuracy is lower",
        lambda treated, control: treated["last5_accuracy"] - control["last5_accuracy"] > SMALLEST,
    ),
    "same_schedule": Proof(
        "the same clients arrive at the same times, so the control left the schedule unchanged",
        lambda treated, control: treated["schedule_sha256"] == control["schedule_sha256"],
    ),
}
"""Name -> the property that a plan may demand of its control."""


def failed(names: Iterable[str], treated: pd.DataFrame, control: pd.DataFrame) -> dict[str, int]:
    """Return the proofs that the runs fail, each with its number of failing seeds.

    Args:
        names: names from :data:`PROOFS`.
        treated: the treated cell's runs by seed, see :func:`.records.runs_of`.
        control: the control's runs; seeds that only one of the two cells has do not count.

    Raises:
        ConfigError: there is no such proof.
    """
    seeds = treated.index.intersection(control.index)
    sides = treated.loc[seeds], control.loc[seeds]
    found = {}
    for name in names:
        if name not in PROOFS:
            raise ConfigError(unknown_name("shows", name, PROOFS))
        wrong = int((~PROOFS[name].shown(*sides)).sum())
        if wrong or not len(seeds):
            found[name] = wrong
    return found
