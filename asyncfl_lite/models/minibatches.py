"""Minibatches for gradient steps on the server, as indices of samples and of their predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


class Minibatches:
    """A sequence of minibatches from a set of samples.

    Args:
        inputs: ``(n, …)`` the whole set.
        indices: ``(s,)`` int64 indices into ``inputs``, for all minibatches one after another.
        sizes: number of samples in each minibatch.
        rows: ``(r,)`` int64 indices into the set's predictions, for all minibatches one after another; None if every
            sample has one prediction.
        row_sizes: number of rows in each minibatch; None if there is one per sample.
    """

    def __init__(
        self,
        inputs: Tensor,
        indices: Tensor,
        sizes: Sequence[int],
        rows: Tensor | None = None,
        row_sizes: Sequence[int] | None = None,
    ) -> None:
        self.inputs, self.indices, self.sizes = inputs, indices, list(sizes)
        self.rows = indices if rows is None else rows
        self.row_sizes = self.sizes if row_sizes is None else list(row_sizes)

    def means(self, table: Tensor) -> Tensor:
        """Return, for each of r predictions, the mean of ``table (m,)`` over the predictions in its minibatch."""
        values, sizes = table[self.rows], self.row_sizes
        if len(set(sizes)) == 1:
            means = values.view(-1, sizes[0]).mean(-1)
        else:
            means = torch.stack([part.mean() for part in values.split(sizes)])
        return means.repeat_interleave(torch.tensor(sizes, device=values.device))


class SampleSet:
    """Samples on which a server distils; each has one or several predictions, numbered as rows of one table.

    Args:
        inputs: ``(n, …)``.
        counts: ``(n,)`` int64 number of predictions of each sample: one, or one for every token that counts.

    Attributes:
        one_each: whether every sample has one prediction, so that rows are samples.
        num_rows: number of predictions in the whole set.

    >>> import numpy as np
    >>> samples = SampleSet(torch.zeros(5, 2), torch.ones(5, dtype=torch.int64))
    >>> batches = samples.minibatches(np.random.default_rng(0), size=2, passes=2)
    >>> batches.sizes
    [2, 2, 1, 2, 2, 1]
    >>> sorted(batches.indices[:5].tolist())  # the first pass sees every sample once
    [0, 1, 2, 3, 4]
    """

    def __init__(self, inputs: Tensor, counts: Tensor) -> None:
        self.inputs = inputs
        self.one_each = bool((counts == 1).all())
        self.num_rows = int(counts.sum())
        self._counts, self._ends = counts, counts.cumsum(0)

    def __len__(self) -> int:
        return len(self.inputs)

    def minibatches(
        self, rng: np.random.Generator, *, size: int, passes: int = 1, steps: int | None = None
    ) -> Minibatches:
        """Draw the minibatches of ``passes`` passes over the set, each in a random order.

        Args:
            rng: the random generator, from which one permutation is drawn for each pass.
            size: number of samples in a minibatch; the last one of a pass may have fewer.
            passes: number of times that every sample is seen.
            steps: number of minibatches, in place of ``passes``; the last pass may stop early.
        """
        count = len(self)
        one_pass = [len(batch) for batch in torch.arange(count).split(size)]
        steps = passes * len(one_pass) if steps is None else steps
        passes = math.ceil(steps / len(one_pass))
        sizes = (one_pass * passes)[:steps]
        order = np.concatenate([rng.permutation(count) for _ in range(passes)])
        indices = torch.from_numpy(order[: sum(sizes)]).to(self.inputs.device)
        if self.one_each:
            return Minibatches(self.inputs, indices, sizes)
        row_sizes = [int(counts.sum()) for counts in self._counts[indices].split(sizes)]
        return Minibatches(self.inputs, indices, sizes, self.rows_of(indices), row_sizes)

    def rows_of(self, indices: Tensor) -> Tensor:
        """Return the indices of the rows that predict the ``(b,)`` samples at ``indices``, sample by sample."""
        if self.one_each:
            return indices
        counts = self._counts[indices]
        before = self._ends[indices] - counts.cumsum(0)  # a sample's first row, less the rows of those chosen before it
        return before.repeat_interleave(counts) + torch.arange(int(counts.sum()), device=indices.device)
