"""Policies that keep the same number of clients busy all the time."""

from __future__ import annotations

from asyncfl_lite.simulator.scheduling.base import SCHEDULING, Dispatcher, Scheduling


@SCHEDULING.register("before_agg")
class DispatchBeforeAggregation(Scheduling):
    """Every report starts a new job at once, from the model before this report (FedEcho Alg. 1)."""

    def before_receive(self, simulation: Dispatcher, client: int) -> None:
        """Send the current model, before aggregation, to an idle client."""
        simulation.dispatch_idle(1, reporter=client)

    def after_receive(self, simulation: Dispatcher, client: int, changed: bool) -> None:
        """Do nothing, since the slot is already filled."""


@SCHEDULING.register("after_agg")
class DispatchAfterAggregation(Scheduling):
    """Every report starts a new job, from the model that already includes this report (FedAsync)."""

    def after_receive(self, simulation: Dispatcher, client: int, changed: bool) -> None:
        """Send the current model to an idle client."""
        simulation.dispatch_idle(1, reporter=client)


def Continuous(  # noqa: N802 - reads as the policy's name
    concurrency: int, buffer_size: int = 1, *, redispatch: str = "before_agg"
) -> Scheduling:
    """Make the policy that keeps ``concurrency`` clients busy at all times.

    Args:
        concurrency: how many clients train at the same time.
        buffer_size: how many updates one aggregation takes.
        redispatch: ``before_agg`` or ``after_agg``: whether the new job starts from the model before or
            after the aggregation that the report may trigger.
    """
    return SCHEDULING.get(redispatch)(concurrency, buffer_size)
