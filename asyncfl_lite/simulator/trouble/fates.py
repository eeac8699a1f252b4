"""Random trouble for each job, drawn when the job is dispatched."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from asyncfl_lite.base.streams import stream
from asyncfl_lite.simulator.jobs import Job
from asyncfl_lite.simulator.simulation import Delays
from asyncfl_lite.simulator.trouble.jobs import DROPPED_OUT, Fate
from asyncfl_lite.simulator.trouble.settings import Trouble
from asyncfl_lite.simulator.update import Outcome

DAMAGES = ("nan", "inf", "length")
"""Ways in which an update can be damaged."""
KINDS = ("drop_out", "crash", "partial", "duplicate", "damage")
"""Settings that are probabilities per job."""


class Fates:
    """The random streams from which the trouble of each job is drawn, one for each kind of trouble.

    Args:
        trouble: the settings, which say how likely each kind of trouble is.
        delays: the delay law, from which the time to a second arrival is drawn, too.
        seed: the run's seed, which determines the streams.
    """

    def __init__(self, trouble: Trouble, delays: Delays, seed: int) -> None:
        self.trouble, self.delays = trouble, delays
        kinds = [kind for kind in KINDS if getattr(trouble, kind)]
        if trouble.duplicate:
            kinds.append("duplicate delay")
        self.streams = {kind: stream(seed, f"trouble: {kind.replace('_', '-')}") for kind in kinds}

    def draw(self, client: int) -> Fate | None:
        """Draw the trouble of the job that is dispatched now; return None if it has none."""
        fate, trouble, streams = Fate(), self.trouble, self.streams
        for kind, rng in streams.items():
            if kind == "drop_out":
                fate.lost = DROPPED_OUT if rng.random() < trouble.drop_out else ""
            elif kind == "crash":
                fate.crashed = rng.random() < trouble.crash
            elif kind == "partial":
                strikes, share = rng.random(2).tolist()
                fate.share = share if strikes < trouble.partial else 1.0
            elif kind == "damage":
                strikes, way = rng.random(2).tolist()
                fate.damage = DAMAGES[int(way * len(DAMAGES))] if strikes < trouble.damage else ""
            elif kind == "duplicate":
                later = self.delays.draw(client, streams["duplicate delay"])
                fate.again = later if rng.random() < trouble.duplicate else None
        return fate if fate.lost or fate.struck else None

    def pace(self, fate: Fate) -> float:
        """Return the factor by which trouble lengthens or shortens a job's duration."""
        return fate.share * (self.trouble.late if fate.crashed else 1.0)

    def state(self) -> dict[str, Any]:
        """Return the states of the random streams."""
        return {kind: rng.bit_generator.state for kind, rng in self.streams.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Load saved states."""
        for kind, rng in self.streams.items():
            rng.bit_generator.state = state[kind]


def damaged(outcome: Outcome, damage: str) -> Outcome:
    """Return a copy of an outcome with a damaged delta; the original stays unchanged."""
    if outcome.delta is None:  # in a simulation without training
        return outcome
    if damage == "length":
        return dataclasses.replace(outcome, delta=outcome.delta[:-1])
    delta = outcome.delta.clone()
    delta[0] = torch.nan if damage == "nan" else torch.inf
    return dataclasses.replace(outcome, delta=delta)


def second_copy(job: Job, later: float) -> Job:
    """Return a copy of a trained job that arrives ``later`` units of virtual time after the original.

    The copy has no tensors, since the server never reads it.
    """
    tensors: dict[str, Any] = dict.fromkeys(("delta", "buffers", "features", "label_counts", "mean_gradient"))
    outcome = dataclasses.replace(job.done, **tensors)
    return dataclasses.replace(
        job,
        finish_time=job.finish_time + later,
        start=None,
        start_buffers=None,
        control=None,
        correction=None,
        midway=None,
        outcome=outcome,
    )
