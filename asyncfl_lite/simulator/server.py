"""What the clock needs of a server, which any method of :mod:`asyncfl_lite.algorithms` has."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from asyncfl_lite.simulator.jobs import Midway
from asyncfl_lite.simulator.update import Receipt, Update


class Server(Protocol):
    """A started method. What sends no control variate needs no ``correction_for``, without midway no ``midway_model``.

    Attributes:
        x: ``(d,)`` the current global model.
        buffers: ``(b,)`` its running statistics, or None.
        version: how many versions have been made.
        midway: how far through a job (0 to 1) its client gets the newest model to merge; None for never.
    """

    x: Tensor | None
    buffers: Tensor | None
    version: int
    midway: float | None

    def receive(self, update: Update) -> Receipt:
        """Take one client's update in, or refuse it."""

    def flush(self) -> bool:
        """Aggregate what is buffered though the buffer is not full; return whether that made a version."""

    def control_sent(self) -> Tensor | None:
        """Return the ``(d,)`` control variate that travels with the model to a client dispatched now, or None."""

    def correction_for(self, client: int, control: Tensor) -> Tensor:
        """Return the ``(d,)`` vector that ``client``, having been sent ``control``, adds to its gradients."""

    def midway_model(self, start_version: int) -> Midway | None:
        """Return what a client that started from ``start_version`` merges half-way, now."""
