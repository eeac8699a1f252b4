"""The reactions of scheduling policies to lost jobs, and to clients that come back.

A policy without an entry here treats a lost job like a refused report, and lets every client that comes back take an
empty slot.
"""

from __future__ import annotations

from functools import singledispatch

from asyncfl_lite.simulator.scheduling import Burst, DispatchBeforeAggregation, Dispatcher, Rounds, Scheduling


@singledispatch
def after_lost(policy: Scheduling, simulation: Dispatcher, client: int) -> None:
    """Let a policy react to a job of ``client`` that the server gives up on, just as to a refused report.

    So a lost job counts as a report of a round, and its client waits with the others of a burst. A round or a burst
    ends when no client is in flight any more.
    """
    policy.after_receive(simulation, client, changed=False)


@after_lost.register
def _(policy: DispatchBeforeAggregation, simulation: Dispatcher, client: int) -> None:
    simulation.dispatch_idle(1, reporter=client)  # after a report, ``before_receive`` has done this already


@singledispatch
def may_fill(policy: Scheduling, client: int) -> bool:
    """Return whether ``client``, which has just come back, may take a slot that could not be filled before."""
    return True


@may_fill.register
def _(policy: Rounds, client: int) -> bool:
    return client not in policy.reported  # a round takes no client twice


@may_fill.register
def _(policy: Burst, client: int) -> bool:
    return client not in policy.waiting  # a waiting client is dispatched when the burst closes
