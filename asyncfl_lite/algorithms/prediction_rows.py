"""Where samples' predictions lie among those of a whole set: a sequence has one for every token that counts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class PredictionRows:
    """The rows of a set's predictions, sample after sample.

    Args:
        counts: ``(n,)`` int64, how many predictions each sample has.

    Attributes:
        one_each: whether every sample has one, so that rows are samples.
        total: how many rows there are.
    """

    def __init__(self, counts: Tensor) -> None:
        self.one_each = bool((counts == 1).all())
        self.total = int(counts.sum())
        self._counts, self._ends = counts, counts.cumsum(0)

    def of(self, places: Tensor) -> Tensor:
        """Return the rows of samples at ``(b,)`` places, one sample after another."""
        if self.one_each:
            return places
        counts = self._counts[places]
        before = self._ends[places] - counts.cumsum(0)  # a sample's first row, less its rows' first among those chosen
        return before.repeat_interleave(counts) + torch.arange(int(counts.sum()), device=places.device)

    def sizes(self, places: Tensor, sizes: Sequence[int]) -> Sequence[int]:
        """Return how many rows each minibatch has, given how many samples of ``places`` it has."""
        return sizes if self.one_each else [int(counts.sum()) for counts in self._counts[places].split(list(sizes))]
