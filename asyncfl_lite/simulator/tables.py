"""Tidy tables of what happened in a simulation."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from asyncfl_lite.simulator.jobs import STILL_TRAINING, Arrival
from asyncfl_lite.simulator.simulation import Simulation

IN_FLIGHT = ["client", "dispatched_at", "start_version", "called_off_at", "why"]
CLIENTS = ["client", "num_samples", "category"]
"""Columns of two tables: jobs that did not arrive, and clients."""


class Schedule(NamedTuple):
    """When each client trained, and on which version.

    Attributes:
        updates, in_flight, clients: the tables of :class:`~asyncfl_lite.runs.results.Result` of these names.
    """

    updates: pd.DataFrame
    in_flight: pd.DataFrame
    clients: pd.DataFrame

    @property
    def digest(self) -> str:
        """64 hexadecimal digits that identify when each client was dispatched and arrived, and from which version.

        Times count to nine digits, so that it is the same on machines that round otherwise, where accuracies are not.
        """
        columns = self.updates[["client", "dispatched_at", "arrived_at", "start_version"]]
        return hashlib.sha256(columns.to_csv(index=False, float_format="%.9g").encode()).hexdigest()


def who_did_what(simulation: Simulation, parts: Sequence[np.ndarray]) -> Schedule:
    """Return a simulation's arrivals, jobs still in flight, and clients as tables."""
    updates = pd.DataFrame(simulation.arrivals, columns=Arrival._fields)
    for column in ("refused", "trouble"):  # as a file has them: nothing where there is nothing to say
        updates[column] = [text or math.nan for text in updates[column]]
    still = [(job.client, job.dispatched_at, job.start_version, math.nan, STILL_TRAINING) for job in simulation.jobs]
    in_flight = pd.DataFrame([*simulation.ended, *still], columns=IN_FLIGHT)
    sizes = [len(part) for part in parts]
    categories = getattr(simulation.delays, "categories", None) or [""] * len(sizes)  # a law need not have them
    clients = pd.DataFrame(dict(zip(CLIENTS, (range(len(sizes)), sizes, categories), strict=True)))
    return Schedule(updates, in_flight, clients)
