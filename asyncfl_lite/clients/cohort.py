"""A cohort: several jobs trained as one computation.

The jobs' parameters are stacked into a ``(G, d)`` matrix, and every stochastic gradient step is taken for all G
clients at once: one forward pass of all models (``models/stacked.py``), and one backward pass through the sum
of the clients' objectives, which gives each row its own client's gradient. Rows are sorted by falling number of
steps, so that those who still have one are always the first. Minibatches are padded to the batch size and learning
rates are a column, whoever takes part: so that what a row computes does not depend on its company.
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
    minibatch_losses,
)
from asyncfl_lite.models.stacked import stacked_forward
from asyncfl_lite.models.vectors import VectorModel


def stacked(plans: Sequence[np.ndarray]) -> np.ndarray:
    """Return several jobs' ``(steps, batch_size)`` minibatches as ``(most steps, G, batch_size)``, -1 for none."""
    together = np.full((max(map(len, plans)), len(plans), plans[0].shape[1]), -1)
    for row, plan in enumerate(plans):
        together[: len(plan), row] = plan
    return together


class Cohort:
    """G jobs that are trained together.

    Args:
        model: the clients' model, without running statistics.
        data: the samples that all of them are of.
        training: how all of them train, but for the learning rate.
        works: the jobs with their minibatches, most steps first.

    Attributes:
        gradients: ``(G, d)`` sums of what optimisers were given so far, or None where nobody asks.
    """

    def __init__(self, model: VectorModel, data: ClientData, training: LocalTraining, works: Sequence[Work]) -> None:
        self.data, self.training, self.works = data, training, works
        self.forward = stacked_forward(model)
        self.starts = torch.stack([work.job.start for work in works])
        self.x = self.starts.clone()
        self.lr = self.x.new_tensor([work.lr for work in works])[:, None]
        self.step = make_optimiser(training, self.x, self.lr)
        self.sums = self.x.new_zeros(3, len(works))
        self.gradients = torch.zeros_like(self.x) if training.means_gradients else None
        self._plan_steps()
        corrected = works[0].job.correction is not None
        self.corrections = torch.stack([work.job.correction for work in works]) if corrected else None
        self.merging = [(work.midway, row) for row, work in enumerate(works) if work.job.midway is not None]

    def _plan_steps(self) -> None:
        """Note for each step who still takes it, on which samples, who is padded and who counts."""
        places, counted = stacked([work.places for work in self.works]), [work.counted for work in self.works]
        widths, device = (places >= 0).sum(-1), self.x.device
        self.active = (widths > 0).sum(1).tolist()
        self.padded = ((widths > 0) & (widths < places.shape[-1])).any(1).tolist()
        self.first_counted = np.minimum.accumulate(counted)[np.array(self.active) - 1].tolist()
        self.last_counted = max(counted)
        self.places, self.widths = torch.from_numpy(places.clip(0)).to(device), torch.from_numpy(widths).to(device)
        self.counted = torch.tensor(counted).to(device)
        self.columns = torch.arange(places.shape[-1]).to(device)

    def train(self) -> tuple[Tensor, Tensor]:
        """Take every step; return the ``(G, d)`` deltas, and ``(G, 3)`` sums of losses, hits and squared losses."""
        for number in range(len(self.active)):
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
        """Move jobs that are half-way before this step to the newer model that they were sent."""
        for due, row in self.merging:
            if due == number:
                midway = self.works[row].job.midway
                self.x[row].lerp_(midway.model, midway.weight)

    def _gradient(self, number: int) -> Tensor:
        """Return the ``(g, d)`` gradients of a step's mean losses for the g jobs that have it; sums what is counted."""
        still = self.active[number]
        inputs, targets, shares = self._minibatches(number, still)
        x, counting = self.x[:still].detach().requires_grad_(), number >= self.first_counted[number]
        with self.training.precision(x.device):
            outputs = self.forward(x, inputs).flatten(0, 1)
            losses, tally = minibatch_losses(self.data, outputs, targets, counting)
        if counting:
            self._count(number, tally * (shares > 0) if self.padded[number] else tally)
        return torch.autograd.grad(losses, x, shares)[0]

    def _count(self, number: int, tally: Tensor) -> None:
        """Add a step's ``(3, g · B)`` to the sums of those jobs that are in their last epoch."""
        still = self.active[number]
        sums = tally.view(3, still, -1).sum(-1)
        if number < self.last_counted:
            sums = torch.where(self.counted[:still] <= number, sums, 0.0)
        self.sums[:, :still] += sums

    def _minibatches(self, number: int, still: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``(g, B, …)`` inputs of a step, ``(g · B, …)`` targets, and samples' shares in clients' means."""
        wide, widths = len(self.columns), self.widths[number, :still]
        places = self.places[number, :still].flatten()
        inputs = self.data.inputs.index_select(0, places).unflatten(0, (still, wide))
        targets = self.data.targets.index_select(0, places)
        if self.data.augment is not None:  # a job's own samples only, as it would have them alone
            for row, width in enumerate(widths.tolist()):
                inputs[row, :width] = self.works[row].augmented(self.data, inputs[row, :width])
        if not self.padded[number]:
            return inputs, targets, self.x.new_full((still * wide,), 1.0 / wide)
        real = self.columns < widths[:, None]
        return inputs, targets, (real / widths[:, None].to(self.x)).flatten()
