"""Local training of many clients at once: its settings, the clients' data, and the loop of gradient steps.

There is one loop, :meth:`Cohort.train`, for one job alone and for many in one computation. The jobs' parameters are the
rows of a ``(G, d)`` matrix, and every stochastic gradient step is taken for all G clients at once: the gradient of the
sum of the clients' objectives gives each row its own client's. Rows are sorted by decreasing number of steps, so that
the jobs that still run are always the first rows.

A job's result does not depend on the other rows of its cohort: minibatches are always padded to the batch size, and
learning rates are always a column. One job alone has no padding, and may have running statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.models.stacked import Alone, stacked_forward
from asyncfl_lite.models.steps import SGD, Adam, Momentum, Step, descending, losses_and_gradient
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.simulator.jobs import Job

LARGEST_KEPT = 2**20
"""Number of outputs that a cohort keeps until the losses and hits of several steps are computed at once."""


@dataclass(frozen=True)
class LocalTraining:
    """Settings of local training: optimiser, learning rate, batches, and the method's extra objective and reports.

    Attributes:
        client_optimizer, …, client_lr_period: as in a configuration; either epochs or steps are given.
        proximal: weight μ of μ/2 ‖w - x_{t_i}‖² in the client's loss.
        correction_once: apply a job's correction once, after the last step, instead of at every step.
        midway: fraction of its steps after which a job merges the newer model that it was sent.
        reports: optional reports that outcomes contain, from :data:`.ON_REQUEST`.
    """

    client_optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    client_lr: float = 0.01
    batch_size: int = 50
    local_epochs: int | None = None
    local_steps: int | None = None
    weight_decay: float = 0.0
    client_lr_decay: float = 1.0
    client_momentum: float = 0.0
    client_nesterov: bool = False
    client_lr_schedule: Literal["constant", "cosine", "step"] = "constant"
    client_lr_period: int = 1
    proximal: float = 0.0
    correction_once: bool = False
    midway: float = 0.5
    reports: frozenset[str] = frozenset()

    @property
    def means_gradients(self) -> bool:
        """Whether clients must report a job's mean gradient; with plain SGD, the delta already determines it."""
        plain = self.client_optimizer == "sgd" and not self.client_momentum and self.client_lr_schedule == "constant"
        return "mean_gradient" in self.reports and not plain

    def lr_at(self, version: int, number: int = 0) -> float:
        """Return the learning rate of a job that starts from ``version``, after ``number`` jobs of its client.

        The schedules are those of torch's ``CosineAnnealingLR``, which here stays at 0 in the end, and ``StepLR``.
        """
        lr, period = self.client_lr * self.client_lr_decay**version, self.client_lr_period
        if self.client_lr_schedule == "cosine":
            return lr * (1 + math.cos(math.pi * min(number / period, 1))) / 2
        return lr * 0.1 ** (number // period) if self.client_lr_schedule == "step" else lr

    def batches(self, num_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return a job's minibatches as ``(steps, batch_size)`` int64 indices of the client's samples, padded with -1.

        Every epoch is a fresh shuffle cut into batches; the last one may be shorter. If ``local_steps`` is given, there
        are as many epochs as these steps need, and the last one is cut short.
        """
        a_pass = -(-num_samples // self.batch_size)
        epochs = (self.local_epochs or 0) if self.local_steps is None else -(-self.local_steps // a_pass)
        indices = np.full((epochs, a_pass * self.batch_size), -1)
        for epoch in indices:
            epoch[:num_samples] = rng.permutation(num_samples)
        return indices.reshape(-1, self.batch_size)[: self.local_steps]


def make_optimiser(training: LocalTraining, like: Tensor, lr: float | Tensor | None = None) -> Step:
    """Make the step function of ``training.client_optimizer`` for ``(G, d)`` or ``(d,)`` parameters, with fresh state.

    The learning rate may also be ``(G, 1)``, one per row; by default, it is the one in ``training``.
    """
    lr = training.client_lr if lr is None else lr
    if training.client_optimizer == "sgd" and not training.client_momentum:
        return SGD(lr, training.weight_decay)
    like = like[None] if like.dim() == 1 else like
    if training.client_optimizer == "sgd":
        return Momentum(like, lr, training.weight_decay, training.client_momentum, training.client_nesterov)
    return Adam(like, lr, training.weight_decay, decoupled=training.client_optimizer == "adamw")


@dataclass(frozen=True)
class ClientData:
    """All clients' samples as shared tensors; each client is a list of indices into them.

    Attributes:
        inputs, targets: ``(n, …)`` on the device.
        parts: client -> ``(n_i,)`` int64 indices of its samples.
        losses: ``(outputs, targets) -> (n,)`` loss of each sample.
        hits: ``(outputs, targets) -> (n,)`` 1 where the prediction is correct.
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
    """A job with its minibatches, learning rate and random numbers, ready to be trained.

    Attributes:
        indices: ``(steps, batch_size)`` int64 indices of its minibatches' samples in the data, -1 for padding.
        counted: first step of its last epoch, over which losses and hits are averaged.
        midway: step before which it merges a newer model, if it was sent one.
        generator: random generator of its augmentation, or None.
        draws: seed of what its model draws, such as dropout; None for a model that draws nothing.
    """

    job: Job
    indices: np.ndarray
    counted: int
    midway: int
    lr: float
    generator: torch.Generator | None = None
    draws: int | None = None


class Plan:
    """The steps of G jobs that are trained side by side: at each step, the jobs still running, and their samples.

    Attributes:
        active: step -> number of jobs that are still running, which are the first rows.
        sizes: step -> number of samples in each minibatch, with the padding.
        padded: step -> whether a job that is still running has fewer samples.
        first_counted: step -> the first step of a last epoch of the jobs that are still running.
        widths: ``(steps, G)`` int64 number of samples in each job's minibatch.
        indices, real, counted: ``(steps, G, batch_size)`` int64 indices of the samples, 0 for padding; whether each is
            a sample, not padding; and whether it is one in its job's last epoch.
    """

    def __init__(self, works: Sequence[Work], device: torch.device, pads: bool = True) -> None:
        indices = np.full((max(len(work.indices) for work in works), len(works), works[0].indices.shape[1]), -1)
        for row, work in enumerate(works):
            indices[: len(work.indices), row] = work.indices
        real, counts_from = indices >= 0, np.array([work.counted for work in works])
        widths = real.sum(-1)
        self.sizes = [indices.shape[-1]] * len(indices) if pads else widths.max(1).tolist()
        self.active = (widths > 0).sum(1).tolist()
        self.padded = ((widths > 0) & (widths < np.array(self.sizes)[:, None])).any(1).tolist()
        self.first_counted = np.minimum.accumulate(counts_from)[np.array(self.active) - 1].tolist()
        counted = real & (counts_from <= np.arange(len(indices))[:, None])[..., None]
        tensors = (torch.from_numpy(array).to(device) for array in (indices.clip(0), widths, real, counted))
        self.indices, self.widths, self.real, self.counted = tensors

    def of(self, step: int, table: Tensor) -> Tensor:
        """Return the part of a ``(steps, G, batch_size)`` table that is about a step's samples, ``(g · B,)``."""
        return table[step, : self.active[step], : self.sizes[step]].flatten()

    def shares(self, step: int, like: Tensor) -> Tensor:
        """Return the ``(g · B,)`` weights of a step's samples in their clients' mean losses, 0 for padding."""
        still, wide = self.active[step], self.sizes[step]
        if not self.padded[step]:
            return like.new_full((still * wide,), 1.0 / wide)
        return (self.real[step, :still] / self.widths[step, :still, None].to(like)).flatten()


class Cohort:
    """A group of G jobs that are trained in one computation, or one job alone.

    Args:
        training: settings of local training, the same for all jobs except for the learning rate.
        works: the jobs with their minibatches, most steps first.
        alone: train the only job as its module would be trained by a plain loop; else, the model must have no running
            statistics.

    Attributes:
        kept: of steps whose losses are yet to be counted, the number, outputs, targets, and losses if they are known.
        gradients: ``(G, d)`` sums of the gradients given to the optimisers so far, or None if no method asks for them.
        buffers: ``(b,)`` running statistics of a job alone, or None.
    """

    def __init__(
        self,
        model: VectorModel,
        data: ClientData,
        training: LocalTraining,
        works: Sequence[Work],
        *,
        alone: bool = False,
    ) -> None:
        self.data, self.training, self.works, self.alone = data, training, works, alone
        first = works[0]
        self.buffers = None if first.job.start_buffers is None else first.job.start_buffers.clone()
        forward = Alone(model, self.buffers) if alone else stacked_forward(model)
        self.starts = torch.stack([work.job.sent for work in works]) if len(works) > 1 else first.job.sent[None]
        self.lr = first.lr if alone else self.starts.new_tensor([work.lr for work in works])[:, None]
        self.sums = self.starts.new_zeros(3, len(works))
        self.gradients = torch.zeros_like(self.starts) if training.means_gradients else None
        self.kept: list[tuple[int, Tensor, Tensor, Tensor | None]] = []
        self.plan = Plan(works, self.starts.device, pads=not alone)
        corrections = [work.job.correction for work in works if work.job.correction is not None]  # all or none
        self.corrections = torch.stack(corrections) if corrections else None
        corrects = self.corrections is not None and not training.correction_once
        changes = training.proximal > 0 or corrects or self.gradients is not None
        optimiser = make_optimiser(training, self.starts, self.lr)
        self.models = descending(forward, self.starts, optimiser, self._changed if changes else None)
        self.merging = [(work.midway, row, work.job.midway) for row, work in enumerate(works) if work.job.midway]

    def train(self) -> tuple[Tensor, Tensor]:
        """Run all steps; return ``(G, d)`` deltas and ``(G, 3)`` sums of losses, hits and squared losses."""
        for number, still in enumerate(self.plan.active):
            for due, row, midway in self.merging:
                if due == number:
                    self.models.merge(row, midway.model, midway.weight)
            inputs, targets = self._minibatches(number, still)
            outputs = self.models.outputs(still, inputs)
            self.models.step(self._of_outputs(number, outputs, targets))
        self._count()
        x = self.models.x
        del self.models
        if self.corrections is not None and self.training.correction_once:
            x = x - self.lr * self.corrections
            if self.gradients is not None:
                self.gradients += self.corrections
        return x.sub_(self.starts), self.sums.T

    def _changed(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Add the proximal term's gradient and the corrections to ``(g, d)`` gradients; sum them up if asked to."""
        still = len(gradient)
        if self.training.proximal:
            gradient.add_(x - self.starts[:still], alpha=self.training.proximal)
        if self.corrections is not None and not self.training.correction_once:
            gradient += self.corrections[:still]
        if self.gradients is not None:
            self.gradients[:still] += gradient
        return gradient

    def _of_outputs(self, number: int, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the gradient of a step's outputs; keep what is counted of it."""
        flat = outputs.flatten(0, 1)
        shares = self.plan.shares(number, self.starts)
        losses, gradient = losses_and_gradient(self.data.losses, shares, flat, targets)
        if number >= self.plan.first_counted[number]:
            self.kept.append((number, flat, targets, losses))
            if len(self.kept) * flat.numel() > LARGEST_KEPT:
                self._count()
        return gradient.view_as(outputs)

    def _count(self) -> None:
        """Add the kept steps' losses, hits and squared losses to the sums of jobs in their last epoch."""
        if not self.kept:
            return
        plan, (numbers, flats, targets, found) = self.plan, zip(*self.kept, strict=True)
        self.kept = []
        sizes, counted = list(map(len, flats)), torch.cat([plan.of(number, plan.counted) for number in numbers])
        flat, target = torch.cat(flats), torch.cat(targets)
        losses = self.data.losses(flat, target) if found[0] is None else torch.cat(found)
        tally = torch.stack([losses, self.data.hits(flat, target).to(losses), losses.square()])
        for number, part in zip(numbers, torch.where(counted, tally, 0.0).split(sizes, 1), strict=True):
            still = plan.active[number]
            self.sums[:, :still] += part.view(3, still, -1).sum(-1)

    def _minibatches(self, number: int, still: int) -> tuple[Tensor, Tensor]:
        """Return a step's ``(g, B, …)`` inputs and ``(g · B, …)`` targets."""
        indices, augment = self.plan.of(number, self.plan.indices), self.data.augment
        inputs = self.data.inputs.index_select(0, indices).unflatten(0, (still, -1))
        if augment is not None:  # without the padding, as if the job were trained alone
            for work, own, width in zip(self.works, inputs, self.plan.widths[number].tolist(), strict=False):
                if work.generator is not None:
                    own[:width] = augment(own[:width].clone(), work.generator)
        return inputs, self.data.targets.index_select(0, indices)
