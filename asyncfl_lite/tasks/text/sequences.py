"""Tasks that predict a token at every position of a sequence, such as the next character."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.tasks.task import Task

IGNORED = -100
"""Label of positions at which nothing is predicted."""


@dataclass(frozen=True)
class SequenceTask(Task):
    """A task in which models predict one of C classes at each of L positions: ``(n, L, C)`` logits, ``(n, L)`` labels.

    A batch's predictions are the rows at the positions that :meth:`counted` selects, sample after sample. This
    selection depends only on the inputs, so it works for unlabelled sets too. Labels are ``IGNORED`` at all other
    positions and nowhere else, which is checked here. So ``predictions(outputs, inputs)`` and ``answers(labels)`` of a
    labelled batch have the same m rows in the same order. A subclass with another rule overrides :meth:`counted`.

    Attributes:
        inputs: ``(n, L)`` int64 token ids.
        labels: ``(n, L)`` int64 in [0, C), or ``IGNORED``.
        padding: token id that fills up a sequence, or None if all sequences are full.
        decode: function from one sequence's ``(L,)`` token ids to text, or None.

    Raises:
        DataError: when labels do not fit :meth:`counted`.
    """

    padding: int | None = None
    decode: Callable[[Tensor], str] | None = None

    def __post_init__(self) -> None:
        for what, inputs, labels in (
            ("labels", self.inputs, self.labels),
            ("test_labels", self.test_inputs, self.test_labels),
        ):
            if labels.shape != inputs.shape[:2]:
                raise DataError(
                    f"{what}: must be one per token, {tuple(inputs.shape[:2])}, got shape {tuple(labels.shape)}"
                )
            if not torch.equal(labels != IGNORED, self.counted(inputs)):
                raise DataError(f"{what}: must be {IGNORED} exactly where nothing is predicted")

    def counted(self, inputs: Tensor) -> Tensor:
        """Return an ``(n, L)`` boolean mask of the tokens whose predictions count: all but padding.

        If ``inputs`` are ``(n, L, E)`` embeddings, nothing is padding.
        """
        if self.padding is None or inputs.is_floating_point():
            return torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device)
        return inputs != self.padding

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return each sample's mean cross-entropy over its labelled positions: ``(n,)`` nats per token."""
        right = outputs.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
        return -_mean_where(labels != IGNORED, right)

    def hits(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return ``(n,)`` accuracies: the share of labelled positions at which the most likely token is right."""
        return _mean_where(labels != IGNORED, (outputs.argmax(-1) == labels).to(outputs.dtype))

    def predictions(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        """Return the ``(m, C)`` logits at the :meth:`counted` positions, sample by sample."""
        return outputs[self.counted(inputs)]

    def prediction_counts(self, inputs: Tensor) -> Tensor:
        """Return ``(n,)`` int64: the number of positions at which something is predicted."""
        return self.counted(inputs).sum(-1)

    def answers(self, labels: Tensor) -> Tensor:
        """Return the ``(m,)`` correct labels for :meth:`predictions`."""
        return labels[labels != IGNORED]

    def class_logits(self, outputs: Tensor) -> Tensor:
        """Return the ``(n, C)`` logits at the last position."""
        return outputs[:, -1]

    def evaluate(self, predict: Callable[[Tensor], Tensor], batch_size: int = 500) -> dict[str, float]:
        """Return the scores on the test set, with ``perplexity`` = exp(loss) if that is the metric."""
        scores = super().evaluate(predict, batch_size)
        if self.metric == "perplexity":
            scores["perplexity"] = torch.tensor(scores["loss"], dtype=torch.float64).exp().item()  # inf, not an error
        return scores


def _mean_where(mask: Tensor, values: Tensor) -> Tensor:
    """Return ``(n,)`` row means of the values that ``mask`` selects; 0 for rows without any."""
    return (values * mask).sum(-1) / mask.sum(-1).clamp(min=1)
