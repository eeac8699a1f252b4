"""What the clock needs of a server, which any method of :mod:`asyncfl_lite.algorithms` has."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from asyncfl_lite.base.errors import SimulationError
from asyncfl_lite.simulator.jobs import Midway
from asyncfl_lite.simulator.update import Receipt, Update


class ServerError(SimulationError):
    """A method that does not make versions as the clock expects of it; the message says which line to look for."""


class Server(Protocol):
    """A started method. What sends no control variate needs no ``correction_for``, without midway no ``midway_model``.

    Attributes:
        x: ``(d,)`` the current global model.
        buffers: ``(b,)`` its running statistics, or None.
        version: how many versions have been made.
        midway: how far through a job (0 to 1) its client gets the newest model to merge; None for never.
    """

    version: int

    @property
    def x(self) -> Tensor | None:
        """The current global model."""

    @property
    def buffers(self) -> Tensor | None:
        """Its running statistics."""

    @property
    def midway(self) -> float | None:
        """When a client merges the newest model."""

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


def untrue_answer(server: Server, answer: object, before: int) -> str | None:
    """Return what is wrong with a server's answer to an update; None if it says whether it made a version.

    Args:
        server: after the update.
        answer: what it says.
        before: its version before the update.
    """
    if server.version - before == bool(answer):
        return None
    hint = "return self.new_version(x)" if answer else "put `return` before self.new_version(x), or self.flush()"
    return (
        f"{type(server).__name__}.on_receive must return True exactly when it made one version, since scheduling and "
        f"the clock go by it; it returned {answer!r} when the version went from {before} to {server.version}: {hint}"
    )
