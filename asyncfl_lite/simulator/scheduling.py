"""Who works when: scheduling decides when a free slot gets new work, and selection chooses the client that gets it.

The simulation calls a :class:`Scheduling` policy at every arrival, and the policy asks it to dispatch clients; a
:class:`Selection` chooses which clients. Policies are small and hold no model. Scheduling draws no random numbers;
a selection draws only from the simulation's stream of client choices.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, ClassVar, Protocol

import numpy as np

from asyncfl_lite.base import registry
from asyncfl_lite.base.registry import Registry
from asyncfl_lite.simulator.jobs import Update

SCHEDULING: Registry[Scheduling] = Registry("scheduling")
SELECTIONS: Registry[Selection] = Registry("selection")


class Policy:
    """A policy of either kind; a checkpoint saves what it changes during a run."""

    state_names: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that change: plain numbers, lists and mappings."""

    def state(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` loads."""
        return {name: copy(getattr(self, name)) for name in self.state_names}

    def restore(self, state: dict[str, Any]) -> None:
        """Load a saved state into a policy that has been started."""
        for name in self.state_names:
            setattr(self, name, copy(state[name]))


# Selection: which client


class IdleClients:
    """The clients without work; drawing a random client or removing a given one takes constant time.

    It holds two arrays of 8 bytes per client: the idle clients, and each client's index in that array.

    Args:
        clients: the clients that are idle now.
        highest: the largest client number in the run; by default the largest in ``clients``.
    """

    def __init__(self, clients: Iterable[int], highest: int | None = None) -> None:
        self._clients = array("q", clients)
        self.highest = max(self._clients, default=-1) if highest is None else highest
        self._position = array("q", [-1]) * (self.highest + 1)
        for index, client in enumerate(self._clients):
            self._position[client] = index

    def __len__(self) -> int:
        return len(self._clients)

    def __contains__(self, client: int) -> bool:
        return 0 <= client <= self.highest and self._position[client] >= 0

    @property
    def arrays(self) -> tuple[array[int], array[int]]:
        """The idle clients in their current order, and each client's index there, or -1; for a loop's own use."""
        return self._clients, self._position

    def as_list(self) -> list[int]:
        """Return the clients in their current order (:meth:`draw` depends on the order)."""
        return self._clients.tolist()

    def add(self, client: int) -> None:
        """Add a client that is idle again."""
        self._position[client] = len(self._clients)
        self._clients.append(client)

    def remove(self, client: int) -> None:
        """Remove a client, which must be idle.

        Raises:
            KeyError: when the client is not idle.
        """
        index = self._position[client]
        if index < 0:
            raise KeyError(client)
        self._position[client] = -1
        last = self._clients.pop()
        if last != client:
            self._clients[index] = last
            self._position[last] = index

    def draw(self, rng: np.random.Generator) -> int:
        """Return a uniformly random idle client, without removing it."""
        return self._clients[int(rng.random() * len(self._clients))]


class Selection(Policy, ABC):
    """A policy that chooses the client that gets work next.

    Args:
        settings: the policy's own options, by name.
    """

    revision: ClassVar[int] = 1
    """Revision of the policy's numbers; increase it when their meaning changes, to mark older results as outdated."""

    needs_rounds: ClassVar[bool] = False
    """Whether the policy only makes sense when clients are chosen one round at a time."""
    overcommit: float = 1.0
    """Number of clients that a round invites, as a multiple of the number wanted."""

    class Settings(registry.Settings):
        """The default settings class, with no options; a policy that has options defines its own."""

    settings: Settings

    def __init__(self, **settings: Any) -> None:
        self.settings = self.Settings(**settings)

    def start(self, num_samples: Mapping[int, int]) -> None:  # noqa: B027
        """Receive each client's sample count, before the first choice."""

    @abstractmethod
    def choose(self, idle: IdleClients, count: int, reporter: int | None, rng: np.random.Generator) -> Iterable[int]:
        """Choose ``count`` of the ``idle`` clients; each is removed before the next is chosen.

        Args:
            idle: the clients without work.
            count: how many clients are wanted, at most ``len(idle)``.
            reporter: the client that has just reported, if one has.
            rng: the run's stream of client choices.
        """

    def observe(self, update: Update) -> None:  # noqa: B027
        """Learn from an update that the server accepted; by default, do nothing."""


@SELECTIONS.register("uniform")
class Uniform(Selection):
    """A uniformly random idle client; the one that has just reported counts as idle, too (FedEcho Alg. 1)."""

    def choose(self, idle: IdleClients, count: int, reporter: int | None, rng: np.random.Generator) -> Iterable[int]:
        """Choose uniformly random idle clients."""
        if count == 1:  # the usual case, once per event
            return (idle.draw(rng),)
        return (idle.draw(rng) for _ in range(count))


@SELECTIONS.register("same_client")
class SameClient(Selection):
    """The client that reported gets the next job at once; for examples worked by hand."""

    def choose(self, idle: IdleClients, count: int, reporter: int | None, rng: np.random.Generator) -> Iterable[int]:
        """Yield the client that reported; at the start, or if it left, the idle clients with the lowest numbers."""
        for _ in range(count):
            yield reporter if reporter is not None and reporter in idle else min(idle.as_list())


# Scheduling: when


class Dispatcher(Protocol):
    """The part of a simulation that a scheduling policy uses.

    Attributes:
        selection: the policy that chooses which clients are dispatched.
        num_clients: how many clients there are.
    """

    selection: Selection
    num_clients: int

    @property
    def in_flight(self) -> int:
        """Number of clients that are training now, as far as the server knows."""

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


class Scheduling(Policy, ABC):
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

    def after_lost(self, simulation: Dispatcher, client: int) -> None:
        """React to a job of ``client`` that the server gives up on: by default, just as to a refused report."""
        self.after_receive(simulation, client, changed=False)

    def may_fill(self, client: int) -> bool:
        """Return whether ``client``, which has come back, may take a slot for which there was no client before."""
        return True


@SCHEDULING.register("before_agg")
class DispatchBeforeAggregation(Scheduling):
    """Every report starts a new job at once, from the model before this report (FedEcho Alg. 1)."""

    def before_receive(self, simulation: Dispatcher, client: int) -> None:
        """Send the current model, before aggregation, to an idle client."""
        simulation.dispatch_idle(1, reporter=client)

    def after_receive(self, simulation: Dispatcher, client: int, changed: bool) -> None:
        """Do nothing, since the slot is already filled."""

    after_lost = before_receive


@SCHEDULING.register("after_agg")
class DispatchAfterAggregation(Scheduling):
    """Every report starts a new job, from the model that already includes this report (FedAsync)."""

    def after_receive(self, simulation: Dispatcher, client: int, changed: bool) -> None:
        """Send the current model to an idle client."""
        simulation.dispatch_idle(1, reporter=client)


def Continuous(  # noqa: N802 - reads as the policy's name
    concurrency: int, buffer_size: int = 1, *, scheduling: str = "before_agg"
) -> Scheduling:
    """Make the policy that keeps ``concurrency`` clients busy at all times.

    Args:
        concurrency: how many clients train at the same time.
        buffer_size: how many updates one aggregation takes.
        scheduling: ``before_agg`` or ``after_agg``: whether the new job starts from the model before or
            after the aggregation that the report may trigger.
    """
    return SCHEDULING.get(scheduling)(concurrency, buffer_size)


@SCHEDULING.register("rounds")
class Rounds(Scheduling):
    """Synchronous rounds: a round's clients start together and the server waits for the last (FedAvg).

    A selection that over-commits invites more than M_c clients; the first M_c reports complete the round, and the other
    clients' jobs are called off. A lost job counts as a report. A round also ends when no client is in flight any more.
    """

    state_names = ("reported", "overcommit")
    overcommit = 1.0
    """Number of invited clients as a multiple of M_c; taken from the selection policy at the start."""

    def __init__(self, concurrency: int, buffer_size: int = 1) -> None:
        super().__init__(concurrency, buffer_size)
        self.reported: list[int] = []

    @property
    def most_in_flight(self) -> int:
        """Number of clients that a round invites."""
        return math.ceil(self.overcommit * self.concurrency - 1e-9)

    def start(self, simulation: Dispatcher) -> None:
        """Start the first round."""
        self.overcommit = simulation.selection.overcommit
        self._invite(simulation)

    def after_receive(self, simulation: Dispatcher, client: int, changed: bool) -> None:
        """Start the next round when the last awaited client has reported."""
        self.reported.append(client)
        if len(self.reported) < self.concurrency and simulation.in_flight:
            return
        simulation.call_off()
        if not changed:
            simulation.flush()  # a refused update must not hold the round up for ever
        self._invite(simulation)

    def may_fill(self, client: int) -> bool:
        """Return whether ``client`` has not reported yet, since a round takes no client twice."""
        return client not in self.reported

    def _invite(self, simulation: Dispatcher) -> None:
        self.reported = []
        simulation.dispatch_idle(min(self.most_in_flight, simulation.num_clients))


@SCHEDULING.register("burst")
class Burst(Scheduling):
    """Clients wait until M of them have reported; then all M get the new model together (KUIPER Alg. 1).

    A client whose job is lost waits with the others. A burst also closes when no client is in flight any more, unless M
    is larger than the concurrency.
    """

    state_names = ("waiting",)

    def __init__(self, concurrency: int, buffer_size: int = 1) -> None:
        super().__init__(concurrency, buffer_size)
        self.waiting: list[int] = []

    def after_receive(self, simulation: Dispatcher, client: int, changed: bool) -> None:
        """Dispatch all waiting clients when enough of them have reported."""
        self.waiting.append(client)
        stays_open = simulation.in_flight or self.buffer_size > self.concurrency  # so large a burst never fills
        if len(self.waiting) < self.buffer_size and stays_open:
            return
        if not changed:
            simulation.flush()
        for member in self.waiting:
            simulation.dispatch(member)
        self.waiting = []

    def may_fill(self, client: int) -> bool:
        """Return whether ``client`` does not wait for the burst to close, when it will be dispatched."""
        return client not in self.waiting


@SCHEDULING.register("refill")
class Refill(Scheduling):
    """M_c / 2 random clients join whenever fewer than M_c are active (FedADT §V: 50 join below 100)."""

    @property
    def batch(self) -> int:
        """Number of clients that join at once."""
        return max(1, self.concurrency // 2)

    @property
    def most_in_flight(self) -> int:
        """Largest number of clients in flight: one below the threshold, plus a whole group."""
        return self.concurrency - 1 + self.batch

    def after_receive(self, simulation: Dispatcher, client: int, changed: bool) -> None:
        """Dispatch a group of clients if the report leaves too few in flight."""
        self.start(simulation)

    def start(self, simulation: Dispatcher) -> None:
        """Dispatch groups of clients until enough are in flight."""
        while (busy := simulation.busy) < self.concurrency:
            simulation.dispatch_idle(min(self.batch, simulation.num_clients - busy))
