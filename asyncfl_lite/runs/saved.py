"""A run that saves itself: its state, its checkpoints, and the times at which it writes them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from asyncfl_lite.base.claims import alone_at
from asyncfl_lite.base.devices import torch_threads
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
from asyncfl_lite.runs.meaning import changed_versions
from asyncfl_lite.runs.results import Result
from asyncfl_lite.simulator.jobs import Arrival, Rows
from asyncfl_lite.simulator.simulation import Simulation
from asyncfl_lite.tasks import Task


class SavedRun(JoinedRun):
    """A run that can be saved and continued, with its parts and its curve so far.

    Attributes:
        ran_under: versions of the libraries under which the run was begun and, after them, those under which it was
            continued; see :func:`.versions`. They are empty if a checkpoint of earlier code does not say them.
        claim: closes the run's claim of its checkpoint's path; None if it has no claim.

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
        with torch_threads(given.config.threads):
            super().__init__(given)
        self._rows: list[Mapping[str, float]] = []
        self.simulation.observers.append(self._save_in_time)
        self.saved_at = time.monotonic()
        self.ran_under = [self.versions]
        self.claim: ExitStack | None = None
        self._blocks = 0

    @contextmanager
    def alone(self) -> Iterator[Self]:
        """Have the checkpoint's path for this run alone inside the block, and yield the run; blocks may be nested.

        Raises:
            ResultError: if another run has it; see :func:`.alone_at`.
        """
        if self.claim is None and self.checkpoint is not None:
            with ExitStack() as claim:
                claim.enter_context(alone_at(self.checkpoint))
                check_place(self.checkpoint, self.identity)  # another run may have been there since this one was made
                self.claim = claim.pop_all()
        self._blocks += 1
        try:
            yield self
        finally:
            self._blocks -= 1
            if not self._blocks:
                self.release()

    def release(self) -> None:
        """Let other runs have the checkpoint's path."""
        if self.claim is not None:
            self.claim.close()
            self.claim = None

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
            save_checkpoint(self.checkpoint, self.identity, {**self.state(), "ran_under": self.ran_under})
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
                self._continue_after(saved.get("ran_under", [{}]))  # checkpoints of earlier code do not say it
        except AsyncFLError:
            raise
        except DAMAGE_IN_TORCH as error:  # its digest is right, so it was written like this
            what = f"{type(error).__name__}: {reason(error)}"
            raise ResultError(f"{self.checkpoint}: does not hold this run's state ({what}); remove it") from None
        return saved is not None

    def _continue_after(self, then: list[dict[str, str]]) -> None:
        """Note the versions under which the run continues, and warn if they are not those that it had before."""
        self.ran_under = then if then[-1] == self.versions else [*then, self.versions]
        if told := changed_versions(then[-1], self.versions):
            warnings.warn(f"{self.checkpoint}: the run continues under other versions ({told}), so its numbers may be "
                          "rounded differently from here on; its result says so", stacklevel=4)  # fmt: skip

    def keep(self, result: Result, *, force: bool = False, weights: bool = True) -> None:
        """Write the result into the folder of the run's checkpoint, if there is one, and delete the checkpoint.

        Raises:
            ResultError: when the result cannot be written; a note says where the run is saved in its place.
        """
        if self.checkpoint is not None:
            try:
                result.write(self.checkpoint.parent, force=force, weights=weights)
            except ResultError as error:
                error.add_note(self.saved())
                raise
            self.remove_checkpoints()
            self.checkpoint = None  # nothing is left to be saved

    def saved(self) -> str:
        """Save a run that cannot go on, and return one line that says where it is kept, or why it is not."""
        if self.checkpoint is None:
            return "nothing is kept, as the run has no checkpoint=FILE to save itself in"
        try:
            self.save()
        except ResultError as error:
            return f"the run could not be saved ({error})"
        return f"the run is saved in {self.checkpoint}, from which the same run continues"

    def remove_checkpoints(self) -> None:
        """Delete the run's checkpoints, which are not needed once its result is kept."""
        if self.checkpoint is not None:
            remove_checkpoints(self.checkpoint, self.identity)
