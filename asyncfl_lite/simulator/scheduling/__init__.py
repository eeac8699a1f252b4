"""Scheduling policies, which decide when clients are dispatched; importing this package registers them all."""

from asyncfl_lite.simulator.scheduling.base import SCHEDULING, Dispatcher, Scheduling
from asyncfl_lite.simulator.scheduling.continuous import (
    Continuous,
    DispatchAfterAggregation,
    DispatchBeforeAggregation,
)
from asyncfl_lite.simulator.scheduling.groups import Burst, Refill, Rounds

__all__ = [
    "SCHEDULING",
    "Burst",
    "Continuous",
    "DispatchAfterAggregation",
    "DispatchBeforeAggregation",
    "Dispatcher",
    "Refill",
    "Rounds",
    "Scheduling",
]
