"""Runs on digits, one per seed, of an exhibit's healthy server or of the one with the bug."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd
from torch import Tensor

from asyncfl_course.zoo.exhibits import exhibit
from asyncfl_lite.runs.callbacks import StopRun
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.lockstep import run_many
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.server import Published
from asyncfl_lite.simulator.simulation import Simulation
from asyncfl_lite.testing import AlgorithmCheckError, check_algorithm

DIGITS: dict[str, Any] = {"task": "digits", "rounds": 100, "eval_every": 5}
"""Settings common to all runs; an exhibit's ``config`` overrides them, and the package's defaults fill in the rest."""


def trained(letter: str, seeds: Sequence[int], *, ill: bool) -> pd.DataFrame:
    """Train the healthy server of an exhibit, or the one with the bug, with several seeds.

    With the same seed both have the same data, clients, delays and initial weights.

    Returns:
        Accuracy by version (rows) and seed (columns).
    """
    one = exhibit(letter)
    with one.registered() as name, _sharing_clock(one.shares):
        config = Config(**{**DIGITS, **one.config, "algorithm": one.method})
        if ill:  # only its name is changed, because a configuration made with that name would get other defaults
            config = Config(**{**config.as_dict(), "algorithm": name})
        configs = [config.with_seed(seed) for seed in seeds]
        found = [resumed(each) for each in configs] if one.resumed else [each.curve for each in run_many(configs)]
    curves = [curve.drop_duplicates("version").set_index("version")["accuracy"] for curve in found]
    return pd.concat(curves, axis=1, keys=[f"seed {seed}" for seed in seeds])


class _Shared(Published):
    """The server's own tensors, in which clients in flight see whatever the server writes."""

    def current(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return the server's model, statistics and control variate, not copies of them."""
        return self.server.x, self.server.buffers, self.server.control_sent()


@contextmanager
def _sharing_clock(shares: bool) -> Iterator[None]:
    """Inside, if ``shares``, clocks send clients the server's own tensors."""
    usual = Simulation.published_class
    Simulation.published_class = _Shared if shares else usual
    try:
        yield
    finally:
        Simulation.published_class = usual


def resumed(config: Config) -> pd.DataFrame:
    """Return the curve of a run that is stopped half-way, saved, and continued by a second run."""
    saved: list[dict[str, Any]] = []

    def stop(run: Run) -> None:
        if run.algorithm.version == config.rounds // 2:
            saved.append(run.state())
            raise StopRun("half-way")

    Run(config, on_version=stop).finish()
    again = Run(config)
    again.restore(saved[0])
    return again.finish().curve


def caught(letter: str, **settings: Any) -> list[str]:
    """Return which rules of :func:`~asyncfl_lite.testing.check_algorithm` the server with the bug breaks.

    Its settings take the place of the exhibit's usual ones.
    """
    one = exhibit(letter)
    try:
        check_algorithm(one.ill_cls(**(settings or one.settings[0])))
    except AlgorithmCheckError as error:
        return list(error.failures)
    return []
