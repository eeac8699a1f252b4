"""What FedRevive's server knows and distils on: clients' class proportions, and a pool of labelled inputs.

On noise, a model predicts the classes that it was trained on most. Its mean prediction is the client's proxy π̂ of
class proportions (FedRevive §2.1, Appendix B). The pool is the set D_KD (§2.2, steps 2 and 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.vectors import all_finite


def probe_inputs(spec: InputSpec, count: int, rng: np.random.Generator, like: Tensor) -> Tensor:
    """Return ``(count, *shape)`` random inputs: standard normal values of the dtype of ``like``, or int64 tokens."""
    shape = (count, *spec.shape)
    if spec.vocabulary is not None:
        return torch.from_numpy(rng.integers(spec.vocabulary, size=shape)).to(like.device)
    return torch.from_numpy(rng.standard_normal(shape)).to(like)


def probed_proportions(logits: Tensor, temperature: float) -> Tensor:
    """Return a client's ``(C,)`` class proportions: its model's mean softmax over ``(n, C)`` logits on probes.

    They are float64, on the CPU; ``temperature`` is T_probe.
    """
    return (logits.double() / temperature).softmax(-1).mean(0).cpu()


@dataclass
class ClassProxies:
    """Class proportions of each client, averaged over its first uploads.

    Attributes:
        num_classes: C, the number of classes.
        uploads: T_est, the number of a client's uploads that count; later ones change nothing.
        sums: client -> ``(C,)`` float64 sum of the proportions from its uploads, on the CPU.
        counts: client -> number of uploads in that sum.
    """

    num_classes: int
    uploads: int = 2
    sums: dict[int, Tensor] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    def complete(self, client: int) -> bool:
        """Return whether the client's class proportions are final, because enough of its uploads have been counted."""
        return self.counts.get(client, 0) >= self.uploads

    def add(self, client: int, proportions: Tensor) -> None:
        """Add one upload's ``(C,)`` proportions to a client's estimate; values that are not finite are skipped."""
        if not self.complete(client) and all_finite(proportions):
            before = self.sums.get(client, torch.zeros_like(proportions)).cpu()
            # new mappings, so that a saved state stays as it was
            self.sums = {**self.sums, client: before + proportions}
            self.counts = {**self.counts, client: self.counts.get(client, 0) + 1}

    def of(self, clients: Sequence[int]) -> Tensor:
        """Return the clients' ``(len(clients), C)`` class proportions, uniform for clients without an estimate."""
        unknown = torch.full((self.num_classes,), 1 / self.num_classes, dtype=torch.float64)
        rows = [self.sums[i].cpu() / self.counts[i] if i in self.sums else unknown for i in clients]
        return torch.stack(rows)


class Pool:
    """Labelled inputs, at most ``capacity`` of them; new ones replace the oldest.

    Attributes:
        inputs: ``(n, …)`` inputs, oldest first, or None while the pool is empty.
        labels: ``(n,)`` int64.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.inputs: Tensor | None = None
        self.labels = torch.zeros(0, dtype=torch.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, inputs: Tensor, labels: Tensor) -> None:
        """Append ``(B, …)`` inputs with ``(B,)`` labels, and drop the oldest that no longer fit."""
        held = [] if self.inputs is None else [self.inputs]
        self.inputs = torch.cat([*held, inputs])[-self.capacity :].clone()  # drops the memory of the oldest, too
        self.labels = torch.cat([self.labels, labels.to(self.labels)])[-self.capacity :]

    def draw(self, proportions: Tensor, count: int, rng: np.random.Generator) -> Tensor:
        """Draw each teacher's inputs: first labels by its client's proportions, then random inputs with these labels.

        Labels that the pool does not hold are not drawn, and the others keep their proportions. For a teacher none of
        whose classes are in the pool, all labels that the pool holds are equally likely.

        Args:
            proportions: ``(K, C)`` the teachers' class proportions.
            count: number of inputs for each teacher, drawn with replacement.

        Returns:
            ``(K, count)`` int64 indices in the pool.
        """
        num_classes = proportions.shape[-1]
        labels = self.labels.cpu().numpy()
        by_label = np.argsort(labels.astype(np.int16), kind="stable")  # small numbers are sorted faster
        held = np.bincount(labels, minlength=num_classes)
        first = np.cumsum(held) - held
        indices = np.empty((len(proportions), count), dtype=np.int64)
        for row, shares in zip(indices, proportions.double().cpu().numpy(), strict=True):
            possible = np.where(held > 0, shares, 0.0)
            possible = possible if possible.sum() > 0 else (held > 0).astype(float)
            drawn = rng.choice(num_classes, size=count, p=possible / possible.sum())
            row[:] = by_label[first[drawn] + rng.integers(held[drawn])]
        return torch.from_numpy(indices)
