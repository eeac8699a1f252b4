"""The costs of a method: its server's storage, its clients' extra work, and the data that its server reads."""

from __future__ import annotations

from typing import NamedTuple

from asyncfl_lite.algorithms import ALGORITHMS, Algorithm
from asyncfl_lite.algorithms.table import claimed, storage_claim
from asyncfl_lite.runs.config import Config, class_of_group
from asyncfl_reproduction.claims.measured import Measured


class Storage(NamedTuple):
    """Amounts that a server stores, at 4 bytes per number, not counting generators, pools and labelled sets.

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
    """Return a server's peak storage, from its class's declaration and the versions in flight in a cell's runs."""
    models, logits = claimed(server, clients=clients, unlabelled=1)[:2]
    held = int(m.values(cell, "most_versions_in_flight").max()) if server.about.keeps_versions else 0
    kilobytes = (models + held) * float(m.values(cell, "parameters").max()) * 4 / 1000
    return Storage(models + held, held, kilobytes, logits * classes * 4 / 1000)


class Costs(NamedTuple):
    """The costs of a method in one setting: its server's storage, its clients' extra work, and its server's data.

    What the server stores is in terms of N, M and M_c. See :class:`Storage` for the sizes.
    """

    method: str
    stores: str
    kilobytes: float
    logits_kilobytes: float
    asks: str
    data: str


def costs(method: str, config: Config, measured: Measured, *, classes: int, unlabelled: bool | None = None) -> Costs:
    """Return the storage of a method's server, its clients' extra work, and the data that its server reads.

    ``unlabelled`` says whether its server was seen to read unlabelled inputs; if None, whether the method has a
    setting for such inputs counts.
    """
    kind, server = ALGORITHMS.get(config.algorithm), config.make_algorithm()
    held = storage(measured, method, server, clients=config.clients, classes=classes)
    if unlabelled is None:
        unlabelled = "distill_set" in class_of_group("settings", config.algorithm).model_fields
    data = [f"labels of {config.held_out:.2%} of the training samples"] * (config.held_out > 0)
    data += ["unlabelled inputs"] * unlabelled
    asks = [] if kind.about.client_work == "none" else [kind.about.client_work]
    asks += ["reports of " + ", ".join(sorted(server.client_reports))] * bool(server.client_reports and not asks)
    asks += [f"clients chosen by {config.selection}, from their losses and times"] * (config.selection != "uniform")
    return Costs(
        method, storage_claim(kind), held.kilobytes, held.logits_kilobytes, "; ".join(asks) or "nothing",
        " and ".join(data) or "none",
    )  # fmt: skip
