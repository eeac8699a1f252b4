"""Client reports: the outcome of a job's training, and the update that a server receives.

Everything that a client reports besides the change of its model is a field of :class:`Report`, and is defined only
there. The trainer sets it, and the update carries it to the method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from asyncfl_lite.base.errors import ConfigError

ON_REQUEST = ("received_accuracy", "trained_accuracy", "features", "label_counts", "mean_gradient")
"""Optional reports that a method may request from clients: attributes of :class:`Report` that are otherwise empty."""


NOT_FINITE = "not finite (NaN or infinite values)"
"""Reason why an update is refused if its numbers have left the finite ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A client's report on its training, besides the change of its model.

    Attributes:
        num_samples: number n_i of the client's samples.
        train_loss, train_accuracy: running means over the last local epoch; NaN if unknown.
        buffers: ``(b,)`` the client's own running statistics after training, or None.
        num_steps: number of minibatch steps that the client took.
        mean_square_loss: running mean of squared sample losses over the last local epoch (Oort).
        received_accuracy: accuracy of the model that the client was sent, on the client's samples; NaN unless the
            method asks for it.
        trained_accuracy: accuracy of the trained model on the client's samples; NaN unless the method asks for it.
        features: ``(2, F)`` means and variances of the trained model's features on the client's samples;
            None unless the method asks for them.
        label_counts: ``(C,)`` int64 samples of each class; None unless the method asks for them.
        mean_gradient: ``(d,)`` gradient, correction included, that the optimiser received, averaged over the client's
            steps; None unless the method asks for it and the optimiser is not plain SGD (where delta determines it).
    """

    num_samples: int = 1
    train_loss: float = math.nan
    train_accuracy: float = math.nan
    buffers: Tensor | None = None
    num_steps: int = 1
    mean_square_loss: float = math.nan
    received_accuracy: float = math.nan
    trained_accuracy: float = math.nan
    features: Tensor | None = None
    label_counts: Tensor | None = None
    mean_gradient: Tensor | None = None


REPORT_FIELDS = tuple(field.name for field in fields(Report))
"""Names of a report's attributes, which an outcome and its update share."""


@dataclass(frozen=True, slots=True)
class Outcome(Report):
    """The result of a job's training.

    Attributes:
        delta: ``(d,)`` trained parameters minus those before training; None in a simulation without training.
    """

    delta: Tensor | None


@dataclass(frozen=True, slots=True)
class Update(Report):
    """An update that a server receives from a client.

    Attributes:
        client: the client that reports.
        delta: ``(d,)`` trained parameters minus those before training ("new minus old"); None in a simulation without
            training.
        start_version: version t_i that the client started from.
        start: ``(d,)`` parameters x_{t_i}; a simulation fills it in. If it is None, the method looks them up in its
            own record of versions.
        start_buffers: ``(b,)`` running statistics before training, or None.
        correction: ``(d,)`` vector that the client added to its gradients, from the method's ``correction_for``.
        duration: virtual time from dispatch to arrival.
        staleness: versions made since t_i; filled in when the update is received.

    >>> import torch
    >>> update = Update(client=3, delta=torch.tensor([0.5, -1.0]), start_version=0, num_samples=20)
    >>> update.num_samples, update.staleness
    (20, 0)
    """

    client: int
    delta: Tensor
    start_version: int
    start: Tensor | None = None
    start_buffers: Tensor | None = None
    correction: Tensor | None = None
    duration: float = math.nan
    staleness: int = 0

    @property
    def buffers_change(self) -> Tensor:
        """The ``(b,)`` change of the client's running statistics.

        Raises:
            ConfigError: if the update lacks the statistics from before or after training.
        """
        if self.buffers is None or self.start_buffers is None:
            raise ConfigError("start_buffers: an update must bring running statistics from before and after training")
        return self.buffers - self.start_buffers


def in_dtype(update: Update, dtype: torch.dtype) -> Update:
    """Return an update with its real-valued tensors in ``dtype``; the update itself if they are."""
    if update.delta.dtype == dtype:
        return update
    values: dict[str, Any] = {part.name: getattr(update, part.name) for part in fields(update)}
    real = {name: value for name, value in values.items() if isinstance(value, Tensor) and value.is_floating_point()}
    changed: dict[str, Any] = {name: value.to(dtype) for name, value in real.items()}
    return replace(update, **changed)


class Receipt(NamedTuple):
    """A server's reply to an update; ``bool(receipt)`` is True if the update made a version.

    Attributes:
        made_version: whether the update made a new version.
        refused: why the update was not used; empty if it was.
    """

    made_version: bool
    refused: str = ""

    def __bool__(self) -> bool:
        return self.made_version


class Rejection(NamedTuple):
    """An update that the server refused, and why.

    Attributes:
        client: the client that sent the update.
        version: the server's version at that time.
        reason: why the update was not used.
    """

    client: int
    version: int
    reason: str
