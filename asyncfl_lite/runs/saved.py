"""A run that saves itself: its state, its checkpoints, and the times at which it writes them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from asyncfl_lite.base.errors import AsyncFLError, ResultError, reason
from asyncfl_lite.base.files import DAMAGE_IN_TORCH, as_path
from asyncfl_lite.runs.checkpoints import (
    check_place,
    identity_of,
    load_checkpoint,
    remove_checkpoints,
    save_checkpoint,
)
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.joined import Given, JoinedRun, Weights
from asyncfl_lite.runs.results import Result
from asyncfl_lite.simulator.jobs import Arrival, Rows
from asyncfl_lite.simulator.simulation import Simulation
from asyncfl_lite.tasks import Task


class SavedRun(JoinedRun):
    """A run that can be saved and continued, with its parts and its curve so far.

    Raises:
        ResultError: before anything is loaded, if ``checkpoint`` names a file that is not this run's checkpoint.
    """

    def __init__(
        self,
        config: Config | Mapping[str, Any],
        task: Task | None = None,
        checkpoint: str | Path | None = None,
        weights: Weights | None = None,
    ) -> None:
        given = Given.of(config, task, weights)
        self.identity = identity_of(given.config, given.data)
        self.checkpoint = None if checkpoint is None else as_path(checkpoint, "checkpoint").resolve()
        if self.checkpoint is not None:
            check_place(self.checkpoint, self.identity)
        super().__init__(given)
        self._rows: list[Mapping[str, float]] = []
        self.simulation.observers.append(self._save_in_time)
        self.saved_at = time.monotonic()

    @property
    def curve_rows(self) -> Rows[Mapping[str, float]]:
        """The rows of the run's curve so far."""
        return Rows(self._rows)

    def state(self) -> dict[str, Any]:
        """Return the run's changing state as tensors and plain values; the configuration determines the rest."""
        return {
            "algorithm": self.algorithm.state(),
            "simulation": self.simulation.state(),
            "server_rng": self.server_rng.bit_generator.state,
            "curve": [dict(row) for row in self._rows],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state that :meth:`state` returned."""
        self.algorithm.restore(state["algorithm"])
        self.simulation.restore(state["simulation"])
        self.server_rng.bit_generator.state = state["server_rng"]
        self._rows = [MappingProxyType(row) for row in state["curve"]]

    def save(self) -> None:
        """Save the run now, if it has a checkpoint path."""
        if self.checkpoint is not None:
            save_checkpoint(self.checkpoint, self.identity, self.state())
        self.saved_at = time.monotonic()

    def _save_in_time(self, simulation: Simulation, arrival: Arrival) -> None:
        """Save the run if enough time has passed since the last save."""
        seconds = self.config.checkpoint_seconds
        if seconds is not None and time.monotonic() - self.saved_at >= seconds:
            self.save()

    def resume(self) -> bool:
        """Load the state from the run's checkpoint; return whether there was a usable checkpoint."""
        if self.checkpoint is None:
            return False
        saved = load_checkpoint(self.checkpoint, self.identity, self.config.device)
        try:
            if saved is not None:
                self.restore(saved)
        except AsyncFLError:
            raise
        except DAMAGE_IN_TORCH as error:  # its digest is right, so it was written like this
            what = f"{type(error).__name__}: {reason(error)}"
            raise ResultError(f"{self.checkpoint}: does not hold this run's state ({what}); remove it") from None
        return saved is not None

    def keep(self, result: Result, *, force: bool = False, weights: bool = True) -> None:
        """Write the result into the folder of the run's checkpoint, if there is one, and delete the checkpoint."""
        if self.checkpoint is not None:
            result.save(self.checkpoint.parent, force=force, weights=weights)
            self.remove_checkpoints()
            self.checkpoint = None  # nothing is left to be saved

    def remove_checkpoints(self) -> None:
        """Delete the run's checkpoints, which are not needed once its result is kept."""
        if self.checkpoint is not None:
            remove_checkpoints(self.checkpoint, self.identity)
