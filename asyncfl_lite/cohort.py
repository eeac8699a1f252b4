"""A cohort: several jobs trained as one computation.

The jobs' parameters are stacked into a ``(G, d)`` matrix, and every stochastic gradient step is taken for all G
clients at once: ``torch.func.vmap`` over the forward pass, and one backward pass through the sum of the clients'
objectives, which gives each row its own client's gradient. Rows are sorted by falling number of steps, so that
those who still have one are always the first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from asyncfl_lite.local_training import ClientData, LocalTraining, Work, minibatch_loss
from asyncfl_lite.optimisers import make_optimiser
from asyncfl_lite.vectors import VectorModel


def stacked(plans: Sequence[np.ndarray]) -> np.ndarray:
    """Return several jobs' ``(steps, batch_size)`` minibatches as ``(G, most steps, batch_size)``, -1 for none."""
    together = np.full((len(plans), max(map(len, plans)), plans[0].shape[1]), -1)
    for row, plan in zip(together, plans, strict=True):
        row[: len(plan)] = plan
    return together


class Cohort:
    """G jobs that are trained together.

    Args:
        model: the clients' model, without running statistics.
        data: the samples that all of them are of.
        training: how all of them train, but for the learning rate.
        works: the jobs with their minibatches, most steps first.
    """

    def __init__(self, model: VectorModel, data: ClientData, training: LocalTraining, works: Sequence[Work]) -> None:
        self.model, self.data, self.training, self.works = model, data, training, works
        self.starts = torch.stack([work.job.start for work in works])
        self.x = self.starts.clone()
        device = self.x.device
        self.lr = self._learning_rates()
        self.step = make_optimiser(training, self.x, self.lr)
        self.sums = self.x.new_zeros(len(works), 4)
        places = stacked([work.places for work in works])
        widths = (places >= 0).sum(-1)
        self.widths, self.widest, self.active = widths, widths.max(0).tolist(), (widths > 0).sum(0).tolist()
        self.places = torch.from_numpy(places).to(device)
        self.counted = torch.tensor([work.counted for work in works]).to(device)
        self.first_counted = min(work.counted for work in works)
        corrected = works[0].job.correction is not None
        self.corrections = torch.stack([work.job.correction for work in works]) if corrected else None
        self.merging = [(work.midway, row) for row, work in enumerate(works) if work.job.midway is not None]

    def _learning_rates(self) -> float | Tensor:
        """Return the jobs' learning rates: one number, or ``(G, 1)`` where they differ."""
        rates = [work.lr for work in self.works]
        return rates[0] if len(set(rates)) == 1 else self.x.new_tensor(rates)[:, None]

    def train(self) -> tuple[Tensor, Tensor]:
        """Take every step; return the ``(G, d)`` deltas and the ``(G, 4)`` sums of :func:`minibatch_loss`."""
        for number in range(len(self.active)):
            self._merge(number)
            gradient = self._gradient(number)
            if self.corrections is not None and not self.training.correction_once:
                gradient = gradient + self.corrections[: len(gradient)]
            self.step(self.x[: len(gradient)], gradient)
        x = self.x
        if self.corrections is not None and self.training.correction_once:
            x = x - self.lr * self.corrections
        return x - self.starts, self.sums

    def _merge(self, number: int) -> None:
        """Move jobs that are half-way before this step to the newer model that they were sent."""
        for due, row in self.merging:
            if due == number:
                midway = self.works[row].job.midway
                self.x[row].lerp_(midway.model, midway.weight)

    def _gradient(self, number: int) -> Tensor:
        """Return the ``(g, d)`` gradients of a step for the g jobs that have it; sums what is counted."""
        still = self.active[number]
        inputs, targets, here = self._minibatches(number, still)
        counting = number >= self.first_counted

        def objective(x: Tensor, start: Tensor, inputs: Tensor, targets: Tensor, here: Tensor) -> tuple:
            outputs = self.model(x, inputs, train=True)
            return minibatch_loss(self.data, self.training, x, start, outputs, targets, here, counting)

        x = self.x[:still].requires_grad_()
        losses, tally = vmap(objective)(x, self.starts[:still], inputs, targets, here)
        (gradient,) = torch.autograd.grad(losses.sum(), x)
        self.x.detach_()
        if counting:
            self.sums[:still] += tally * (self.counted[:still] <= number)[:, None]
        return gradient

    def _minibatches(self, number: int, still: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``(g, B, …)`` inputs and targets of a step, and where they are real and not padding."""
        places = self.places[:still, number, : self.widest[number]]
        here, places = places >= 0, places.clamp(min=0)
        inputs = self.data.inputs[places]
        if self.data.augment is not None:  # a job's own samples only, as it would have them alone
            for row, width in enumerate(self.widths[:still, number].tolist()):
                inputs[row, :width] = self.works[row].augmented(self.data, inputs[row, :width])
        return inputs, self.data.targets[places], here
