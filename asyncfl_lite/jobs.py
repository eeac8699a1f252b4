"""A client's work from dispatch to arrival, as the clock, the trainer and the tables see it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor


@dataclass(slots=True)
class Outcome:
    """What a client's training gave.

    Attributes:
        delta: ``(d,)`` trained parameters less those it started from.
        num_samples: how many samples the client has.
        train_loss, train_accuracy: running means over the last local epoch.
        buffers: ``(b,)`` the client's own running statistics, or None.
        num_steps: minibatch steps that it took.
        mean_square_loss: running mean of squared sample losses over the last local epoch (Oort).
        trained_accuracy: of the trained model on the client's samples; NaN unless the method asks for it.
        features: ``(2, F)`` means and variances of the trained model's features on the client's samples;
            None unless the method asks for them.
        label_counts: ``(C,)`` int64 samples of each class; None unless the method asks for them.
    """

    delta: Tensor | None
    num_samples: int = 1
    train_loss: float = math.nan
    train_accuracy: float = math.nan
    buffers: Tensor | None = None
    num_steps: int = 1
    mean_square_loss: float = math.nan
    trained_accuracy: float = math.nan
    features: Tensor | None = None
    label_counts: Tensor | None = None


@dataclass(slots=True)
class Midway:
    """A newer model that reaches a client half-way through its job (FedASMU).

    Attributes:
        model: ``(d,)`` the server's model at that time.
        weight: how far the client moves to it, 0 to 1.
    """

    model: Tensor
    weight: float


@dataclass(slots=True, eq=False)
class Job:
    """One client's work between dispatch and arrival.

    Attributes:
        finish_time: virtual time of arrival.
        sequence_no: how many jobs were dispatched before this one; breaks ties.
        client: who trains.
        number: how many jobs this client had before, which names its stream of batches.
        start_version: version that it was sent.
        dispatched_at: virtual time of dispatch.
        start: ``(d,)`` that version's parameters, shared by all jobs that started from it.
        start_buffers: ``(b,)`` its running statistics.
        correction: ``(d,)`` what the client adds to every gradient (control variates), or None.
        midway: the newer model that it merged half-way, or None.
        outcome: set once the job is trained.
    """

    finish_time: float
    sequence_no: int
    client: int
    number: int
    start_version: int
    dispatched_at: float
    start: Tensor | None
    start_buffers: Tensor | None = None
    correction: Tensor | None = None
    midway: Midway | None = None
    outcome: Outcome | None = None

    def __repr__(self) -> str:
        return (
            f"Job(client {self.client}, dispatched at {self.dispatched_at:g} from version {self.start_version}, "
            f"arrives at {self.finish_time:g})"
        )


class Arrival(NamedTuple):
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
