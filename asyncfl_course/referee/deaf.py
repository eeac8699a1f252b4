"""Runs for the referee's second case: FedEcho on 8×8 digits, a control that does nothing, and one that works.

The control should make the server deaf to stragglers, so that their updates count but their predictions are never
stored. The letter's control was in an early edition of lesson 08.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from asyncfl_lite.algorithms.fedbuff import FedBuff
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.lockstep import finish_together
from asyncfl_lite.runs.results import Result
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.jobs import Update

VERSIONS = 180
"""Enough versions for every straggler to report; the first one does after about a hundred."""


class Refusing(dict[int, Tensor]):
    """A store that refuses the predictions of some clients."""

    def __init__(self, refused: set[int]) -> None:
        super().__init__()
        self.refused = refused

    def __setitem__(self, client: int, logits: Tensor) -> None:
        if client not in self.refused:
            super().__setitem__(client, logits)


def config(seed: int, versions: int = VERSIONS) -> Config:
    """Return the configuration of all this case's runs: two steps of distillation per version, as in lesson 08."""
    settings = {"distill_q": 1, "distill_batch_size": 250, "distill_lr": 2.5e-3}
    whole = {"task": "digits", "delay": "fedecho_large", "alpha": 0.1, "algorithm": "fedecho", "settings": settings}
    return Config(**whole, rounds=versions, seed=seed)


def stragglers(session: Run) -> set[int]:
    """Return the clients in the slowest category."""
    return set(np.flatnonzero(session.simulation.delays.category_index == 2).tolist())


def untouched(session: Run) -> None:
    """Leave FedEcho unchanged."""


def offered(session: Run) -> None:
    """Give the server a store that refuses stragglers' predictions: the letter's control."""
    session.algorithm.logits = Refusing(stragglers(session))


def acting(session: Run) -> None:
    """Hide stragglers' models from the method, so that none of their predictions is stored anywhere."""
    server, hear, slow = session.algorithm, session.algorithm.on_receive, stragglers(session)

    def on_receive(update: Update) -> bool:
        return FedBuff.on_receive(server, update) if update.client in slow else hear(update)

    server.on_receive = on_receive


VARIANTS: dict[str, Callable[[Run], None]] = {"fedecho": untouched, "deaf": offered, "deaf-again": acting}
"""Cell -> the change to its server before it runs."""


def trained(cells: Sequence[str], seed: int, versions: int = VERSIONS) -> dict[str, Result]:
    """Run some of the case's cells, named as in :data:`VARIANTS`, in lockstep with one seed."""
    sessions = [Run(config(seed, versions)) for _ in cells]
    for session, cell in zip(sessions, cells, strict=True):
        VARIANTS[cell](session)
    return dict(zip(cells, finish_together(sessions), strict=True))


def settings_of(cell: str) -> dict[str, Any]:
    """Return a cell's configuration, with the group of clients whose predictions its server uses."""
    return config(0).as_dict() | {"hears": "everybody" if cell == "fedecho" else "all but stragglers"}
