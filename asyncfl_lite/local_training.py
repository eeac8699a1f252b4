"""What clients train on and how: their data, and the settings of their local training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class LocalTraining:
    """How a client trains (specification §0.5).

    Attributes:
        epochs, steps: passes over its samples or minibatch steps; exactly one is given.
        clip: largest L2 norm of a step's gradient, or None.
        lr_decay: factor on the learning rate a server version.
        proximal: weight μ of μ/2 ‖w - x_{t_i}‖² in its loss.
        correction_once: apply a job's correction once, after the last step, in place of at every step.
        midway: how far through its steps a job merges the newer model that it was sent.
        reports: what else its outcome holds: ``trained_accuracy``, ``features``, ``label_counts``.
    """

    optimiser: Literal["sgd", "adam", "adamw"] = "sgd"
    lr: float = 0.01
    batch_size: int = 50
    epochs: int | None = None
    steps: int | None = None
    weight_decay: float = 0.0
    clip: float | None = None
    lr_decay: float = 1.0
    proximal: float = 0.0
    correction_once: bool = False
    midway: float = 0.5
    reports: frozenset[str] = frozenset()

    def lr_at(self, version: int) -> float:
        """Return the learning rate of a job that starts from ``version``."""
        return self.lr * self.lr_decay**version

    def batches(self, num_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return a job's minibatches: ``(steps, batch_size)`` int64 places, -1 where there is none.

        Every epoch is a fresh shuffle cut into batches, the last one shorter. A number of steps cuts
        as many epochs short as it needs.
        """
        a_pass = -(-num_samples // self.batch_size)
        epochs = self.epochs if self.steps is None else -(-self.steps // a_pass)
        places = np.full((epochs, a_pass * self.batch_size), -1)
        for epoch in places:
            epoch[:num_samples] = rng.permutation(num_samples)
        return places.reshape(-1, self.batch_size)[: self.steps]


@dataclass(frozen=True)
class ClientData:
    """All clients' samples as shared tensors; a client is a list of places in them.

    Attributes:
        inputs: ``(n, …)`` on the device.
        targets: ``(n, …)`` on the device.
        parts: client -> ``(n_i,)`` int64 places.
        losses: ``(outputs, targets) -> (n,)`` loss a sample.
        hits: ``(outputs, targets) -> (n,)`` 1 where the prediction is right.
        num_classes: C.
        augment: ``(inputs, generator) -> inputs`` for a training batch, or None.
    """

    inputs: Tensor
    targets: Tensor
    parts: Sequence[np.ndarray]
    losses: Callable[[Tensor, Tensor], Tensor]
    hits: Callable[[Tensor, Tensor], Tensor]
    num_classes: int = 0
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None
