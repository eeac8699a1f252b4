"""Errors for faulty delay laws and methods, and the limit that detects a method that never makes a version."""

from __future__ import annotations

from collections.abc import Iterable

from asyncfl_lite.base.errors import SimulationError, shown
from asyncfl_lite.simulator.jobs import Job
from asyncfl_lite.simulator.scheduling import Scheduling
from asyncfl_lite.simulator.server import Server, ServerError

MOST_ACCEPTED = 100
"""Number of updates that every server may accept without making a version; see :func:`most_accepted`."""


def impossible_duration(delays: object, client: int, duration: object) -> SimulationError:
    """Return the error for a delay law that draws an impossible duration."""
    return SimulationError(
        f"delay: {type(delays).__name__}.draw must return a finite number, at least 0, got {shown(duration)} "
        f"for client {client}"
    )


def most_accepted(scheduling: Scheduling) -> int:
    """Return how many updates a server may accept before it must make a new version."""
    return max(MOST_ACCEPTED, 20 * max(scheduling.most_in_flight, scheduling.buffer_size))


def no_version(server: Server, scheduling: Scheduling, jobs: Iterable[Job], accepted: int) -> ServerError:
    """Return the error for a method that makes no version; the message names the likely mistake."""
    sent = (job.start for job in jobs if job.start_version == server.version)
    replaced = any(start is not None and server.x is not None and not start.equal(server.x) for start in sent)
    found = "it sets self.x itself, which clients never receive" * replaced or "it never calls self.new_version(x)"
    return ServerError(
        f"{type(server).__name__} made no version of the last {accepted} updates that it accepted "
        f"(version {server.version}, buffer_size {scheduling.buffer_size}): {found}; on_receive must "
        "`return self.new_version(x)` when the buffer is full"
    )
