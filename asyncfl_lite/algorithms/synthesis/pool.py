"""The set D_KD of labelled inputs on which a server distils; the oldest leave first (FedRevive §2.2, steps 2 and 4)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


class Pool:
    """Labelled inputs, at most ``capacity`` of them; new ones replace the oldest.

    Args:
        capacity: largest number of inputs that are kept.

    Attributes:
        inputs: ``(n, …)`` inputs, oldest first, or None while the pool is empty.
        labels: ``(n,)`` int64.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.inputs: Tensor | None = None
        self.labels = torch.zeros(0, dtype=torch.int64)
        self._by_label: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # made when it is needed

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, inputs: Tensor, labels: Tensor) -> None:
        """Append ``(B, …)`` inputs with ``(B,)`` labels, and drop the oldest that no longer fit."""
        kept = max(0, self.capacity - len(labels))
        first = max(0, len(self) - kept)
        inputs, labels = inputs[-self.capacity :], labels[-self.capacity :]
        self.inputs = inputs.clone() if self.inputs is None else torch.cat([self.inputs[first:], inputs])
        self.labels = torch.cat([self.labels[first:], labels.cpu()])
        self._by_label = None

    def draw(self, proportions: Tensor, count: int, rng: np.random.Generator) -> Tensor:
        """Draw each teacher's inputs: first labels by its client's proportions, then random inputs with these labels.

        Labels that the pool does not hold are not drawn, and the others keep their proportions. For a teacher none of
        whose classes are in the pool, all labels that the pool holds are equally likely.

        Args:
            proportions: ``(K, C)`` the teachers' class proportions.
            count: number of inputs for each teacher, drawn with replacement.
            rng: the server's random stream.

        Returns:
            ``(K, count)`` int64 indices in the pool.
        """
        num_classes = proportions.shape[-1]
        by_label, held, first = self._sorted(num_classes)
        places = np.empty((len(proportions), count), dtype=np.int64)
        for row, shares in zip(places, proportions.double().cpu().numpy(), strict=True):
            possible = np.where(held > 0, shares, 0.0)
            possible = possible if possible.sum() > 0 else (held > 0).astype(float)
            drawn = rng.choice(num_classes, size=count, p=possible / possible.sum())
            row[:] = by_label[first[drawn] + rng.integers(held[drawn])]
        return torch.from_numpy(places)

    def _sorted(self, num_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the indices sorted by label, the count of each label, and the position where each label begins."""
        if self._by_label is None:
            labels = self.labels.numpy()
            held = np.bincount(labels, minlength=num_classes)
            self._by_label = np.argsort(labels, kind="stable"), held, np.cumsum(held) - held
        return self._by_label

    def state(self) -> dict[str, Tensor | None]:
        """Return the state that :meth:`restore` loads."""
        return {"inputs": self.inputs, "labels": self.labels}

    def restore(self, state: dict[str, Tensor | None]) -> None:
        """Load a saved state."""
        self.inputs, self.labels = state["inputs"], torch.as_tensor(state["labels"]).cpu()
        self._by_label = None
