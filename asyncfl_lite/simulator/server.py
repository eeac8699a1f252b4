"""What the clock expects of a server: the base class of every method in :mod:`asyncfl_lite.algorithms`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from asyncfl_lite.base.errors import SimulationError, shown
from asyncfl_lite.simulator.jobs import Job, Midway, Receipt, Update
from asyncfl_lite.simulator.scheduling import Scheduling


class ServerError(SimulationError):
    """Raised for a method that does not make versions as the clock expects; the message says what to check."""


class Server(ABC):
    """The part of a started method that the clock uses.

    Attributes:
        version: how many versions have been made.
        x: ``(d,)`` the current global model; None without training.
        buffers: ``(b,)`` running statistics of the current global model, or None.
    """

    version: int
    x: Tensor | None
    buffers: Tensor | None

    @property
    def midway(self) -> float | None:
        """Fraction of a job after which its client merges the newest model; None if it never does."""
        return None

    @abstractmethod
    def receive(self, update: Update) -> Receipt:
        """Accept one client's update, or refuse it."""

    def flush(self) -> bool:
        """Aggregate a buffer that is not full; return whether it held any updates."""
        return False

    def control_sent(self) -> Tensor | None:
        """Return the ``(d,)`` control variate to send with the model; None if the method has none."""
        return None

    def correction_for(self, client: int, control: Tensor) -> Tensor:
        """Return the ``(d,)`` vector that ``client`` adds to its gradients, given the ``control`` it was sent.

        The method is called when the job is trained, after all other events at the instant of its dispatch, so a client
        that is dispatched again on its own report already uses the state that this report left.
        """
        return control

    def midway_model(self, start_version: int) -> Midway | None:
        """Return the model that a client merges during its job, with the mixing weight; None for no merge."""
        return None


@dataclass(eq=False)
class Published:
    """Copies of a server's model, running statistics and control variate, for clients.

    A method may keep its own tensors and write into them; clients in flight still train on what they were sent. All
    clients that are sent the same version share one copy.
    """

    server: Server
    _version: int = -1
    _x: Tensor | None = None
    _buffers: Tensor | None = None
    _control: tuple[Tensor, int, Tensor] | None = None

    def current(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return copies of the server's model, statistics and control variate as they are now."""
        server = self.server
        if server.version != self._version:
            self._version = server.version
            self._x, self._buffers = (None if part is None else part.clone() for part in (server.x, server.buffers))
        control = server.control_sent()
        if control is None:
            return self._x, self._buffers, None
        known = self._control
        if known is None or known[0] is not control or known[1] != control._version:
            check_like(server, "control_sent", control, self._x)
            self._control = known = control, control._version, control.clone()
        return self._x, self._buffers, known[2]


def midway_for(server: Server, job: Job) -> Midway | None:
    """Return a copy of the newer model that a server sends to a job in flight; None if it sends none."""
    found = server.midway_model(job.start_version)
    if found is None:
        return None
    check_like(server, "midway_model", getattr(found, "model", found), job.start)
    return Midway(found.model.clone(), float(found.weight))


def check_like(server: object, hook: str, found: object, like: Tensor | None) -> None:
    """Raise a ServerError if a method's hook did not return, or was not given, a vector ``like`` the server's model.

    In a simulation without training, ``like`` is None.
    """
    if like is None:
        return
    if isinstance(found, Tensor):
        kind = found.shape, found.dtype, found.device
        if kind == (like.shape, like.dtype, like.device):
            return
        got = f"{tuple(found.shape)} of {found.dtype} on {found.device}"
    else:
        got = shown(found)
    raise ServerError(
        f"{type(server).__name__}.{hook} must give a tensor {tuple(like.shape)} of {like.dtype} on {like.device}, like "
        f"the model that clients train, got {got}"
    )


def check_answer(server: Server, answer: object, before: int, hook: str = "on_receive") -> None:
    """Raise a ServerError if a server's ``answer`` is wrong about whether it made a version.

    ``before`` is its version before the update, and ``hook`` the method that returned the answer.
    """
    if server.version - before == bool(answer):
        return
    hint = "return self.new_version(x)" if answer else "put `return` before self.new_version(x), or self.flush()"
    raise ServerError(
        f"{type(server).__name__}.{hook} must return True exactly when it made one version, since scheduling and "
        f"the clock go by it; it returned {answer!r} when the version went from {before} to {server.version}: {hint}"
    )


MOST_ACCEPTED = 100
"""Number of updates that every server may accept without making a version; more if the policy needs more."""


def check_makes_versions(server: Server, scheduling: Scheduling, jobs: Iterable[Job], accepted: int) -> None:
    """Raise a ServerError, which names the likely mistake, if a server has accepted too many updates for no version."""
    if accepted < 20 * max(scheduling.most_in_flight, scheduling.buffer_size):
        return
    sent = (job.start for job in jobs if job.start_version == server.version)
    replaced = any(start is not None and server.x is not None and not start.equal(server.x) for start in sent)
    found = "it sets self.x itself, which clients never receive" * replaced or "it never calls self.new_version(x)"
    raise ServerError(
        f"{type(server).__name__} made no version of the last {accepted} updates that it accepted "
        f"(version {server.version}, buffer_size {scheduling.buffer_size}): {found}; on_receive must "
        "`return self.new_version(x)` when the buffer is full"
    )
