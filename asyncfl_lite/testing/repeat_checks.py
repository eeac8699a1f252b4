"""Checks that a run can be repeated and resumed: saving, seeds, random numbers."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asyncfl_lite.algorithms.base import Algorithm
from asyncfl_lite.base.streams import GlobalStates, untouched_generators
from asyncfl_lite.runs.checkpoints import load_checkpoint, save_checkpoint
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.tables import who_did_what
from asyncfl_lite.simulator.update import Receipt, Update
from asyncfl_lite.testing.candidate import Candidate, expect, simulate
from asyncfl_lite.testing.values import copied, difference


def check_saved_state(make: Candidate) -> None:
    """Check that a state returned by ``state()`` does not change while the method continues."""
    run, states = make.run(), []

    def watch(update: Update, receive: Callable[[Update], Receipt]) -> Receipt:
        answer = receive(update)
        state = {name: value for name, value in run.algorithm.state().items() if name not in ("x", "buffers")}
        states.append((state, copied(state)))  # check_in_place covers the model
        return answer

    simulate(run, watch)
    found = next((place for state, before in states if (place := difference(before, state, "state"))), None)
    expect(
        found is None,
        "a saved state must not change while the method continues, so replace tensors, mappings and lists "
        f"and do not write into them; before and now, {found}",
    )


def check_save_and_restore(make: Candidate) -> None:
    """Check that a run resumed from a checkpoint after any arrival ends with the same bits as an uninterrupted one."""
    whole = make.run()
    with tempfile.TemporaryDirectory() as folder:
        paths: list[Path] = []

        def save(simulation: object, arrival: object) -> None:
            paths.append(Path(folder) / f"{len(paths)}.pt")
            save_checkpoint(paths[-1], whole.identity, whole.state())

        whole.simulation.observers.append(save)
        simulate(whole)
        for number, path in enumerate(paths, start=1):
            again = make.run()
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message=".*checkpoint not used")
                saved = load_checkpoint(path, again.identity)
                assert saved is not None, "a checkpoint that was just written is there"
                again.restore(saved)
            simulate(again)
            found = difference(_end(whole), _end(again), "run")
            hint = found and _forgotten(make, whole.algorithm)
            expect(
                found is None,
                "state() must contain everything that changes, so that an interrupted run continues bit for "
                "bit; uninterrupted and "
                f"resumed after arrival {number}, {found}{hint}",
            )


def _end(run: Run) -> dict[str, Any]:
    """Return a run's final state and its updates, which must be equal in a repeated run."""
    return {
        "state": run.algorithm.state(),
        "rng": run.server_rng.bit_generator.state,
        "updates": who_did_what(run.simulation, run.parts).updates.astype(float).to_numpy().tolist(),
    }


def _forgotten(make: Candidate, end: Algorithm) -> str:
    """Return a hint that names attributes that changed in a run and are not saved."""
    begun, saved = vars(make.run().algorithm), {*end.state_names, "rejections", "_context"}
    names = [name for name in sorted(vars(end)) if name not in saved]
    changed = [name for name in names if name not in begun or difference(begun[name], vars(end)[name], "")]
    return f"; changed, and not in state_names: {', '.join(changed)}" if changed else ""


def check_same_seed(make: Candidate) -> None:
    """Check that two runs with the same seed end with the same bits."""
    found = difference(_end(_simulated(make)), _end(_simulated(make)), "run")
    expect(
        found is None,
        f"two runs of one seed must end the same, or nothing can be reproduced; in one and the other, {found}",
    )


def _simulated(make: Candidate) -> Run:
    with untouched_generators():  # so that all runs find them in the same state; check_randomness covers them
        run = make.run()
        simulate(run)
    return run


def check_randomness(make: Candidate) -> None:
    """Check that random numbers come only from ``context.rng``, and that the global generators stay as they are."""
    before = GlobalStates.now()
    simulate(make.run())
    touched = before.drawn()
    expect(
        not touched,
        f"random numbers must come from context.rng, or a run does not follow from its seed; drawn from: {touched}",
    )
