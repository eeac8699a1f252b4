"""Tables of a simulation's arrivals, of its jobs that did not arrive, and of its clients."""

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
    """Tables that say when each client trained, and from which version.

    Attributes:
        updates, in_flight, clients: the tables of the same names in a :class:`~asyncfl_lite.runs.results.Result`.
    """

    updates: pd.DataFrame
    in_flight: pd.DataFrame
    clients: pd.DataFrame

    @property
    def digest(self) -> str:
        """Hash (64 hexadecimal digits) of when each client was dispatched and arrived, and of its start version.

        Times are rounded to nine significant digits, so that the digest is the same on machines that round differently,
        although accuracies may differ there.
        """
        columns = self.updates[["client", "dispatched_at", "arrived_at", "start_version"]]
        return hashlib.sha256(columns.to_csv(index=False, float_format="%.9g").encode()).hexdigest()


def who_did_what(simulation: Simulation, parts: Sequence[np.ndarray]) -> Schedule:
    """Return tables of a simulation's arrivals, of its jobs that did not arrive, and of its clients."""
    updates = pd.DataFrame(list(simulation.arrivals), columns=Arrival._fields)
    for column in ("refused", "faults"):  # an empty text becomes NaN, as when the table is read from a file
        updates[column] = [text or math.nan for text in updates[column]]
    still = [(job.client, job.dispatched_at, job.start_version, math.nan, STILL_TRAINING) for job in simulation.jobs]
    in_flight = pd.DataFrame([*simulation.ended, *still], columns=IN_FLIGHT)
    sizes = [len(part) for part in parts]
    categories = getattr(simulation.delays, "categories", None) or [""] * len(sizes)  # a law need not have them
    clients = pd.DataFrame(dict(zip(CLIENTS, (range(len(sizes)), sizes, categories), strict=True)))
    return Schedule(updates, in_flight, clients)
