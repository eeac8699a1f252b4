"""What a simulation did, as tidy tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from asyncfl_lite.jobs import Arrival
from asyncfl_lite.simulator import Simulation

IN_FLIGHT = ["client", "dispatched_at", "start_version", "called_off_at"]
CLIENTS = ["client", "num_samples", "category"]
"""Columns of the tables of jobs that did not arrive, and of clients."""


class Schedule(NamedTuple):
    """Who trained when.

    Attributes:
        updates, in_flight, clients: the tables of :class:`~asyncfl_lite.results.Result` of these names.
    """

    updates: pd.DataFrame
    in_flight: pd.DataFrame
    clients: pd.DataFrame


def who_did_what(simulation: Simulation, parts: Sequence[np.ndarray]) -> Schedule:
    """Return a simulation's arrivals, jobs still in flight, and clients as tables."""
    updates = pd.DataFrame(simulation.arrivals, columns=Arrival._fields)
    unfinished = [(job.client, job.dispatched_at, job.start_version, math.nan) for job in simulation.jobs]
    in_flight = pd.DataFrame(
        [*simulation.called_off, *unfinished],
        columns=IN_FLIGHT,
    )
    sizes = [len(part) for part in parts]
    categories = simulation.delays.categories or [""] * len(sizes)
    clients = pd.DataFrame(dict(zip(CLIENTS, (range(len(sizes)), sizes, categories), strict=True)))
    return Schedule(updates, in_flight, clients)
