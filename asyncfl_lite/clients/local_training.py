"""Clients' data, the settings of local training, and the gradient computations that all ways of training share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.models.draws import Generators
from asyncfl_lite.models.loss_gradients import losses_and_gradient
from asyncfl_lite.models.steps import Adam, Step, clipped_to, sgd
from asyncfl_lite.simulator.jobs import Job


@dataclass(frozen=True)
class LocalTraining:
    """Settings of local training: optimiser, learning rate, batches, and the method's extra objective and reports.

    Attributes:
        epochs, steps: passes over the client's samples, or minibatch steps; exactly one is given.
        clip: largest L2 norm of a step's gradient, or None.
        lr_decay: factor on the learning rate after every server version.
        proximal: weight μ of μ/2 ‖w - x_{t_i}‖² in the client's loss.
        correction_once: apply a job's correction once, after the last step, instead of at every step.
        midway: fraction of its steps after which a job merges the newer model that it was sent.
        reports: optional reports that outcomes contain, from :data:`.ON_REQUEST`.
        autocast: run forward passes in bfloat16 where torch considers it safe; parameters and steps keep their
            precision.
        channels_last: pass images in this memory format when jobs are trained one by one, whatever the model; a model
            with max-pooling always gets this format (:meth:`~asyncfl_lite.models.vectors.VectorModel.laid_out`).
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
    autocast: bool = False
    channels_last: bool = False

    def precision(self, device: torch.device) -> AbstractContextManager:
        """Return the context for forward passes on ``device``: bfloat16 autocast if enabled, else a null context."""
        return torch.autocast(device.type, torch.bfloat16) if self.autocast else nullcontext()

    @property
    def means_gradients(self) -> bool:
        """Whether clients must report a job's mean gradient; with plain SGD, the delta already determines it."""
        return "mean_gradient" in self.reports and self.optimiser != "sgd"

    def lr_at(self, version: int) -> float:
        """Return the learning rate of a job that starts from ``version``."""
        return self.lr * self.lr_decay**version

    def batches(self, num_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return a job's minibatches as ``(steps, batch_size)`` int64 indices of the client's samples, padded with -1.

        Every epoch is a fresh shuffle cut into batches; the last one may be shorter. If ``steps`` is given, there are
        as many epochs as these steps need, and the last one is cut short.
        """
        a_pass = -(-num_samples // self.batch_size)
        epochs = (self.epochs or 0) if self.steps is None else -(-self.steps // a_pass)
        places = np.full((epochs, a_pass * self.batch_size), -1)
        for epoch in places:
            epoch[:num_samples] = rng.permutation(num_samples)
        return places.reshape(-1, self.batch_size)[: self.steps]


def make_optimiser(training: LocalTraining, like: Tensor, lr: float | Tensor | None = None) -> Step:
    """Make the step function of ``training.optimiser`` for parameters shaped like ``like``, with fresh state.

    Args:
        training: the settings, of which the optimiser, weight decay and clipping are used.
        like: ``(G, d)`` or ``(d,)``.
        lr: the learning rate, or ``(G, 1)`` learning rates, one per row; by default, the one in ``training``.
    """
    lr = training.lr if lr is None else lr
    if training.optimiser == "sgd":
        step: Step = sgd(lr, training.weight_decay)
    else:
        like = like[None] if like.dim() == 1 else like
        step = Adam(like, lr, training.weight_decay, decoupled=training.optimiser == "adamw")
    if (clip := training.clip) is None:
        return step

    def clipped(x: Tensor, gradient: Tensor) -> None:
        step(x, clipped_to(gradient, clip))

    return clipped


@dataclass(frozen=True)
class ClientData:
    """All clients' samples as shared tensors; each client is a list of indices into them.

    Attributes:
        inputs: ``(n, …)`` on the device.
        targets: ``(n, …)`` on the device.
        parts: client -> ``(n_i,)`` int64 indices of its samples.
        losses: ``(outputs, targets) -> (n,)`` loss of each sample.
        hits: ``(outputs, targets) -> (n,)`` 1 where the prediction is correct.
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


@dataclass(slots=True)
class Work:
    """A job with its minibatches, learning rate and random generators, ready to be trained.

    Attributes:
        places: ``(steps, batch_size)`` int64 indices of its minibatches' samples in the data, -1 for padding.
        counted: first step of its last epoch, over which losses and hits are averaged.
        midway: step before which it merges a newer model, if it was sent one.
        lr: its learning rate.
        generator: random generator of its augmentation, or None.
        draws: random generators of its model's dropout, or None for a model that draws nothing.
    """

    job: Job
    places: np.ndarray
    counted: int
    midway: int
    lr: float
    generator: torch.Generator | None = None
    draws: Generators | None = None

    @property
    def seen(self) -> int:
        """Number of samples in the job's last epoch."""
        return int((self.places[self.counted :] >= 0).sum())

    def augmented(self, data: ClientData, inputs: Tensor) -> Tensor:
        """Return a training batch, augmented for this job."""
        return inputs if data.augment is None or self.generator is None else data.augment(inputs, self.generator)


def minibatch_gradient(
    data: ClientData, outputs: Tensor, targets: Tensor, weights: Tensor, counting: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the gradient of weighted losses with respect to outputs and, if ``counting``, losses and hits to sum.

    Args:
        data: the source of the functions for losses and hits.
        outputs: ``(n, …)``, detached from autograd's graph.
        targets: ``(n, …)``.
        weights: ``(n,)`` weights of the samples.
        counting: whether to return the ``(3, n)`` losses, hits and squared losses as well.
    """
    losses, gradient = losses_and_gradient(data.losses, weights, outputs, targets, wanted=counting)
    if not counting or losses is None:
        return gradient, None
    return gradient, torch.stack([losses, data.hits(outputs, targets).to(losses), losses.square()])


def complete_gradient(
    gradient: Tensor, training: LocalTraining, x: Tensor, start: Tensor, correction: Tensor | None
) -> Tensor:
    """Add a client's proximal term and correction to its loss gradient, in place, and return the gradient.

    Args:
        gradient: ``(..., d)`` gradient of the mean loss of a minibatch.
        training: the settings, which give the weight of the proximal term and say when corrections apply.
        x, start: ``(..., d)`` parameters now and at dispatch.
        correction: ``(..., d)`` vector that a client adds to its gradients, or None.
    """
    if training.proximal:
        gradient.add_(x - start, alpha=training.proximal)
    if correction is not None and not training.correction_once:
        gradient += correction
    return gradient
