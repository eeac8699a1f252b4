"""Jobs that can fail, and the reasons for failures as tables show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from asyncfl_lite.simulator.jobs import Job

LOST = DROPPED_OUT, LEFT, GIVEN_UP = ("dropped out", "left", "given up")
"""Reasons why a job never arrives: its client dropped out, left before the job was done, or took too long."""
DUPLICATE = "duplicate of a job that had arrived"
"""Reason that is recorded when the server refuses the second copy of an update."""


@dataclass(slots=True)
class Fate:
    """The trouble of one job.

    Attributes:
        lost: why the job never arrives, one of :data:`LOST`; empty if it arrives.
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
        """Kinds of trouble that affected an arriving job, named like the settings of :class:`.Trouble`."""
        kinds = {
            "crash": self.crashed,
            "partial": self.share < 1,
            "duplicate": self.again is not None,
            "damage": self.damage,
        }
        return ", ".join(kind for kind, whether in kinds.items() if whether)


@dataclass(slots=True, eq=False, repr=False)
class TroubledJob(Job):
    """A job together with its trouble.

    Attributes:
        fate: the trouble that was drawn for the job, or None; if the job is lost, ``finish_time`` is infinite.
    """

    fate: Fate | None = None

    PARTS: ClassVar[Mapping[str, type]] = {**Job.PARTS, "fate": Fate}

    @property
    def lost(self) -> str:
        """Reason why the job never arrives; empty if it arrives."""
        return "" if self.fate is None else self.fate.lost

    @property
    def share(self) -> float:
        """Fraction of the job's minibatch steps that the client completes."""
        return 1.0 if self.fate is None else self.fate.share

    @property
    def struck(self) -> str:
        """Kinds of trouble that affected the job, as listed in the table of updates."""
        return "" if self.fate is None else self.fate.struck


def troubled_job(job: Job) -> TroubledJob:
    """Check that a job is a :class:`TroubledJob`, as all jobs on this clock are, and return it."""
    assert isinstance(job, TroubledJob)
    return job
