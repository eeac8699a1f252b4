"""The peak storage of a method's server over a cell's runs, at 4 bytes per number."""

from __future__ import annotations

from typing import NamedTuple

from asyncfl_lite.algorithms import Algorithm
from asyncfl_lite.algorithms.table import claimed
from asyncfl_reproduction.claims.measured import Measured


class Storage(NamedTuple):
    """Amounts that a server stores, not counting generators, pools and labelled sets.

    Attributes:
        models: largest number of models held at one time, including the global one.
        in_flight: how many of them are versions that clients hold.
        kilobytes: size of all these models.
        logits_kilobytes: size of the stored logits, for each unlabelled sample.
    """

    models: int
    in_flight: int
    kilobytes: float
    logits_kilobytes: float


def storage(m: Measured, cell: str, server: Algorithm, *, clients: int, classes: int) -> Storage:
    """Return a server's peak storage, from its class's declaration and the versions in flight in a cell's runs.

    Args:
        m: results that include the cell's runs.
        cell: the method's cell.
        server: a server with the cell's settings.
        clients: number of clients N.
        classes: number of the task's classes.
    """
    models, logits = claimed(server, clients=clients, unlabelled=1)[:2]
    held = int(m.values(cell, "most_versions_in_flight").max()) if server.about.keeps_versions else 0
    kilobytes = (models + held) * float(m.values(cell, "parameters").max()) * 4 / 1000
    return Storage(models + held, held, kilobytes, logits * classes * 4 / 1000)
