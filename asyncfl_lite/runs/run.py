"""One run from a configuration to a result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from asyncfl_lite.base.claims import alone_at
from asyncfl_lite.base.devices import torch_threads, usual_torch
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.streams import told_of_draws
from asyncfl_lite.runs.callbacks import Callbacks, OnEvaluate, OnVersion, StopRun
from asyncfl_lite.runs.checkpoints import identity_of, remove_others
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.finished import result_of
from asyncfl_lite.runs.interrupts import saved_when_interrupted
from asyncfl_lite.runs.joined import Weights
from asyncfl_lite.runs.progress import Progress, Shown, check_shown
from asyncfl_lite.runs.records import CHECKPOINT, check_free
from asyncfl_lite.runs.results import Result, load_complete
from asyncfl_lite.runs.saved import SavedRun
from asyncfl_lite.runs.sources import data_of
from asyncfl_lite.simulator.simulation import Simulation
from asyncfl_lite.tasks import Task


def run(
    config: Config | Mapping[str, Any],
    *,
    task: Task | None = None,
    checkpoint: str | Path | None = None,
    weights: Weights | None = None,
    progress: Shown = False,
    on_version: OnVersion | None = None,
    on_evaluate: OnEvaluate | None = None,
) -> Result:
    """Run ``config`` from beginning to end and return the result.

    The same configuration gives the same bits on the same machine with the same builds of its libraries. On other
    machines, the schedule (which client trains when, and on which version) is the same, unless it depends on weights,
    as it does if updates are refused or clients are chosen by their losses. But sums are rounded differently there, and
    with large learning rates the system is chaotic: a difference in the seventh decimal at version 10 had grown to five
    points of accuracy by version 80. Accuracies reproduce as distributions over seeds.

    Args:
        config: the configuration to run, or a plain dict of settings.
        task: your own data, instead of the task that ``config.task`` names.
        checkpoint: file in which the run is saved, every ``config.checkpoint_every`` versions and every
            ``config.checkpoint_seconds`` seconds, and from which it continues if it was interrupted. The previous
            checkpoint is kept beside it; both are removed when the run is finished. A file that is not this run's
            checkpoint is left as it is, and the run does not begin.
        weights: weights to start from, instead of random ones: a file, a state dict, a module, or a saved result's
            folder. This is another way to write ``initial="weights"``, and the configuration of the result says so.
        progress: True shows a bar that counts versions; ``"lines"`` prints lines of accuracies to stderr.
        on_version: function that is called with the :class:`Run` after every version.
        on_evaluate: function that is called with the :class:`Run` and the new row of its curve (``version``, ``time``,
            ``updates``, ``accuracy``, ``loss`` and the task's own scores) after every evaluation, including the first,
            of version 0, and the last. Either callback can end the run by raising :class:`StopRun`; neither may change
            the run. If a callback raises any other exception, the run is first saved in its ``checkpoint``, and a note
            on the exception says so.

    Returns:
        The result: ``summary``, ``curve``, ``updates``, ``plot()``, ``model()``, ``save(folder)``.

    Example: with a buffer of five, ten versions take fifty updates. The model is tested at versions 0, 5 and 10.

    >>> from asyncfl_lite import Config, run
    >>> result = run(Config(task="digits", algorithm="fedbuff", buffer_size=5, rounds=10, eval_every=5))
    >>> result.summary["versions"], result.summary["client_updates"], result.summary["max_staleness"]
    (10, 50, 7)
    >>> result.curve["version"].tolist()
    [0, 5, 10]
    >>> result.updates[["client", "start_version", "staleness"]].tail(2).values.tolist()
    [[14, 6, 3], [37, 2, 7]]
    """
    check_shown(progress)
    started = Run(config, task, checkpoint, weights, on_version=on_version, on_evaluate=on_evaluate)
    with started.alone():
        result = started.finish(progress=progress)
        started.remove_checkpoints()
    return result


def run_in(folder: str | Path, config: Config, *, progress: Shown = False, force: bool = False) -> Result:
    """Return the finished result of ``config`` in ``folder``; if there is none, run it there first.

    A run that was interrupted continues from the checkpoint that it left in the folder.

    Args:
        folder: folder of the result; it is made if it is missing.
        config: the configuration to run.
        progress: True shows a bar that counts versions; ``"lines"`` prints lines of accuracies to stderr.
        force: replace the result or the checkpoint of another run that is in the folder.

    Raises:
        ResultError: before anything is run, when the folder holds another run's result or checkpoint and ``force`` is
            False, or files of the same names that this package did not write, or when another run goes on in it.
    """
    result = load_complete(folder, config)
    if result is None:
        with run_at(folder, config, force=force).alone() as started:
            result = started.finish(lambda result: started.keep(result, force=force), progress=progress)
    return result


def run_at(
    folder: str | Path, config: Config, task: Task | None = None, *, force: bool = False, **callbacks: Any
) -> Run:
    """Make a run of ``config``, not yet started, that saves itself in ``folder``; see :func:`run_in`.

    The run has the folder for itself from here to the end of its block :meth:`.SavedRun.alone`.
    """
    data = data_of(config, task)
    checkpoint = Path(folder).resolve() / CHECKPOINT
    with ExitStack() as claim:
        claim.enter_context(alone_at(checkpoint))
        check_free(folder, config, None if task is None else task.name, data, force=force)
        if force:
            remove_others(checkpoint, identity_of(config, data))
        made = Run(config, task, checkpoint, **callbacks)
        made.claim = claim.pop_all()
    return made


class Run(SavedRun):
    """One run with all its parts: task, model, method, trainer, simulation.

    Attributes:
        parts: client -> ``(n_i,)`` indices of its samples in the task's training set.
        data: digests of the data that the run reads but the configuration does not contain; see :func:`.data_of`.
        identity: the identity that a checkpoint of this run has; see :func:`.identity_of`.
        simulation: the clock; ``simulation.steps()`` walks through the run job by job.
        algorithm: the method; ``algorithm.version`` is the version and ``algorithm.x`` the global model.
        compute: function that does the computations that the server asks for; replaced if several runs go in lockstep.
        curve_rows: the rows of the run's curve so far, which can be read but not changed.
        versions: versions of the installed libraries; see :func:`.versions`.
        stopped: the reason why a callback stopped the run, or None.

    >>> from asyncfl_lite import Config, Run
    >>> one = Run(Config(task="digits", algorithm="fedbuff", rounds=2))
    >>> one.algorithm.version, len(one.parts)
    (0, 50)
    >>> one.finish().summary["versions"]
    2
    """

    @usual_torch()
    def __init__(
        self,
        config: Config | Mapping[str, Any],
        task: Task | None = None,
        checkpoint: str | Path | None = None,
        weights: Weights | None = None,
        *,
        on_version: OnVersion | None = None,
        on_evaluate: OnEvaluate | None = None,
    ) -> None:
        self.callbacks = Callbacks(on_version, on_evaluate)
        self.stopped: str | None = None
        super().__init__(config, task, checkpoint, weights)
        self.progress: Progress | None = None
        self.simulation.version_observers.append(self._made_version)
        self.simulation.waiting_observers.append(self._made_none)

    def begin(self) -> None:
        """Continue from the checkpoint if there is one, else evaluate and record the initial model."""
        if self.config.checkpoint_every is not None and self.checkpoint is None:
            raise ConfigError(
                "checkpoint_every: needs a file to save to: --out FOLDER, in Python run(config, checkpoint='run.pt')"
            )
        if not self.resume():
            self._record()

    @usual_torch()
    def finish(self, ended: Callable[[Result], None] | None = None, *, progress: Shown = False) -> Result:
        """Run to the end, pass the result to ``ended`` while interrupts still wait, and return it."""
        wall, processor = time.perf_counter(), time.process_time()
        with (
            self.alone(),
            saved_when_interrupted([self]) as stops,
            torch_threads(self.config.threads),
            Progress(progress, [self]),
            told_of_draws(self.callbacks.none),
        ):
            try:
                self.begin()
                self.simulation.run(stops.allowed()(self.train))
            except StopRun as stop:
                self.stop(stop)
            result = self.result(time.perf_counter() - wall, time.process_time() - processor)
            if ended is not None:
                ended(result)
            return result

    def stop(self, why: StopRun) -> None:
        """Record that a callback has stopped the run."""
        self.stopped = str(why) or "by a callback"

    def result(self, seconds: float, cpu_seconds: float) -> Result:
        """Make the result of a run that has ended, given the seconds it took."""
        if self.curve_rows[-1]["time"] != self.simulation.clock:
            with suppress(StopRun):  # the run has ended anyway
                self._record()
        self.check_data()
        return result_of(self, seconds, cpu_seconds, self.stopped)

    def _made_version(self, simulation: Simulation) -> None:
        """Evaluate a new version and save the run, each if it is due; then call the callbacks."""
        version, every = simulation.algorithm.version, self.config.checkpoint_every
        if version % self.config.eval_every == 0:
            self._record()
        if every is not None and version % every == 0:
            self.save()
        self.callbacks.made_version(self)

    def _made_none(self, simulation: Simulation) -> None:
        """Tell the display, if there is one, that a job ended without making a version."""
        if self.progress is not None:
            self.progress.waiting(self)

    def _record(self) -> None:
        row = {
            "version": self.algorithm.version,
            "time": self.simulation.clock,
            "updates": len(self.simulation.arrivals),
            **self.evaluate(),
        }
        self._rows.append(MappingProxyType(row))
        self.callbacks.evaluated(self, row)
