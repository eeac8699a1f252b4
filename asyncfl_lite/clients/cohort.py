"""Cohorts: several jobs trained in one computation.

The jobs' parameters are stacked into a ``(G, d)`` matrix, and every stochastic gradient step is taken for all G
clients at once: one forward pass of all models (``models/stacked.py``), and one backward pass through the sum
of the clients' objectives, which gives each row its own client's gradient. Rows are sorted by decreasing number of
steps, so that the jobs that still run are always the first rows. Minibatches are always padded to the batch size, and
learning rates are always a column, so that a row's result does not depend on the other rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.clients.local_training import (
    ClientData,
    LocalTraining,
    Work,
    complete_gradient,
    make_optimiser,
    minibatch_gradient,
)
from asyncfl_lite.models.draws import Draws
from asyncfl_lite.models.stacked import outputs_and_backward, stacked_forward
from asyncfl_lite.models.vectors import VectorModel


def stacked(plans: Sequence[np.ndarray]) -> np.ndarray:
    """Stack several jobs' ``(steps, batch_size)`` minibatches into ``(most steps, G, batch_size)``, padded with -1."""
    together = np.full((max(map(len, plans)), len(plans), plans[0].shape[1]), -1)
    for row, plan in enumerate(plans):
        together[: len(plan), row] = plan
    return together


class Plan:
    """The steps of G jobs that are trained side by side: at each step, the jobs still running, and their samples.

    Args:
        works: the jobs with their minibatches.
        device: the device of the samples.

    Attributes:
        active: step -> number of jobs that are still running, which are the first rows.
        places: ``(steps, G, batch_size)`` int64 indices of the samples, 0 for padding.
        widths: ``(steps, G)`` int64 number of samples in each job's minibatch.
        padded: step -> whether a job that is still running has fewer samples than ``batch_size``.
        counts_from: ``(G,)`` the step from which a job's losses and hits are counted.
        first_counted: step -> the smallest ``counts_from`` of the jobs that are still running.
        last_counted: the step from which all jobs are counted.
        columns: ``(batch_size,)`` indices 0, 1, … of the samples in a minibatch.
    """

    def __init__(self, works: Sequence[Work], device: torch.device) -> None:
        places, counts_from = stacked([work.places for work in works]), [work.counted for work in works]
        widths = (places >= 0).sum(-1)
        self.active = (widths > 0).sum(1).tolist()
        self.padded = ((widths > 0) & (widths < places.shape[-1])).any(1).tolist()
        self.first_counted = np.minimum.accumulate(counts_from)[np.array(self.active) - 1].tolist()
        self.last_counted = max(counts_from)
        self.places, self.widths = torch.from_numpy(places.clip(0)).to(device), torch.from_numpy(widths).to(device)
        self.counts_from = torch.tensor(counts_from).to(device)
        self.columns = torch.arange(places.shape[-1]).to(device)

    def counts(self, step: int) -> bool:
        """Return whether a running job is in its last epoch at this step, so that losses and hits are summed."""
        return step >= self.first_counted[step]

    def shares(self, step: int, like: Tensor) -> Tensor:
        """Return the ``(g · B,)`` weights of a step's samples in their clients' mean losses, 0 for padding."""
        still, wide = self.active[step], len(self.columns)
        if not self.padded[step]:
            return like.new_full((still * wide,), 1.0 / wide)
        widths = self.widths[step, :still, None]
        return ((self.columns < widths) / widths.to(like)).flatten()


class Cohort:
    """A group of G jobs that are trained in one computation.

    Args:
        model: the clients' model, without running statistics.
        data: the clients' samples.
        training: settings of local training, the same for all jobs except for the learning rate.
        works: the jobs with their minibatches, most steps first.

    Attributes:
        gradients: ``(G, d)`` sums of the gradients given to the optimisers so far, or None if no method asks for them.
    """

    def __init__(self, model: VectorModel, data: ClientData, training: LocalTraining, works: Sequence[Work]) -> None:
        self.data, self.training, self.works = data, training, works
        self.forward = stacked_forward(model)
        self.starts = torch.stack([work.job.sent for work in works])
        self.x = self.starts.clone()
        self.lr = self.x.new_tensor([work.lr for work in works])[:, None]
        self.step = make_optimiser(training, self.x, self.lr)
        self.sums = self.x.new_zeros(3, len(works))
        self.gradients = torch.zeros_like(self.x) if training.means_gradients else None
        self.plan = Plan(works, self.x.device)
        corrections = [work.job.correction for work in works if work.job.correction is not None]  # all or none
        self.corrections = torch.stack(corrections) if corrections else None
        self.merging = [(work.midway, row, work.job.midway) for row, work in enumerate(works) if work.job.midway]

    def train(self) -> tuple[Tensor, Tensor]:
        """Run all steps; return ``(G, d)`` deltas and ``(G, 3)`` sums of losses, hits and squared losses."""
        for number in range(len(self.plan.active)):
            self._merge(number)
            gradient = self._gradient(number)
            still = len(gradient)
            x, start = self.x[:still], self.starts[:still]
            corrections = None if self.corrections is None else self.corrections[:still]
            gradient = complete_gradient(gradient, self.training, x, start, corrections)
            if self.gradients is not None:
                self.gradients[:still] += gradient
            self.step(x, gradient)
        x = self.x
        if self.corrections is not None and self.training.correction_once:
            x = x - self.lr * self.corrections
            if self.gradients is not None:
                self.gradients += self.corrections
        return x - self.starts, self.sums.T

    def _merge(self, number: int) -> None:
        """Merge a newer model into each job that is due to receive one before this step."""
        for due, row, midway in self.merging:
            if due == number:
                self.x[row].lerp_(midway.model, midway.weight)

    def _gradient(self, number: int) -> Tensor:
        """Return ``(g, d)`` gradients of the g running jobs; update their sums of losses and hits."""
        still, counting = self.plan.active[number], self.plan.counts(number)
        inputs, targets = self._minibatches(number, still)
        shares = self.plan.shares(number, self.x)
        with self.training.precision(self.x.device):
            outputs, backward = outputs_and_backward(self.forward, self.x[:still], inputs, self._draws(number, still))
            gradient, tally = minibatch_gradient(self.data, outputs.flatten(0, 1), targets, shares, counting)
        if tally is not None:
            self._count(number, tally * (shares > 0) if self.plan.padded[number] else tally)
        return backward(gradient.view_as(outputs))

    def _draws(self, number: int, still: int) -> Draws | None:
        """Return dropout's random draws for the first ``still`` jobs in a step; None if the model has no dropout."""
        generators = [work.draws for work in self.works[:still] if work.draws is not None]  # all or none
        if not generators:
            return None
        return Draws(generators, self.plan.widths[number, :still].tolist(), len(self.plan.columns))

    def _count(self, number: int, tally: Tensor) -> None:
        """Add a step's ``(3, g · B)`` losses, hits and squared losses to the sums of jobs in their last epoch."""
        still = self.plan.active[number]
        sums = tally.view(3, still, -1).sum(-1)
        if number < self.plan.last_counted:
            sums = torch.where(self.plan.counts_from[:still] <= number, sums, 0.0)
        self.sums[:, :still] += sums

    def _minibatches(self, number: int, still: int) -> tuple[Tensor, Tensor]:
        """Return a step's ``(g, B, …)`` inputs and ``(g · B, …)`` targets."""
        places = self.plan.places[number, :still].flatten()
        inputs = self.data.inputs.index_select(0, places).unflatten(0, (still, -1))
        targets = self.data.targets.index_select(0, places)
        if self.data.augment is not None:  # without the padding, as if the job were trained alone
            for row, width in enumerate(self.plan.widths[number, :still].tolist()):
                augmented = self.works[row].augmented(self.data, inputs[row, :width])
                overlaps = augmented.untyped_storage().data_ptr() == inputs.untyped_storage().data_ptr()
                inputs[row, :width] = augmented.clone() if overlaps else augmented
        return inputs, targets
