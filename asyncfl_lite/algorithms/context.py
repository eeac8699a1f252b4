"""What a method is told: clients' updates, and the server's surroundings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.simulator.jobs import Job


@dataclass(frozen=True, slots=True)
class Update:
    """What a client reports.

    Attributes:
        client: who reports.
        delta: ``(d,)`` trained parameters less those it started from ("new minus old").
        start_version: version t_i that it started from.
        num_samples: how many samples n_i it has.
        train_loss, train_accuracy: of its local training, NaN where not known.
        start: ``(d,)`` parameters x_{t_i}; a simulation fills it in, without one the method looks into
            its own record of versions.
        buffers, start_buffers: ``(b,)`` running statistics after training and before, or None.
        duration: virtual time from dispatch to arrival.
        num_steps: minibatch steps of its local training.
        mean_square_loss: mean of its samples' squared losses in the last local epoch.
        received_accuracy: of the model that it was sent, on its samples, where the method asks for
            ``received_accuracy``.
        trained_accuracy: of the trained model on its samples, where the method asks for ``trained_accuracy``.
        correction: ``(d,)`` what it added to every gradient, as the method's ``correction_for`` gave it.
        mean_gradient: ``(d,)`` mean over its steps of what its optimiser was given, where the method asks for
            ``mean_gradient`` and clients do not train by plain SGD.
        features: ``(2, F)`` its features' means and variances, where the method asks for ``features``.
        label_counts: ``(C,)`` int64 how many samples of each class it has, where the method asks for
            ``label_counts``.
        staleness: versions made since t_i; filled in by :meth:`Algorithm.receive`.
    """

    client: int
    delta: Tensor
    start_version: int
    num_samples: int = 1
    train_loss: float = math.nan
    train_accuracy: float = math.nan
    start: Tensor | None = None
    buffers: Tensor | None = None
    start_buffers: Tensor | None = None
    duration: float = math.nan
    num_steps: int = 1
    mean_square_loss: float = math.nan
    received_accuracy: float = math.nan
    trained_accuracy: float = math.nan
    correction: Tensor | None = None
    features: Tensor | None = None
    label_counts: Tensor | None = None
    mean_gradient: Tensor | None = None
    staleness: int = 0

    @classmethod
    def of(cls, job: Job, staleness: int) -> Update:
        """Return what a trained job reports when it arrives so many versions late."""
        outcome = job.outcome
        return cls(
            client=job.client,
            delta=outcome.delta,
            start_version=job.start_version,
            num_samples=outcome.num_samples,
            train_loss=outcome.train_loss,
            train_accuracy=outcome.train_accuracy,
            start=job.start,
            buffers=outcome.buffers,
            start_buffers=job.start_buffers,
            duration=job.finish_time - job.dispatched_at,
            num_steps=outcome.num_steps,
            mean_square_loss=outcome.mean_square_loss,
            received_accuracy=outcome.received_accuracy,
            trained_accuracy=outcome.trained_accuracy,
            correction=job.correction,
            features=outcome.features,
            label_counts=outcome.label_counts,
            mean_gradient=outcome.mean_gradient,
            staleness=staleness,
        )


class Rejection(NamedTuple):
    """An update that was not used, and why."""

    client: int
    version: int
    reason: str


@dataclass
class ServerContext:
    """What a method that needs more than vectors may use; a test can fake every part.

    Attributes:
        model: turns ``(d,)`` parameters and inputs into logits, and gives gradients.
        num_clients: N.
        rng: the server's own random stream; clients' streams are out of reach.
        unlabelled: ``(name, count) -> (count, …)`` inputs of the server's unlabelled set.
        labelled: inputs and labels of the server's own labelled set, which no client has; empty
            unless the method asks for one with ``held_out``.
        client_lr: ``version -> learning rate`` that clients dispatched at that version train with.
        inputs: shape and range of the task's inputs, and the number of classes.
        predictions: ``(outputs, inputs) -> (m, C)`` every prediction in a batch's outputs, sample after sample.
        prediction_counts: ``inputs -> (n,)`` int64, how many of these each sample has.
        answers: ``labels -> (m,)`` the right answers to these.
        class_logits: ``outputs -> (n, C)`` one row of logits per sample.
    """

    model: VectorModel
    num_clients: int
    rng: np.random.Generator
    unlabelled: Callable[[str, int], Tensor]
    labelled: tuple[Tensor, Tensor] | None = None
    client_lr: Callable[[int], float] = lambda version: 0.01
    inputs: InputSpec | None = None
    predictions: Callable[[Tensor, Tensor], Tensor] = lambda outputs, inputs: outputs
    prediction_counts: Callable[[Tensor], Tensor] = lambda inputs: inputs.new_ones(len(inputs), dtype=torch.int64)
    answers: Callable[[Tensor], Tensor] = lambda labels: labels
    class_logits: Callable[[Tensor], Tensor] = lambda outputs: outputs
