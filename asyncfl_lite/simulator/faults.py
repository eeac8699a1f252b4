"""The settings of clients' faults: jobs that are lost, late, cut short, duplicated or damaged, and absent clients.

:mod:`asyncfl_lite.simulator.faulty_simulation` is the clock on which all of this happens.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, model_validator

from asyncfl_lite.base.registry import Registry, Settings

LOST = DROPPED_OUT, LEFT, GIVEN_UP = ("dropped out", "left", "given up")
"""Reasons why a job never arrives: its client dropped out, left before the job was done, or took too long."""
DUPLICATE = "duplicate of a job that had arrived"
"""Reason that is recorded when the server refuses the second copy of an update."""


class Faults(Settings):
    """Failures of clients, and the time after which the server gives up on a job; by default, there are none.

    Each kind of fault that affects single jobs draws from its own random stream for every job, in the order of
    dispatch, even if another kind affects the job, too. So turning one kind on or off does not change the others. Times
    are in the delay law's unit.

    Raises:
        ConfigError: if a setting is invalid; the message names it, the given value and the allowed ones.
    """

    revision: ClassVar[int] = 1
    """Revision of the numbers; increase it when their meaning changes, to mark older results as outdated."""

    dropout: float = Field(0.0, ge=0, lt=1)
    """Probability that a job never returns."""
    crash: float = Field(0.0, ge=0, le=1)
    """Probability that a client crashes during a job and returns late."""
    late: float = Field(3.0, gt=1)
    """Factor on the duration of a job whose client crashes."""
    partial: float = Field(0.0, ge=0, le=1)
    """Probability that a client does only part of a job: a uniformly drawn share of its minibatch steps, at least one.
    The job's duration is the same share of the usual one."""
    duplicate: float = Field(0.0, ge=0, le=1)
    """Probability that an update arrives a second time; the time in between is drawn like a job's duration."""
    damage: float = Field(0.0, ge=0, lt=1)
    """Probability that an update arrives damaged: with a NaN in it, with an infinite number, or one number short."""
    time_out: float | None = Field(None, gt=0)
    """Virtual time after dispatch at which the server gives up on a job; later arrivals are discarded."""
    available: float | None = Field(None, gt=0)
    """Mean of the exponentially distributed length of a client's presence. A client that leaves loses its job."""
    away: float | None = Field(None, gt=0)
    """Mean of the exponentially distributed length of a client's absence."""
    trace: Path | None = None
    """CSV file (client,from,until) of the times at which clients are present, instead of ``available`` and ``away``;
    relative to the working folder."""

    @model_validator(mode="after")
    def _possible(self) -> Faults:
        if (self.available is None) != (self.away is None):
            given, missing = ("available", "away") if self.away is None else ("away", "available")
            raise ValueError(f"{missing}: must be given with {given}")
        if self.trace is not None and self.available is not None:
            raise ValueError("trace: must not be given with available and away, which it replaces")
        if self.time_out is None and (self.dropout or self.comes_and_goes):
            reason = "dropout" if self.dropout else "trace" if self.trace else "available and away"
            raise ValueError(f"time_out: must be given with {reason}, or the server would wait for ever for lost jobs")
        return self

    @property
    def comes_and_goes(self) -> bool:
        """Whether clients come and go during the run."""
        return self.available is not None or self.trace is not None

    @property
    def none(self) -> bool:
        """Whether all kinds of faults are off, and the server never gives up on a job."""
        chances = (self.dropout, self.crash, self.partial, self.duplicate, self.damage)
        return not any(chances) and self.time_out is None and not self.comes_and_goes


class _OneClass(Registry[Faults]):
    """A registry with a single class, which it returns for every name."""

    def get(self, name: object) -> type[Faults]:
        return Faults


FAULTS = _OneClass("faults")
