"""What travels on the clock: jobs, the reports of their clients, and the updates that a server receives; their tables.

A client's work is a :class:`Job` from dispatch to arrival. Training gives it an :class:`Outcome`, which becomes the
:class:`Update` that the server receives, and a row of the table of updates (:class:`Arrival`). Everything that a client
reports besides the change of its model is a field of :class:`Report`, and is defined only there. The trainer sets it,
and the update carries it to the method.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import compress
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from asyncfl_lite.base.errors import ConfigError, SimulationError

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
        """The ``(b,)`` change of the client's running statistics."""
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


@dataclass(slots=True)
class Midway:
    """A newer model that reaches a client half-way through its job (FedASMU).

    Attributes:
        model: ``(d,)`` the server's model at that time.
        weight: how far the client moves towards it, 0 to 1.
    """

    model: Tensor
    weight: float


@dataclass(slots=True)
class Fate:
    """The faults that strike one job, in a run in which clients can fail.

    Attributes:
        lost: why the job never arrives, one of :data:`~asyncfl_lite.simulator.faults.LOST`; empty if it arrives.
        crashed: whether the client crashes during the job and returns late.
        share: the fraction of the job's minibatch steps that the client completes, 0 to 1.
        again: virtual time between the update's arrival and that of a second copy; None if there is no second copy.
        damage: how the update is damaged: ``nan``, ``inf`` or ``length``; empty if it is not.
    """

    lost: str = ""
    crashed: bool = False
    share: float = 1.0
    again: float | None = None
    damage: str = ""

    @property
    def struck(self) -> str:
        """Kinds of faults that affected an arriving job, named like their settings."""
        strikes = self.crashed, self.share < 1, self.again is not None, self.damage
        return ", ".join(compress(("crash", "partial", "duplicate", "damage"), strikes))


CALLED_OFF, STILL_TRAINING = "called off", "in flight"
"""Reasons why a job has not arrived: its round ended first, or the run did."""


@dataclass(slots=True, eq=False)
class Job:
    """One client's work from dispatch to arrival.

    Attributes:
        finish_time: virtual time of arrival.
        sequence_no: how many jobs were dispatched before this one; breaks ties.
        client: the client that trains.
        number: how many jobs this client had before; it identifies the random stream of the job's batches.
        start_version: version that the client was sent.
        dispatched_at: virtual time of dispatch.
        start: ``(d,)`` that version's parameters, shared by all jobs that started from it.
        start_buffers: ``(b,)`` that version's running statistics.
        control: ``(d,)`` the server's control variate, sent with that version (FedAC), or None.
        correction: ``(d,)`` vector that the client computes from ``control`` and adds to every gradient (or once, at
            the end, if the method says ``correction_once``); set when the job is trained.
        midway: the newer model that the client merges half-way, or None.
        outcome: the result of training; None until the job is trained.
        duration: virtual time that the client needs for the job.
        fate: the faults that strike the job, or None; if the job is lost, ``finish_time`` is infinite.
    """

    finish_time: float
    sequence_no: int
    client: int
    number: int
    start_version: int
    dispatched_at: float
    start: Tensor | None
    start_buffers: Tensor | None = None
    control: Tensor | None = None
    correction: Tensor | None = None
    midway: Midway | None = None
    outcome: Outcome | None = None
    duration: float = math.nan
    fate: Fate | None = None

    PARTS: ClassVar[Mapping[str, type]] = {"outcome": Outcome, "midway": Midway, "fate": Fate}
    """Job fields that are dataclasses, with their classes."""

    @property
    def sent(self) -> Tensor:
        """The ``(d,)`` parameters that the client was sent; an error in a simulation without training."""
        if self.start is None:
            raise SimulationError(f"{self} has no model to start from")
        return self.start

    @property
    def done(self) -> Outcome:
        """The outcome of a trained job; an error if it is not trained yet."""
        if self.outcome is None:
            raise SimulationError(f"{self} is not trained yet")
        return self.outcome

    def update(self, staleness: int, *, shares: bool = False) -> Update:
        """Return the update that the server receives if the trained job arrives with this staleness.

        Tensors that belong to other jobs, too, are copied, so that a method may do with an update what it wants. A
        method that only reads them ``shares`` them instead.
        """
        outcome, took = self.done, self.finish_time - self.dispatched_at
        delta: Any = outcome.delta  # None on a clock without training, where no method reads it
        shared = self.start, self.start_buffers, self.correction
        start, buffers, correction = shared if shares else (None if part is None else part.clone() for part in shared)
        report = {name: getattr(outcome, name) for name in REPORT_FIELDS}
        return Update(self.client, delta, self.start_version, start, buffers, correction, took, staleness, **report)

    def state(self) -> dict[str, Any]:
        """Return the job's fields by name, with those of ``outcome`` and ``midway`` nested; tensors are not copied."""
        values = _fields(self)
        return {**values, **{part: values[part] and _fields(values[part]) for part in self.PARTS}}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Job:
        """Make a job from its :meth:`state`."""
        known = {field.name: state[field.name] for field in fields(cls) if field.name in state}
        return cls(**{**known, **{part: made(**known[part]) for part, made in cls.PARTS.items() if known.get(part)}})

    def __repr__(self) -> str:
        return (
            f"Job(client {self.client}, dispatched at {self.dispatched_at:g} from version {self.start_version}, "
            f"arrives at {self.finish_time:g})"
        )


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


class Arrival(NamedTuple):
    """One row of the table of updates; times are virtual.

    Attributes:
        version: the server's version after this arrival.
        accepted: False for an update that was refused (not finite, wrong shape, a duplicate).
        refused: why the update was refused; empty if it was accepted.
        faults: kinds of faults that affected the job, such as ``crash, partial``; empty if there were none.
    """

    client: int
    dispatched_at: float
    arrived_at: float
    start_version: int
    staleness: int
    num_samples: int
    train_loss: float
    train_accuracy: float
    accepted: bool
    version: int
    refused: str = ""
    faults: str = ""

    @classmethod
    def of(cls, job: Job, staleness: int, version: int, refused: str = "") -> Arrival:
        """Return the row that a trained job gets in the table of updates when it arrives."""
        sent = job.client, job.dispatched_at, job.finish_time, job.start_version
        trained = job.done.num_samples, job.done.train_loss, job.done.train_accuracy
        faults = "" if job.fate is None else job.fate.struck
        return cls(*sent, staleness, *trained, not refused, version, refused, faults)


IN_FLIGHT = ["client", "dispatched_at", "start_version", "called_off_at", "why"]
CLIENTS = ["client", "num_samples", "category"]
"""Columns of two tables: jobs that did not arrive, and clients."""


class Schedule(NamedTuple):
    """Tables that say when each client trained, and from which version.

    Attributes:
        updates, in_flight, clients: the tables of the same names in a :class:`~asyncfl_lite.runs.results.Result`.
    """

    updates: pd.DataFrame
    in_flight: pd.DataFrame
    clients: pd.DataFrame

    @property
    def digest(self) -> str:
        """Hash (64 hexadecimal digits) of when each client was dispatched and arrived, and of its start version.

        Times are rounded to nine significant digits, so that the digest is the same on machines that round differently,
        although accuracies may differ there.
        """
        columns = self.updates[["client", "dispatched_at", "arrived_at", "start_version"]]
        return hashlib.sha256(columns.to_csv(index=False, float_format="%.9g").encode()).hexdigest()


def who_did_what(simulation: Any, parts: Sequence[np.ndarray]) -> Schedule:
    """Return tables of a simulation's arrivals, of its jobs that did not arrive, and of its clients."""
    updates = pd.DataFrame(list(simulation.arrivals), columns=Arrival._fields)
    for column in ("refused", "faults"):  # an empty text becomes NaN, as when the table is read from a file
        updates[column] = [text or math.nan for text in updates[column]]
    still = [(job.client, job.dispatched_at, job.start_version, math.nan, STILL_TRAINING) for job in simulation.jobs]
    in_flight = pd.DataFrame([*simulation.ended, *still], columns=IN_FLIGHT)
    sizes = [len(part) for part in parts]
    categories = getattr(simulation.delays, "categories", None) or [""] * len(sizes)  # a law need not have them
    clients = pd.DataFrame(dict(zip(CLIENTS, (range(len(sizes)), sizes, categories), strict=True)))
    return Schedule(updates, in_flight, clients)
