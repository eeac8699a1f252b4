"""A client's work from dispatch to arrival, as the clock, the trainer and the tables see it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(slots=True)
class Outcome:
    """What a client's training gave.

    Attributes:
        delta: ``(d,)`` trained parameters less those it started from.
        num_samples: how many samples the client has.
        train_loss, train_accuracy: running means over the last local epoch.
        buffers: ``(b,)`` the client's own running statistics, or None.
    """

    delta: Tensor | None
    num_samples: int = 1
    train_loss: float = math.nan
    train_accuracy: float = math.nan
    buffers: Tensor | None = None


@dataclass(slots=True, order=True)
class Job:
    """One client's work between dispatch and arrival; jobs sort by when they arrive.

    Attributes:
        finish_time: virtual time of arrival.
        sequence_no: how many jobs were dispatched before this one; breaks ties.
        client: who trains.
        number: how many jobs this client had before, which names its stream of batches.
        start_version: version that it was sent.
        dispatched_at: virtual time of dispatch.
        start: ``(d,)`` that version's parameters, shared by all jobs that started from it.
        start_buffers: ``(b,)`` its running statistics.
        outcome: set once the job is trained.
    """

    finish_time: float
    sequence_no: int
    client: int = field(compare=False)
    number: int = field(compare=False)
    start_version: int = field(compare=False)
    dispatched_at: float = field(compare=False)
    start: Tensor | None = field(compare=False, repr=False)
    start_buffers: Tensor | None = field(compare=False, repr=False, default=None)
    outcome: Outcome | None = field(compare=False, repr=False, default=None)


@dataclass(slots=True, frozen=True)
class Arrival:
    """One row of the table of updates; times are virtual.

    Attributes:
        version: the server's version after this arrival.
        accepted: False for an update that the method refused (not finite, wrong shape).
    """

    client: int
    dispatched_at: float
    arrived_at: float
    start_version: int
    staleness: int
    num_samples: int
    train_loss: float
    train_accuracy: float
    accepted: bool
    version: int
