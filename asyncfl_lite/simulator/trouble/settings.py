"""What can go wrong at clients, as settings."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, model_validator

from asyncfl_lite.base.registry import Registry, Settings


class Trouble(Settings):
    """What goes wrong at clients, and how long the server waits; by default nothing does.

    Each kind draws from a random stream of its own, once for each job in the order of dispatch, whether another kind
    strikes too or not. So switching one on or off leaves the others as they were. Times are in the delay law's unit.

    Raises:
        ConfigError: one line that names the setting, what was given and what is allowed.
    """

    revision: ClassVar[int] = 1
    """Raised when its numbers change in meaning, so that older results count as stale."""

    drop_out: float = Field(0.0, ge=0, lt=1)
    """Chance that a job never returns."""
    crash: float = Field(0.0, ge=0, le=1)
    """Chance that a client crashes while it works, and returns late."""
    late: float = Field(3.0, gt=1)
    """How many times its usual duration such a job takes."""
    partial: float = Field(0.0, ge=0, le=1)
    """Chance that a job does only part of its local work: a uniformly drawn share of its minibatch steps, at least
    one. Its duration is that share of the usual."""
    duplicate: float = Field(0.0, ge=0, le=1)
    """Chance that an update arrives a second time, after as long again as another job of its client would take."""
    damage: float = Field(0.0, ge=0, lt=1)
    """Chance that an update arrives broken: with a NaN in it, with an infinite number, or one number short."""
    time_out: float | None = Field(None, gt=0)
    """Virtual time after dispatch at which the server gives up on a job; what arrives later is discarded."""
    available: float | None = Field(None, gt=0)
    """Mean time that a client is there at a stretch, exponential. A client that leaves loses its job."""
    away: float | None = Field(None, gt=0)
    """Mean time for which it is away then, exponential."""
    trace: Path | None = None
    """CSV file (client,from,until) of the times at which clients are there, in place of ``available`` and ``away``;
    relative to the working folder."""

    @model_validator(mode="after")
    def _possible(self) -> Trouble:
        if (self.available is None) != (self.away is None):
            given, missing = ("available", "away") if self.away is None else ("away", "available")
            raise ValueError(f"{missing}: must be given with {given}")
        if self.trace is not None and self.available is not None:
            raise ValueError("trace: must not be given with available and away, which it takes the place of")
        if self.time_out is None and (self.drop_out or self.comes_and_goes):
            reason = "drop_out" if self.drop_out else "trace" if self.trace else "available and away"
            raise ValueError(f"time_out: must be given with {reason}, or the server would wait for ever for lost jobs")
        return self

    @property
    def comes_and_goes(self) -> bool:
        """Whether clients come and go."""
        return self.available is not None or self.trace is not None

    @property
    def none(self) -> bool:
        """Whether nothing goes wrong at all."""
        chances = (self.drop_out, self.crash, self.partial, self.duplicate, self.damage)
        return not any(chances) and self.time_out is None and not self.comes_and_goes


class _OneClass(Registry[Trouble]):
    """A registry of one class, which is there by itself and chosen by no name."""

    def get(self, name: object) -> type[Trouble]:
        """Return the class."""
        return Trouble


TROUBLE = _OneClass("trouble")
