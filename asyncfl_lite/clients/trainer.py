"""The training of clients' jobs, one by one or many in one computation.

Both ways give a job the same outcome up to rounding: the minibatches come from the same streams, and the loop of
steps is the same (:class:`.Cohort`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.devices import seeded
from asyncfl_lite.base.streams import stream
from asyncfl_lite.clients.cohorts import ClientData, Cohort, LocalTraining, Work
from asyncfl_lite.models.stacked import chain_of, keeps_bits
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.simulator.jobs import Job, Outcome

LARGEST_COHORT = 256
"""Largest number of jobs in one vectorised computation; a longer list is split, longest jobs first."""
LARGEST_MATRIX = 2**24
"""Largest number of entries in a cohort's matrix of parameters, so that larger models make smaller cohorts."""
LARGEST_OF_IMAGES = 8
"""Largest cohort on a CPU for models that work on images; the images of more jobs would not fit into the cache."""


@dataclass(eq=False)
class Trainer:
    """The trainer of one run's clients; a call trains jobs and returns their outcomes.

    Attributes:
        seed: the run's seed; with client and job number, it identifies the random stream of a job's batches.
        cohort: train jobs as cohorts, not one by one.
        draws: whether the model draws random numbers in training, as dropout does.
    """

    model: VectorModel
    data: ClientData
    training: LocalTraining
    seed: int
    cohort: bool = field(kw_only=True)
    draws: bool = field(default=False, kw_only=True)

    def __call__(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Train ``jobs``; return their outcomes in the same order."""
        return train_together([(self, job) for job in jobs])

    @cached_property
    def shared(self) -> Hashable:
        """Key that jobs of several runs must share to be trained in one cohort; None if jobs are trained one by one.

        Jobs of different runs share a key only if a row's bits do not depend on the other rows, as in batched products
        of small matrices (:func:`.keeps_bits`); in grouped convolutions they may depend on them.
        """
        if not self.cohort:
            return None
        chain, data, training = chain_of(self.model), self.data, self.training
        mixes = chain is not None and not chain.images and keeps_bits(chain, training.batch_size)
        alike = replace(training, client_lr=0.0, client_lr_decay=1.0, reports=frozenset())
        run = None if mixes else id(self)
        return run, self.model.architecture, id(data.inputs), id(data.targets), data.augment, alike

    @cached_property
    def largest_cohort(self) -> int:
        """Largest number of jobs in one computation."""
        chain, on_processor = chain_of(self.model), self.data.inputs.device.type == "cpu"
        most = LARGEST_OF_IMAGES if chain and chain.images and on_processor else LARGEST_COHORT
        return max(1, min(most, LARGEST_MATRIX // self.model.num_parameters))

    def plan(self, job: Job) -> Work:
        """Return a job ready for training, with minibatches drawn from the random stream of its client and job number.

        A job that is cut short takes the first of its steps, at least one.
        """
        part, training = self.data.parts[job.client], self.training
        indices = training.batches(len(part), stream(self.seed, "batches", job.client, job.number))
        if job.fate is not None:
            indices = indices[: max(1, math.ceil(job.fate.share * len(indices)))]
        indices = np.where(indices < 0, -1, part[indices])
        a_pass = -(-len(part) // training.batch_size)
        generator = None
        if self.data.augment is not None:
            seed = int(stream(self.seed, "augment", job.client, job.number).integers(2**63))
            generator = torch.Generator(self.data.inputs.device).manual_seed(seed)
        draws = None
        if self.draws:
            draws = int(stream(self.seed, "dropout", job.client, job.number).integers(2**63))
        counted, midway = max(0, len(indices) - a_pass), int(training.midway * len(indices))
        return Work(job, indices, counted, midway, training.lr_at(job.start_version, job.number), generator, draws)

    def asked_for(self, job: Job, delta: Tensor, buffers: Tensor | None) -> dict[str, Any]:
        """Return the extra reports that the method asks for, except mean gradients, by attribute name."""
        asked = self.training.reports
        indices = torch.from_numpy(self.data.parts[job.client]).to(delta.device)
        inputs, targets, x = self.data.inputs[indices], self.data.targets[indices], job.sent + delta
        models = {"received_accuracy": (job.sent, job.start_buffers), "trained_accuracy": (x, buffers)}
        found: dict[str, Any] = {
            name: float(self.data.hits(self.model.outputs(weights, inputs, statistics), targets).mean())
            for name, (weights, statistics) in models.items()
            if name in asked
        }
        if "label_counts" in asked:
            found["label_counts"] = targets.flatten().bincount(minlength=self.data.num_classes).cpu()
        if "features" in asked:
            from asyncfl_lite.models.features import feature_statistics

            found["features"] = feature_statistics(self.model, x, inputs, buffers)
        return found


def train_together(jobs: Sequence[tuple[Trainer, Job]]) -> list[Outcome]:
    """Train jobs of one or several runs; jobs that need the same computation are trained in cohorts.

    Returns:
        Outcomes in the order of ``jobs``. Each is the one that its trainer alone would return, up to rounding.
    """
    works = [trainer.plan(job) for trainer, job in jobs]
    several = any(trainer is not jobs[0][0] for trainer, _ in jobs)
    groups: dict[Hashable, list[int]] = {}
    for index, (trainer, job) in enumerate(jobs):
        key = (trainer.shared if several else None, job.correction is None) if trainer.cohort else index
        groups.setdefault(key, []).append(index)
    outcomes: dict[int, Outcome] = {}
    for members in groups.values():
        trainer = jobs[members[0]][0]
        longest_first = sorted(members, key=lambda index: (-len(works[index].indices), index))
        for first in range(0, len(members), trainer.largest_cohort):
            indices = longest_first[first : first + trainer.largest_cohort]
            trained = _trained([(jobs[index][0], works[index]) for index in indices])
            outcomes |= zip(indices, trained, strict=True)
    return [outcomes[index] for index in range(len(jobs))]


def _trained(jobs: Sequence[tuple[Trainer, Work]]) -> list[Outcome]:
    """Train jobs in one computation, or one alone; return their outcomes."""
    (trainer, first), works = jobs[0], [work for _, work in jobs]
    asked = frozenset().union(*(own.training.reports for own, _ in jobs))  # by any of the runs
    training = replace(trainer.training, reports=asked)
    cohort = Cohort(trainer.model, trainer.data, training, works, alone=not trainer.cohort)
    with nullcontext() if first.draws is None else seeded(first.draws, trainer.data.inputs.device):
        deltas, sums = cohort.train()
    outcomes = []
    for row, (own, work) in enumerate(jobs):
        # a copy is aligned in memory like any vector; sums over a matrix's row may differ in the last bit
        delta = deltas[row].clone() if len(jobs) > 1 else deltas[0]
        report = own.asked_for(work.job, delta, cohort.buffers) if own.training.reports else {}
        if cohort.gradients is not None and own.training.means_gradients:
            report["mean_gradient"] = cohort.gradients[row] / len(work.indices)
        seen = int((work.indices[work.counted :] >= 0).sum())  # in the last epoch
        size = len(own.data.parts[work.job.client])
        means = (total / seen for total in sums[row].tolist())
        report |= zip(("train_loss", "train_accuracy", "mean_square_loss"), means, strict=True)
        outcomes.append(Outcome(delta, num_samples=size, num_steps=len(work.indices), buffers=cohort.buffers, **report))
    return outcomes
