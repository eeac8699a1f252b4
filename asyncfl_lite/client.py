"""Clients' local training: jobs in, outcomes out, one by one or as a cohort.

A cohort stacks its jobs' parameters into a ``(G, d)`` matrix and takes every stochastic gradient step
of all G clients at once (``torch.func.vmap``). It computes what training one by one computes, within
rounding: the same minibatches from the same streams, the same optimiser.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

from asyncfl_lite.features import feature_statistics
from asyncfl_lite.jobs import Job, Outcome
from asyncfl_lite.local_training import ClientData, LocalTraining
from asyncfl_lite.optimisers import make_optimiser
from asyncfl_lite.streams import stream
from asyncfl_lite.vectors import VectorModel

LARGEST_COHORT = 64
"""Jobs in one vectorised computation; a longer list is cut, most steps first."""


def stacked(plans: Sequence[np.ndarray]) -> np.ndarray:
    """Return several jobs' ``(steps, batch_size)`` minibatches as ``(G, most steps, batch_size)``, -1 for none."""
    together = np.full((len(plans), max(map(len, plans)), plans[0].shape[1]), -1)
    for row, plan in zip(together, plans, strict=True):
        row[: len(plan)] = plan
    return together


class Trainer:
    """Turns jobs into outcomes.

    Args:
        model: the clients' model.
        data: the clients' samples.
        training: how they train.
        seed: the run's seed, which with client and job number names a job's stream of batches.
        cohort: train jobs as cohorts, not one by one.
    """

    def __init__(
        self, model: VectorModel, data: ClientData, training: LocalTraining, seed: int, *, cohort: bool
    ) -> None:
        self.model = model
        self.data = data
        self.training = training
        self.seed = seed
        self.cohort = cohort

    def __call__(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Train ``jobs``; outcomes come in their order."""
        plans = [self._plan(job) for job in jobs]
        if not self.cohort:
            return [self._train_one(job, plan) for job, plan in zip(jobs, plans, strict=True)]
        outcomes: list[Outcome | None] = [None] * len(jobs)
        longest_first = sorted(range(len(jobs)), key=lambda place: (-len(plans[place]), place))
        for first in range(0, len(jobs), LARGEST_COHORT):
            places = longest_first[first : first + LARGEST_COHORT]
            trained = self._train_cohort([jobs[p] for p in places], [plans[p] for p in places])
            for place, outcome in zip(places, trained, strict=True):
                outcomes[place] = outcome
        return outcomes

    def _plan(self, job: Job) -> np.ndarray:
        """Return a job's minibatches as ``(steps, batch_size)`` places in the data, -1 for none."""
        part = self.data.parts[job.client]
        rng = stream(self.seed, "batches", job.client, job.number)
        places = self.training.batches(len(part), rng)
        return np.where(places < 0, -1, part[places])

    def _first_counted(self, job: Job, plan: np.ndarray) -> int:
        """Return the first step of a job's last epoch, over which its losses and hits are averaged."""
        a_pass = -(-len(self.data.parts[job.client]) // self.training.batch_size)
        return max(0, len(plan) - a_pass)

    def _loss(self, x: Tensor, start: Tensor, outputs: Tensor, targets: Tensor, here: Tensor) -> tuple:
        """Return the objective of one minibatch, and its sums of losses, hits, squared losses, and samples.

        Args:
            x, start: ``(d,)`` parameters now and at dispatch.
            outputs, targets: of ``(B, …)`` samples.
            here: ``(B,)`` bool, which of them are real and not padding.
        """
        losses = self.data.losses(outputs, targets) * here
        hits = (self.data.hits(outputs, targets) * here).sum()
        loss = losses.sum() / here.sum()
        if self.training.proximal:
            loss = loss + 0.5 * self.training.proximal * (x - start).square().sum()
        losses = losses.detach()
        return loss, torch.stack([losses.sum(), hits, losses.square().sum(), here.sum().to(losses)])

    def _outcome(self, job: Job, delta: Tensor, sums: Tensor, num_steps: int, buffers: Tensor | None = None) -> Outcome:
        loss, hits, square, seen = sums.tolist()
        part = self.data.parts[job.client]
        outcome = Outcome(delta, len(part), loss / seen, hits / seen, buffers, num_steps, square / seen)
        if self.training.reports:
            places = torch.from_numpy(part).to(delta.device)
            inputs, x = self.data.inputs[places], job.start + delta
            if "trained_accuracy" in self.training.reports:
                outputs = self.model.outputs(x, inputs, buffers)
                outcome.trained_accuracy = float(self.data.hits(outputs, self.data.targets[places]).mean())
            if "label_counts" in self.training.reports:
                outcome.label_counts = self.data.targets[places].bincount(minlength=self.data.num_classes).cpu()
            if "features" in self.training.reports:
                outcome.features = feature_statistics(self.model, x, inputs, buffers)
        return outcome

    def _train_one(self, job: Job, plan: np.ndarray) -> Outcome:
        x = job.start.clone()
        buffers = None if job.start_buffers is None else job.start_buffers.clone()
        lr = self.training.lr_at(job.start_version)
        step = make_optimiser(self.training, x, lr)
        sums = x.new_zeros(4)
        counted, midway = self._first_counted(job, plan), self._midway_step(plan)
        generator = self._generator(job)
        for number, row in enumerate(plan):
            if job.midway is not None and number == midway:
                x.lerp_(job.midway.model, job.midway.weight)
            places = torch.from_numpy(row[row >= 0]).to(x.device)
            inputs = self._augmented(self.data.inputs[places], generator)
            targets, here = self.data.targets[places], torch.ones(len(places), device=x.device)
            point = x.detach().requires_grad_()
            outputs = self.model(point, inputs, buffers, train=True)
            loss, tally = self._loss(point, job.start, outputs, targets, here)
            (gradient,) = torch.autograd.grad(loss, point)
            if job.correction is not None and not self.training.correction_once:
                gradient = gradient + job.correction
            step(x[None], gradient[None])
            if number >= counted:
                sums += tally
        if job.correction is not None and self.training.correction_once:
            x = x - lr * job.correction
        return self._outcome(job, x - job.start, sums, len(plan), buffers)

    def _generator(self, job: Job) -> torch.Generator | None:
        """Return what a job's augmentation draws from, which nothing but its client and number decide."""
        if self.data.augment is None:
            return None
        seed = int(stream(self.seed, "augment", job.client, job.number).integers(2**63))
        return torch.Generator(self.data.inputs.device).manual_seed(seed)

    def _augmented(self, inputs: Tensor, generator: torch.Generator | None) -> Tensor:
        return inputs if generator is None else self.data.augment(inputs, generator)

    def _midway_step(self, plan: np.ndarray) -> int:
        """Return the step before which a job merges the newer model."""
        return int(self.training.midway * len(plan))

    def _train_cohort(self, jobs: Sequence[Job], plans: Sequence[np.ndarray]) -> list[Outcome]:
        """Train jobs, sorted by falling number of steps, each step for all that still have one."""
        starts = torch.stack([job.start for job in jobs])
        x, device = starts.clone(), starts.device
        lr = self._learning_rates(jobs, x)
        step = make_optimiser(self.training, x, lr)
        sums = x.new_zeros(len(jobs), 4)
        counted = torch.tensor([self._first_counted(job, plan) for job, plan in zip(jobs, plans, strict=True)])
        counted, places = counted.to(device), torch.from_numpy(stacked(plans)).to(device)
        widths = (places >= 0).sum(-1)
        widest, active = widths.max(0).values.tolist(), (widths > 0).sum(0).tolist()
        corrections = None if jobs[0].correction is None else torch.stack([job.correction for job in jobs])
        merging = [
            (self._midway_step(plan), row, job.midway)
            for row, (job, plan) in enumerate(zip(jobs, plans, strict=True))
            if job.midway is not None
        ]

        generators = [self._generator(job) for job in jobs]

        def objective(x: Tensor, start: Tensor, inputs: Tensor, targets: Tensor, here: Tensor) -> tuple:
            return self._loss(x, start, self.model(x, inputs, train=True), targets, here)

        gradients = vmap(grad(objective, has_aux=True))
        for number in range(places.shape[1]):
            for due, row, midway in merging:
                if due == number:
                    x[row].lerp_(midway.model, midway.weight)
            still = active[number]
            rows = places[:still, number, : widest[number]]
            here, rows = rows >= 0, rows.clamp(min=0)
            inputs = self.data.inputs[rows]
            if self.data.augment is not None:  # a job's own samples only, as it would have them alone
                for row, width in enumerate(widths[:still, number].tolist()):
                    inputs[row, :width] = self._augmented(inputs[row, :width], generators[row])
            gradient, tally = gradients(x[:still], starts[:still], inputs, self.data.targets[rows], here)
            if corrections is not None and not self.training.correction_once:
                gradient = gradient + corrections[:still]
            step(x[:still], gradient)
            sums[:still] += tally * (counted[:still] <= number)[:, None]
        if corrections is not None and self.training.correction_once:
            x = x - lr * corrections
        deltas = x - starts
        return [
            self._outcome(job, deltas[row], sums[row], len(plan))
            for row, (job, plan) in enumerate(zip(jobs, plans, strict=True))
        ]

    def _learning_rates(self, jobs: Sequence[Job], like: Tensor) -> float | Tensor:
        """Return the jobs' learning rates: one number, or ``(G, 1)`` where they differ."""
        rates = [self.training.lr_at(job.start_version) for job in jobs]
        return rates[0] if len(set(rates)) == 1 else like.new_tensor(rates)[:, None]
