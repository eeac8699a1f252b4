"""One run from a configuration to a result."""

from __future__ import annotations

import hashlib
import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
import torch
from torch import nn

from asyncfl_lite.base.devices import actual, check_device, torch_threads, usual_torch
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, DataError, ResultError, reason, shown
from asyncfl_lite.base.files import DAMAGE_IN_TORCH, as_path
from asyncfl_lite.base.locks import alone_at
from asyncfl_lite.base.registry import is_ours, on_copies
from asyncfl_lite.base.streams import stream, told_of_draws
from asyncfl_lite.clients.cohorts import ClientData
from asyncfl_lite.clients.trainer import Trainer
from asyncfl_lite.models.compute import Request, fulfilled_now
from asyncfl_lite.models.weights import as_state
from asyncfl_lite.runs import store
from asyncfl_lite.runs.assembly import (
    checked_task,
    deal_out,
    first_module,
    fit_model,
    make_simulation,
    method_for,
    servers_own,
    start_method,
)
from asyncfl_lite.runs.callbacks import LOG, OnEvaluate, OnVersion, StopRun, call, check_callback
from asyncfl_lite.runs.config import Config, as_config, registries
from asyncfl_lite.runs.results import Result, Trained, classes_of, load_complete, score_clients, summary_of
from asyncfl_lite.simulator.jobs import Arrival, Job, Outcome, who_did_what
from asyncfl_lite.simulator.simulation import Simulation
from asyncfl_lite.tasks import Task

if TYPE_CHECKING:
    from asyncfl_lite.models.own_models import OwnModel
    from asyncfl_lite.runs.progress import Shown

Weights = str | Path | Mapping[str, torch.Tensor] | nn.Module
"""Weights to start from: a file, a state dict, a module, or a saved result's folder."""
COHORT = "cohort 2"
"""What a summary says of training in cohorts; a change that rounds differently raises the number. In runs that say
``cohort``, plain gradient steps took a gradient vector."""


def run(
    config: Config | Mapping[str, Any],
    *,
    task: Task | None = None,
    model: OwnModel | None = None,
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
        model: your own ``torch.nn.Module``, instead of the model that ``config.model`` names, or a function or class
            that returns one. A run starts from a module's weights, and from what a function returns with the run's
            seed. The configuration of the result names the module's class and a digest.
        checkpoint: file in which the run is saved, every ``config.checkpoint_every`` versions and every
            ``config.checkpoint_seconds`` seconds, and from which it continues if it was interrupted. The previous
            checkpoint is kept beside it; both are removed when the run is finished. A file that is not this run's
            checkpoint is left as it is, and the run does not begin.
        weights: weights to start from, instead of random ones: a file, a state dict, a module, or a saved result's
            folder. This is another way to write ``initial="weights"``, and the configuration of the result says so.
        progress: True shows a bar that counts versions; ``"lines"`` prints lines of accuracies to stderr. The log
            ``asyncfl_lite`` of :mod:`logging` gets these lines in any case, at the level INFO.
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
    started = Run(config, task, checkpoint, weights, model, on_version=on_version, on_evaluate=on_evaluate)
    return started.finish(lambda _: started.remove_checkpoints(), progress=progress)


def run_in(folder: str | Path, config: Config, *, progress: Shown = False, force: bool = False) -> Result:
    """Return the finished result of ``config`` in ``folder``; if there is none, run it there first.

    A run that was interrupted continues from the checkpoint that it left in the folder. ``force`` replaces the result
    or the checkpoint of another run that is in the folder.

    Raises:
        ResultError: before anything is run, when the folder holds another run's result or checkpoint and ``force`` is
            False, or files of the same names that this package did not write, or when another run goes on in it.
    """
    result = load_complete(folder, config)
    if result is None:
        started = run_at(folder, config, force=force)
        result = started.finish(lambda result: started.keep(result, force=force), progress=progress)
    return result


def run_at(
    folder: str | Path, config: Config, task: Task | None = None, *, force: bool = False, **callbacks: Any
) -> Run:
    """Make a run of ``config``, not yet started, that saves itself in ``folder``; see :func:`run_in`.

    The run has the folder for itself until it has finished, or until its block (``with made:``) ends.
    """
    identity = store.identity_of(config.on_own_task(None if task is None else task.name), store.data_of(config, task))
    checkpoint = Path(folder).resolve() / store.CHECKPOINT
    with ExitStack() as claim:
        claim.enter_context(alone_at(checkpoint))
        store.check_free(folder, identity, force=force)
        if force:
            store.remove_checkpoints(checkpoint, identity, others=True)
        made = Run(config, task, checkpoint, **callbacks)
        made.claim = claim.pop_all()
    return made


def _started_from(config: Config, weights: Weights) -> tuple[Config, dict[str, torch.Tensor] | None]:
    """Return ``config`` changed to start from ``weights``, and their state dict, or None if they are in a file."""
    chosen = config.initial_settings
    if config.initial not in ("random", "weights") or getattr(chosen, "file", None) is not None:
        raise ConfigError(f"weights: the configuration starts from {config.initial!r} already; give one of the two")
    settings = chosen.model_dump() if config.initial == "weights" else {}
    of_file = isinstance(weights, str | Path)
    if of_file:
        settings["file"] = str(weights)
    config = Config(**{**config.as_dict(), "initial": "weights", "initial_settings": settings})
    return config, None if of_file else as_state(weights, "weights")


class Run:
    """One run with all its parts: task, model, method, trainer, simulation.

    Attributes:
        config: the configuration, with the names of the actual device and of the user's own data.
        parts: client -> ``(n_i,)`` indices of its samples in the task's training set.
        simulation: the clock.
        algorithm: the method; ``algorithm.version`` is the version and ``algorithm.x`` the global model.
        compute: function that does the computations that the server asks for; replaced if several runs go in lockstep.
        curve_rows: the rows of the run's curve so far, which can be read but not changed.
        ran_under: versions of libraries under which the run was begun, and then under which it was continued.
        claim: closes the run's claim of its checkpoint's path; None if it has no claim.
        stopped: the reason why a callback stopped the run, or None.

    Raises:
        ConfigError: if ``task`` is not a task, ``config`` names other weights already, or the device is missing.
        DataError: if ``weights`` are not weights.
        ResultError: before anything is loaded, if ``checkpoint`` names a file that is not this run's checkpoint.

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
        model: OwnModel | None = None,
        *,
        on_version: OnVersion | None = None,
        on_evaluate: OnEvaluate | None = None,
    ) -> None:
        self.on_version, self.on_evaluate = on_version, on_evaluate
        if on_version is not None:
            check_callback("on_version", on_version, "run")
        if on_evaluate is not None:
            check_callback("on_evaluate", on_evaluate, "run", "row")
        config = as_config(config, model)
        if not isinstance(task, Task | None):
            raise ConfigError(f"task: must be a Task, such as Task.from_tensors(…), got {shown(task)}")
        config, state = (config, None) if weights is None else _started_from(config, weights)
        own = config.own_task if task is None else task.name
        self.config = config = config.with_checked(device=actual(config.device)).on_own_task(own)
        self.versions = store.versions()  # now, so that an error in reading them does not come at the run's end
        check_device(config.device)
        if torch.device(config.device).type == "cuda":
            self.versions["gpu"] = torch.cuda.get_device_name(config.device)
        self.data = store.data_of(config, task, state)
        self.checkpoint = None if checkpoint is None else as_path(checkpoint, "checkpoint").resolve()
        if self.checkpoint is not None:
            store.check_place(self.checkpoint, self.identity)
        with torch_threads(config.threads):
            self._assemble(task, state)
        self.training_seconds = 0.0
        self._rows: list[Mapping[str, float]] = []
        self.saved_at = time.monotonic()
        self.ran_under = [self.versions]
        self.stopped: str | None = None
        self.claim: ExitStack | None = None

    @cached_property
    def identity(self) -> store.Identity:
        """What makes the run this run, by which its checkpoint is recognised; see :func:`.identity_of`."""
        return store.identity_of(self.config, self.data)

    def _assemble(self, task: Task | None, weights: Mapping[str, torch.Tensor] | None) -> None:
        config = self.config
        found, checked = checked_task(config, task)
        self.task = task = found.to(config.device)
        self._checksum = checked if config.device == "cpu" else store.checksum(task)
        self.parts = deal_out(config, task)
        indices = torch.from_numpy(servers_own(config, task)).to(config.device)
        labelled = (task.inputs[indices], task.labels[indices]) if len(indices) else None
        module = first_module(config, task, labelled, weights)
        fitted = fit_model(config, task, self.parts, module)
        self.model = fitted.model
        self.compute: Callable[[Request], Any] = fulfilled_now
        self.server_rng = stream(config.seed, "server")
        self.algorithm = method = method_for(config, self.model)
        training = config.make_training(method)
        start_method(
            method, config, task, self.model, labelled, self.server_rng, training, lambda asked: self.compute(asked)
        )
        score = on_copies(task.losses), on_copies(task.hits)
        data = ClientData(task.inputs, task.labels, self.parts, *score, task.num_classes, task.augment)
        self.trainer = Trainer(self.model, data, training, config.seed, cohort=fitted.cohort, draws=fitted.draws)
        self.simulation = make_simulation(config, self.parts, method, together=fitted.cohort)
        if self.checkpoint is not None:
            self.simulation.observers.append(self._save_in_time)
        self.simulation.version_observers.append(self._made_version)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ConfigError(
            "run: cannot be pickled or copied; pickle its config or its result, or give it a checkpoint=FILE"
        )

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
        with ExitStack() as around:
            around.enter_context(torch_threads(self.config.threads))
            train = self.train
            if self.checkpoint is not None:
                from asyncfl_lite.runs.interrupts import saved_when_interrupted

                around.enter_context(self)
                train = around.enter_context(saved_when_interrupted([self])).allowed()(train)
            if progress is not False or LOG.isEnabledFor(logging.INFO):
                from asyncfl_lite.runs.progress import Progress

                around.enter_context(Progress(progress, [self]))
            if self.may_draw:
                around.enter_context(told_of_draws())
            try:
                self.begin()
                self.simulation.run(train)
            except StopRun as stop:
                self.stop(stop)
            result = self.result(time.perf_counter() - wall, time.process_time() - processor)
            if ended is not None:
                ended(result)
            return result

    def __enter__(self) -> Self:
        """Have the checkpoint's path for this run alone, until the block ends or the run has finished inside it."""
        if self.claim is None and self.checkpoint is not None:
            with ExitStack() as claim:
                claim.enter_context(alone_at(self.checkpoint))
                store.check_place(self.checkpoint, self.identity)  # another may have been there since
                self.claim = claim.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def may_draw(self) -> bool:
        """Whether to look if users' own code draws from global random numbers; callbacks may do so."""
        classes = (registry.get(getattr(self.config, kind)) for kind, registry in registries().items())
        if self.on_version is not None or self.on_evaluate is not None:
            return False
        return self.config.own_task is not None or not all(map(is_ours, classes))

    def stop(self, why: StopRun) -> None:
        """Record that a callback has stopped the run."""
        self.stopped = str(why) or "by a callback"

    def train(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Train jobs, and add the processor time used to ``training_seconds``."""
        began = time.process_time()
        outcomes = self.trainer(jobs)
        self.training_seconds += time.process_time() - began
        return outcomes

    def evaluate(self) -> dict[str, float]:
        """Return the global model's scores on the test set: accuracy, mean loss, and the task's own."""
        return self.task.evaluate(self.predict)

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the global model's ``(n, …)`` outputs for ``(n, …)`` inputs."""
        return self.model.outputs(self.algorithm.x, inputs, self.algorithm.buffers)

    def check_data(self) -> None:
        """Raise a DataError if the task's data are not what they were when the run was made."""
        if store.checksum(self.task) != self._checksum:
            raise DataError(
                f"task: the data of {self.task.name!r} were changed during the run, which falsifies its scores; your "
                "own code, such as a callback, must work on copies, such as run.task.test_inputs.clone()"
            )

    def _made_version(self, simulation: Simulation) -> None:
        version, every = simulation.algorithm.version, self.config.checkpoint_every
        if version % self.config.eval_every == 0:
            self._record()
        if every is not None and version % every == 0:
            self.save()
        if self.on_version is not None:
            call(self.on_version, self)

    def _record(self) -> None:
        row = {
            "version": self.algorithm.version,
            "time": self.simulation.clock,
            "updates": len(self.simulation.arrivals),
            **self.evaluate(),
        }
        self._rows.append(MappingProxyType(row))
        if self.on_evaluate is not None:
            call(self.on_evaluate, self, dict(row))

    def result(self, seconds: float, cpu_seconds: float) -> Result:
        """Make the result of a run that has ended, given the wall-clock and processor seconds that it took."""
        if self._rows[-1]["time"] != self.simulation.clock:
            with suppress(StopRun):  # the run has ended anyway
                self._record()
        self.check_data()
        curve, who = pd.DataFrame([dict(row) for row in self._rows]), who_did_what(self.simulation, self.parts)
        if self.task.clients:
            who = who._replace(clients=score_clients(who.clients, self.task, self.predict, self.parts))
        classes = classes_of(self.task, self.predict, self.parts, who.updates)
        weights = self.algorithm.x.detach().cpu().contiguous()
        ended = {
            "virtual_time": float(self.simulation.clock),
            "versions": int(self.algorithm.version),
            "rejected_updates": len(self.algorithm.rejections),
            "most_versions_in_flight": self.simulation.most_versions_in_flight,
            "empty_clients": sum(not len(part) for part in self.parts),
            "parameters": self.model.num_parameters,
            "training": COHORT if self.trainer.cohort else "one by one",
            "weights_sha256": hashlib.sha256(weights.numpy().tobytes()).hexdigest(),
            "schedule_sha256": who.digest,
            **({} if self.stopped is None else {"stopped": self.stopped}),
        }
        module = self.model.loaded(self.algorithm.x, self.algorithm.buffers)
        return Result(
            self.config,
            summary_of(curve, who, classes, ended, faulty=not self.config.faults.none),
            curve,
            *who,
            {"seconds": seconds, "cpu_seconds": cpu_seconds, "training_cpu_seconds": self.training_seconds},
            self.algorithm.x,
            data=self.data,
            classes=classes,
            trained=Trained(self.config.model_settings, self.task.input_spec, module),
            versions=self.ran_under[0],
            continued_under=self.ran_under[1:],
        )

    def release(self) -> None:
        """Let other runs have the checkpoint's path."""
        if self.claim is not None:
            self.claim.close()
            self.claim = None

    @property
    def curve_rows(self) -> tuple[Mapping[str, float], ...]:
        """The rows of the run's curve so far."""
        return tuple(self._rows)

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
            store.save_checkpoint(self.checkpoint, self.identity, {**self.state(), "ran_under": self.ran_under})
        self.saved_at = time.monotonic()

    def _save_in_time(self, simulation: Simulation, arrival: Arrival) -> None:
        seconds = self.config.checkpoint_seconds
        if seconds is not None and time.monotonic() - self.saved_at >= seconds:
            self.save()

    def resume(self) -> bool:
        """Load the state from the run's checkpoint; return whether there was a usable checkpoint."""
        if self.checkpoint is None:
            return False
        saved = store.load_checkpoint(self.checkpoint, self.identity, self.config.device)
        try:
            if saved is not None:
                self.restore(saved)
                self._continue_after(saved["ran_under"])
        except AsyncFLError:
            raise
        except DAMAGE_IN_TORCH as error:  # its digest is right, so it was written like this
            what = f"{type(error).__name__}: {reason(error)}"
            raise ResultError(f"{self.checkpoint}: does not hold this run's state ({what}); remove it") from None
        return saved is not None

    def _continue_after(self, then: list[dict[str, str]]) -> None:
        """Note the versions under which the run continues, and warn if they are not those that it had before."""
        self.ran_under = then if then[-1] == self.versions else [*then, self.versions]
        if told := store.changed_versions(then[-1], self.versions):
            warnings.warn(f"{self.checkpoint}: the run continues under other versions ({told}), so its numbers may be "
                          "rounded differently from here on; its result says so", stacklevel=4)  # fmt: skip

    def keep(self, result: Result, *, force: bool = False, weights: bool = True) -> None:
        """Write the result into the folder of the run's checkpoint, if there is one, and delete the checkpoint."""
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
        """Delete the run's checkpoints, once its result is kept."""
        if self.checkpoint is not None:
            store.remove_checkpoints(self.checkpoint, self.identity)
