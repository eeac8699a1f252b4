"""The server's model, data and random generator, for methods that need more than parameter vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.compute import (
    Answers,
    Descended,
    Descent,
    Minibatches,
    Optimiser,
    Request,
    SampleSet,
    fulfilled_now,
)
from asyncfl_lite.models.vectors import VectorModel


@dataclass
class ServerContext:
    """The server's model, data and random generator, for methods that need more than parameter vectors.

    Tests can replace any part.

    Attributes:
        model: the model, which computes logits and gradients from ``(d,)`` parameters and inputs.
        num_clients: N, the number of clients.
        rng: the server's own random stream, separate from the clients' streams.
        unlabelled: ``(name, count) -> (count, …)`` inputs of the server's unlabelled set.
        labelled: inputs and labels of the server's own labelled set, which no client has; None unless the method or the
            initialiser asks for one with ``held_out``.
        client_lr: ``version -> learning rate`` that clients dispatched at that version train with.
        inputs: shape and range of the task's inputs, and the number of classes.
        predictions: ``(outputs, inputs) -> (m, C)``, all predictions in a batch's outputs, sample by sample.
        prediction_counts: ``inputs -> (n,)`` int64 number of predictions of each sample.
        answers: ``labels -> (m,)`` correct class for each of the predictions.
        class_logits: ``outputs -> (n, C)``, one row of logits per sample.
        compute: a function that returns the result of a request; if several runs advance together, it first waits for
            requests of the others.

    >>> from asyncfl_lite import Config, Run
    >>> context = Run(Config(task="digits", algorithm="fedecho", clients=20)).algorithm.context
    >>> context.num_clients, context.unlabelled("natural", 5).shape
    (20, torch.Size([5, 1, 8, 8]))
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
    compute: Callable[[Request], Any] = fulfilled_now

    def samples(self, inputs: Tensor) -> SampleSet:
        """Return ``(n, …)`` inputs as a set from which minibatches are drawn."""
        return SampleSet(inputs, self.prediction_counts(inputs))

    def outputs(self, models: Sequence[tuple[Tensor, Tensor | None]], inputs: Tensor, **how: Any) -> list[Tensor]:
        """Apply several models, each ``(parameters, running statistics)``, to ``(n, …)`` inputs.

        ``how`` is passed to :class:`.Answers`; with ``one_for_all=False``, every model has inputs of its own.
        """
        xs, buffers = zip(*models, strict=True)
        return self.compute(Answers(self.model, xs, inputs, buffers, **how))

    def distil(
        self,
        x: Tensor,
        batches: Minibatches,
        *,
        loss: Callable[..., Tensor],
        against: Sequence[Tensor],
        optimiser: Optimiser,
        weight: Tensor | float | None = None,
        predictions: Callable[[Tensor, Tensor], Tensor] | None = None,
        **how: Any,
    ) -> Descended:
        """Train a model by distillation: one gradient step per minibatch.

        Args:
            x: ``(d,)`` initial parameters of the student, which are not changed.
            batches: the minibatch of every step.
            loss: ``(predictions, *against, weight)`` of a minibatch's rows -> their mean loss.
            against: ``(m, …)`` tensors with a row for every prediction on the whole set: a teacher's predictions, or
                labels.
            optimiser: the optimiser's settings.
            weight: ``(r,)`` weights, one for every row of the minibatches, or one number for all; None for a loss
                without weights.
            predictions: ``(outputs, inputs) -> (b, C)``, all predictions in a minibatch's outputs; None for the task's
                function.
            how: further fields of :class:`.Descent`: ``buffers``, ``train``, ``adam``, ``skips``.

        Returns:
            ``(d,)`` the parameters after the last step, and Adam's state.
        """
        if isinstance(weight, int | float):
            weight = torch.full(batches.rows.shape, weight, dtype=torch.float64).to(batches.rows.device)
        descent = Descent(
            self.model,
            x,
            batches,
            loss,
            optimiser,
            tables=against,
            given=() if weight is None else (weight,),
            predictions=predictions or self.predictions,
            **how,
        )
        return self.compute(descent)
