"""The interface that the clock expects of a server; every method in :mod:`asyncfl_lite.algorithms` implements it."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from asyncfl_lite.base.errors import SimulationError
from asyncfl_lite.simulator.jobs import Midway
from asyncfl_lite.simulator.update import Receipt, Update


class ServerError(SimulationError):
    """Raised for a method that does not make versions as the clock expects; the message says what to check."""


class Server(Protocol):
    """The interface of a started method that the clock uses.

    A method needs ``correction_for`` only if it sends control variates, and ``midway_model`` only if ``midway`` is set.

    Attributes:
        x: ``(d,)`` the current global model.
        buffers: ``(b,)`` its running statistics, or None.
        version: how many versions have been made.
        midway: fraction of a job (0 to 1) after which its client merges the newest model; None if it never does.
    """

    version: int

    @property
    def x(self) -> Tensor | None:
        """The current global model."""

    @property
    def buffers(self) -> Tensor | None:
        """The running statistics of the current global model."""

    @property
    def midway(self) -> float | None:
        """Fraction of a job after which its client merges the newest model; None if it never does."""

    def receive(self, update: Update) -> Receipt:
        """Accept one client's update, or refuse it."""

    def flush(self) -> bool:
        """Aggregate a buffer that is not full; return whether that made a version."""

    def control_sent(self) -> Tensor | None:
        """Return the ``(d,)`` control variate to send with the model; None if the method has none."""

    def correction_for(self, client: int, control: Tensor) -> Tensor:
        """Return the ``(d,)`` vector that ``client`` adds to its gradients, given the ``control`` it was sent."""

    def midway_model(self, start_version: int) -> Midway | None:
        """Return the model that a client merges during its job, and its mixing weight; None if it merges none."""


def untrue_answer(server: Server, answer: object, before: int) -> str | None:
    """Return an error message if a server's return value is wrong about whether it made a version; else None.

    Args:
        server: the server, after the update.
        answer: its return value.
        before: its version before the update.
    """
    if server.version - before == bool(answer):
        return None
    hint = "return self.new_version(x)" if answer else "put `return` before self.new_version(x), or self.flush()"
    return (
        f"{type(server).__name__}.on_receive must return True exactly when it made one version, since scheduling and "
        f"the clock go by it; it returned {answer!r} when the version went from {before} to {server.version}: {hint}"
    )
