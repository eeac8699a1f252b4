"""The training of clients' jobs, one by one or many in one computation.

Both ways give a job the same outcome up to rounding: the minibatches come from the same streams, and the optimiser
is the same.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.devices import seeded
from asyncfl_lite.base.streams import stream
from asyncfl_lite.clients.cohort import Cohort
from asyncfl_lite.clients.local_training import (
    ClientData,
    LocalTraining,
    Work,
    complete_gradient,
    make_optimiser,
    minibatch_gradient,
)
from asyncfl_lite.models.draws import Draws, Generators
from asyncfl_lite.models.features import feature_statistics
from asyncfl_lite.models.stacked import OneByOne, chain_of, keeps_bits
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.simulator.jobs import Job, Outcome

LARGEST_COHORT = 256
"""Largest number of jobs in one vectorised computation; a longer list is split, longest jobs first."""
LARGEST_MATRIX = 2**24
"""Largest number of entries in a cohort's matrix of parameters, so that larger models make smaller cohorts."""

LARGEST_OF_IMAGES = 8
"""Largest cohort on a CPU for models that work on images; the images of more jobs would not fit into the cache."""


class Trainer:
    """The trainer of one run's clients; a call trains jobs and returns their outcomes.

    Args:
        model: the clients' model.
        data: the clients' samples.
        training: settings of local training.
        seed: the run's seed; with client and job number, it identifies the random stream of a job's batches.
        cohort: train jobs as cohorts, not one by one.
        draws: whether the model draws random numbers in training, as dropout does.
    """

    def __init__(
        self,
        model: VectorModel,
        data: ClientData,
        training: LocalTraining,
        seed: int,
        *,
        cohort: bool,
        draws: bool = False,
    ) -> None:
        self.model = model
        self.data = data
        self.training = training
        self.seed = seed
        self.cohort = cohort
        self.draws = draws
        self._one_by_one = OneByOne(model)
        chain = chain_of(model)
        self._chain_of_images = bool(chain and chain.images)
        self._mixes = chain is not None and not chain.images and keeps_bits(chain, training.batch_size)
        self._alike = dataclasses.replace(training, lr=0.0, lr_decay=1.0, reports=frozenset())

    def __call__(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Train ``jobs``; return their outcomes in the same order."""
        return train_together([(self, job) for job in jobs])

    @property
    def shared(self) -> Hashable:
        """Key that jobs must share to be trained in one cohort; None if jobs are trained one by one.

        Jobs of different runs share a key only if a row's bits do not depend on the other rows, as in batched products
        of small matrices (:func:`.keeps_bits`); in grouped convolutions they may depend on them.
        """
        if not self.cohort:
            return None
        run = None if self._mixes else id(self)
        return run, self.model.architecture, id(self.data.inputs), id(self.data.targets), self.data.augment, self._alike

    @property
    def largest_cohort(self) -> int:
        """Largest number of jobs in one computation."""
        on_processor = self.data.inputs.device.type == "cpu"
        most = LARGEST_OF_IMAGES if self._chain_of_images and on_processor else LARGEST_COHORT
        return max(1, min(most, LARGEST_MATRIX // self.model.num_parameters))

    def plan(self, job: Job) -> Work:
        """Return a job ready for training, with minibatches drawn from the random stream of its client and job number.

        A job that is cut short (its ``share`` is below 1) takes the first of its steps, at least one.
        """
        part, training = self.data.parts[job.client], self.training
        places = training.batches(len(part), stream(self.seed, "batches", job.client, job.number))
        if job.share < 1:
            places = places[: max(1, math.ceil(job.share * len(places)))]
        places = np.where(places < 0, -1, part[places])
        a_pass = -(-len(part) // training.batch_size)
        generator = None
        if self.data.augment is not None:
            seed = int(stream(self.seed, "augment", job.client, job.number).integers(2**63))
            generator = torch.Generator(self.data.inputs.device).manual_seed(seed)
        draws = None
        if self.draws:
            seeds = stream(self.seed, "dropout", job.client, job.number).integers(2**63, size=2)
            draws = Generators.seeded(seeds.tolist(), self.data.inputs.device)
        counted, midway = max(0, len(places) - a_pass), int(training.midway * len(places))
        return Work(job, places, counted, midway, training.lr_at(job.start_version), generator, draws)

    def outcome(
        self,
        work: Work,
        delta: Tensor,
        sums: Sequence[float],
        buffers: Tensor | None = None,
        gradients: Tensor | None = None,
    ) -> Outcome:
        """Return the outcome that a trained job reports.

        Args:
            work: the job.
            delta: ``(d,)`` change of the parameters.
            sums: sums of losses, hits and squared losses over its last epoch.
            buffers: ``(b,)`` running statistics after training, or None.
            gradients: ``(d,)`` sum of the gradients that its optimiser was given, if the method asks for it.
        """
        seen, (loss, hits, square) = work.seen, sums
        return Outcome(
            delta,
            num_samples=len(self.data.parts[work.job.client]),
            train_loss=loss / seen,
            train_accuracy=hits / seen,
            buffers=buffers,
            num_steps=len(work.places),
            mean_square_loss=square / seen,
            mean_gradient=None if gradients is None else gradients / len(work.places),
            **self._asked_for(work.job, delta, buffers),
        )

    def _asked_for(self, job: Job, delta: Tensor, buffers: Tensor | None) -> dict[str, Any]:
        """Return the extra reports that the method asks for, except mean gradients, by attribute name."""
        if not (asked := self.training.reports):
            return {}
        places = torch.from_numpy(self.data.parts[job.client]).to(delta.device)
        inputs, targets, x = self.data.inputs[places], self.data.targets[places], job.sent + delta
        found: dict[str, Any] = {}
        if "received_accuracy" in asked:
            outputs = self.model.outputs(job.sent, inputs, job.start_buffers)
            found["received_accuracy"] = float(self.data.hits(outputs, targets).mean())
        if "trained_accuracy" in asked:
            outputs = self.model.outputs(x, inputs, buffers)
            found["trained_accuracy"] = float(self.data.hits(outputs, targets).mean())
        if "label_counts" in asked:
            found["label_counts"] = targets.flatten().bincount(minlength=self.data.num_classes).cpu()
        if "features" in asked:
            found["features"] = feature_statistics(self.model, x, inputs, buffers)
        return found

    def train_one(self, work: Work) -> Outcome:
        """Train one job by itself; its random numbers depend only on the run's seed, the client and the job number."""
        if work.draws is None:
            return self._train_one(work, nullcontext())
        with seeded(work.draws.padding.initial_seed(), self.data.inputs.device):  # for draws other than dropout's
            return self._train_one(work, Draws([work.draws]))

    def _train_one(self, work: Work, draws: AbstractContextManager) -> Outcome:
        """Train one job, with its forward passes inside the context ``draws``."""
        job, training = work.job, self.training
        start = job.sent
        x = start.clone()
        buffers = None if job.start_buffers is None else job.start_buffers.clone()
        step = make_optimiser(training, x, work.lr)
        sums, gradients = x.new_zeros(3), torch.zeros_like(x) if training.means_gradients else None
        for number, row in enumerate(work.places):
            if job.midway is not None and number == work.midway:
                x.lerp_(job.midway.model, job.midway.weight)
            places = torch.from_numpy(row[row >= 0]).to(x.device)
            inputs, targets = work.augmented(self.data, self.data.inputs[places]), self.data.targets[places]
            laid_out = self.model.laid_out(inputs, always=training.channels_last)
            point, counting = x.detach().requires_grad_(), number >= work.counted
            with draws, training.precision(x.device):
                outputs = self._one_by_one(point, laid_out, buffers, train=True)
                weights = x.new_full((len(targets),), 1.0 / len(targets))
                of_outputs, tally = minibatch_gradient(self.data, outputs.detach(), targets, weights, counting)
            (gradient,) = torch.autograd.grad(outputs, point, of_outputs)
            gradient = complete_gradient(gradient, training, x, start, job.correction)
            if gradients is not None:
                gradients += gradient
            step(x[None], gradient[None])
            if tally is not None:
                sums += tally.sum(1)
        if job.correction is not None and training.correction_once:
            x = x - work.lr * job.correction
            gradients = None if gradients is None else gradients + job.correction
        return self.outcome(work, x - start, sums.tolist(), buffers, gradients)


def train_together(jobs: Sequence[tuple[Trainer, Job]]) -> list[Outcome]:
    """Train jobs of one or several runs; jobs that need the same computation are trained in cohorts.

    Returns:
        Outcomes in the order of ``jobs``. Each is the one that its trainer alone would return, up to rounding.
    """
    works = [trainer.plan(job) for trainer, job in jobs]
    outcomes: dict[int, Outcome] = {}
    groups: dict[Hashable, list[int]] = {}
    for place, (trainer, job) in enumerate(jobs):
        if trainer.shared is None:
            outcomes[place] = trainer.train_one(works[place])
        else:
            groups.setdefault((trainer.shared, job.correction is None), []).append(place)
    for members in groups.values():
        trainer = jobs[members[0]][0]
        largest = trainer.largest_cohort
        longest_first = sorted(members, key=lambda place: (-len(works[place].places), place))
        for first in range(0, len(members), largest):
            places = longest_first[first : first + largest]
            asked = frozenset().union(*(jobs[place][0].training.reports for place in places))  # by any of the runs
            training = dataclasses.replace(trainer.training, reports=asked)
            cohort = Cohort(trainer.model, trainer.data, training, [works[place] for place in places])
            deltas, sums = cohort.train()
            for row, place in enumerate(places):
                own = jobs[place][0]
                # a copy is aligned in memory like any vector; sums over a matrix's row may differ in the last bit
                wanted = own.training.means_gradients
                gradients = cohort.gradients[row].clone() if wanted and cohort.gradients is not None else None
                delta, totals = deltas[row].clone(), sums[row].tolist()
                outcomes[place] = own.outcome(works[place], delta, totals, gradients=gradients)
    return [outcomes[index] for index in range(len(jobs))]
