"""Scheduling policies, which decide when a free slot gets new work (the option ``redispatch`` of a configuration).

The simulation calls a :class:`Scheduling` policy at every arrival, and the policy asks it to dispatch clients; a
:class:`.Selection` chooses which clients. Policies are small, hold no model and draw no random numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from asyncfl_lite.base.registry import Registry
from asyncfl_lite.simulator.selection import Selection

SCHEDULING: Registry[Scheduling] = Registry("redispatch")


class Dispatcher(Protocol):
    """The part of a simulation that a scheduling policy uses.

    Attributes:
        selection: the policy that chooses which clients are dispatched.
        num_clients: how many clients there are.
        in_flight: how many of them train now, as far as the server knows.
        busy: how many clients train now, plus the slots that wait for a client to come back.
    """

    selection: Selection
    num_clients: int

    @property
    def in_flight(self) -> int:
        """Number of clients that are training now."""

    @property
    def busy(self) -> int:
        """Number of clients that are training now, plus the slots that wait for a client to come back."""

    def dispatch(self, client: int) -> None:
        """Send the current model to ``client``, which must be idle."""

    def dispatch_idle(self, count: int, reporter: int | None = None) -> None:
        """Send the current model to ``count`` idle clients."""

    def flush(self) -> None:
        """Make the server aggregate its buffer even if it is not full."""

    def call_off(self) -> None:
        """Cancel every job in flight."""


class Scheduling(ABC):
    """A policy that decides when clients are dispatched.

    Args:
        concurrency: how many clients train at the same time, M_c.
        buffer_size: how many updates one aggregation takes, M.
    """

    def __init__(self, concurrency: int, buffer_size: int = 1) -> None:
        self.concurrency = concurrency
        self.buffer_size = buffer_size

    @property
    def most_in_flight(self) -> int:
        """Largest allowed number of clients in flight, against which every run is checked."""
        return self.concurrency

    def start(self, simulation: Dispatcher) -> None:
        """Dispatch the first clients at time 0."""
        simulation.dispatch_idle(self.concurrency)

    def before_receive(self, simulation: Dispatcher, client: int) -> None:  # noqa: B027
        """React to a report from ``client`` before the server processes it."""

    @abstractmethod
    def after_receive(self, simulation: Dispatcher, client: int, changed: bool) -> None:
        """React to a report from ``client`` after it was processed; ``changed`` says whether that made a version."""

    def state(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` loads, as plain numbers and lists."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027
        """Load a saved state."""
