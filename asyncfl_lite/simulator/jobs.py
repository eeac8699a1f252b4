"""Jobs: a client's work from dispatch to arrival, as the clock, the trainer and the tables see it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

from torch import Tensor

from asyncfl_lite.base.errors import SimulationError
from asyncfl_lite.simulator.update import REPORT_FIELDS, Outcome, Update

T = TypeVar("T")


@dataclass(slots=True)
class Midway:
    """A newer model that reaches a client half-way through its job (FedASMU).

    Attributes:
        model: ``(d,)`` the server's model at that time.
        weight: how far the client moves towards it, 0 to 1.
    """

    model: Tensor
    weight: float


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

    PARTS: ClassVar[Mapping[str, type]] = {"outcome": Outcome, "midway": Midway}
    """Job fields that are dataclasses, with their classes."""

    @property
    def share(self) -> float:
        """Fraction of the job's minibatch steps that the client completes; always 1 unless clients can fail."""
        return 1.0

    @property
    def struck(self) -> str:
        """Kinds of trouble that affected the job, as listed in the table of updates; none unless clients can fail."""
        return ""

    @property
    def sent(self) -> Tensor:
        """The ``(d,)`` parameters that the client was sent.

        Raises:
            SimulationError: in a simulation without training.
        """
        if self.start is None:
            raise SimulationError(f"{self} has no model to start from")
        return self.start

    @property
    def done(self) -> Outcome:
        """The outcome of a trained job.

        Raises:
            SimulationError: if the job is not trained yet.
        """
        if self.outcome is None:
            raise SimulationError(f"{self} is not trained yet")
        return self.outcome

    def update(self, staleness: int) -> Update:
        """Return the update that the server receives if the trained job arrives with this staleness.

        Tensors that belong to other jobs, too, are copied, so that a method may do with an update what it wants.
        """
        outcome = self.done
        return Update(
            self.client,
            outcome.delta,  # type: ignore[arg-type]  # None on a clock without training, where no method reads it
            self.start_version,
            _copied(self.start),
            _copied(self.start_buffers),
            _copied(self.correction),
            self.finish_time - self.dispatched_at,
            staleness,
            **{name: getattr(outcome, name) for name in REPORT_FIELDS},
        )

    def state(self) -> dict[str, Any]:
        """Return the job's fields by name, with those of ``outcome`` and ``midway`` nested; tensors are not copied."""
        values = _fields(self)
        return {**values, **{part: values[part] and _fields(values[part]) for part in self.PARTS}}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Job:
        """Make a job from its :meth:`state`."""
        known = {field.name: state[field.name] for field in fields(cls) if field.name in state}
        return cls(**{**known, **{part: known[part] and made(**known[part]) for part, made in cls.PARTS.items()}})

    def __repr__(self) -> str:
        return (
            f"Job(client {self.client}, dispatched at {self.dispatched_at:g} from version {self.start_version}, "
            f"arrives at {self.finish_time:g})"
        )


def _copied(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.clone()


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


class Rows(Sequence[T]):
    """A view of a list of rows that can be read, but not changed."""

    def __init__(self, rows: list[T]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[T]:
        return iter(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._rows == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._rows)


class Arrival(NamedTuple):
    """One row of the table of updates; times are virtual.

    Attributes:
        version: the server's version after this arrival.
        accepted: False for an update that was refused (not finite, wrong shape, a duplicate).
        refused: why the update was refused; empty if it was accepted.
        trouble: kinds of trouble that affected the job, such as ``crash, partial``; empty if there were none.
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
    trouble: str = ""

    @classmethod
    def of(cls, job: Job, staleness: int, version: int, refused: str = "") -> Arrival:
        """Return the row that a trained job gets in the table of updates when it arrives."""
        outcome = job.done
        return cls(
            job.client,
            job.dispatched_at,
            job.finish_time,
            job.start_version,
            staleness,
            outcome.num_samples,
            outcome.train_loss,
            outcome.train_accuracy,
            not refused,
            version,
            refused,
            job.struck,
        )
