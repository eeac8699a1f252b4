"""How a scheduling policy reacts to lost jobs, and to clients that come back.

Without an entry of its own here, a policy takes a lost job as a report that was refused, and takes back every client.
"""

from __future__ import annotations

from functools import singledispatch

from asyncfl_lite.simulator.scheduling import Burst, DispatchBeforeAggregation, Dispatcher, Rounds, Scheduling


@singledispatch
def after_lost(policy: Scheduling, simulation: Dispatcher, client: int) -> None:
    """Continue after the server gives up on a job of ``client``, as after a refused report.

    So a lost job counts as a report of a round, and its client waits with the others of a burst. A round, or a burst,
    ends when nobody is in flight any more.
    """
    policy.after_receive(simulation, client, changed=False)


@after_lost.register
def _(policy: DispatchBeforeAggregation, simulation: Dispatcher, client: int) -> None:
    simulation.dispatch_idle(1, reporter=client)  # which comes before the report elsewhere


@singledispatch
def may_fill(policy: Scheduling, client: int) -> bool:
    """Return whether ``client``, which has just come back, may take a slot that could not be filled before."""
    return True


@may_fill.register
def _(policy: Rounds, client: int) -> bool:
    return client not in policy.reported  # a round takes nobody twice


@may_fill.register
def _(policy: Burst, client: int) -> bool:
    return client not in policy.waiting  # those wait for the burst to close
