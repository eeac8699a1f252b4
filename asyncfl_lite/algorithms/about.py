"""Metadata that a method declares: its labels in tables and figures, and its costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Family = Literal["synchronous", "asynchronous", "buffered", "distilling"]
"""Groups by which tables sort methods."""


@dataclass(frozen=True)
class About:
    """Name, source and costs of a method, for tables and figures; they change nothing in a run.

    Attributes:
        title: the name as papers write it.
        paper: citation, with the section, algorithm and equations that the class implements.
        family: the group by which tables sort it.
        models_stored: largest number of ``(d,)`` vectors in the state, including the global model, in terms of N, M and
            settings.
        keeps_versions: whether the server must also keep the versions in flight (at most M_c) to rebuild clients'
            models.
        on_clients: the ``state_names`` that clients, not the server, would hold in a real system.
        logits_stored: number of samples whose logits the server stores, in terms of N and U (unlabelled samples).
        also_stored: anything else of note that the server stores.
        client_work: work of clients beyond training and sending their update.
        order_matters: whether the new version depends on the order of updates inside one buffer.
        secondary: whether the class was implemented from secondary sources, because its paper could not be read.
        colour: the method's colour in every picture, chosen so that colour-blind readers can tell methods apart.
    """

    title: str = ""
    paper: str = ""
    family: Family = "buffered"
    models_stored: str = "1"
    keeps_versions: bool = False
    on_clients: tuple[str, ...] = ()
    logits_stored: str = "0"
    also_stored: str = ""
    client_work: str = "none"
    order_matters: bool = False
    colour: str = "#6b7280"
    secondary: bool = False
