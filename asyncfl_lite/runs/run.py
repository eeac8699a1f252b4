"""One run from a configuration to a result."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from asyncfl_lite.algorithms import ServerContext
from asyncfl_lite.base.devices import actual, check_device, torch_threads
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, ResultError, reason, shown
from asyncfl_lite.base.files import DAMAGE_IN_TORCH, as_path
from asyncfl_lite.base.registry import written_as
from asyncfl_lite.base.streams import stream
from asyncfl_lite.clients.local_training import ClientData
from asyncfl_lite.clients.trainer import Trainer
from asyncfl_lite.models.base import initial_model
from asyncfl_lite.models.requests import Request, fulfilled_now
from asyncfl_lite.runs.assembly import as_config, deal_out, fit_model, make_simulation, servers_own, task_of
from asyncfl_lite.runs.callbacks import Callbacks, OnEvaluate, OnVersion, StopRun
from asyncfl_lite.runs.checkpoints import (
    check_place,
    identity_of,
    load_checkpoint,
    remove_checkpoints,
    remove_others,
    save_checkpoint,
)
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.initial.remembered import remembered
from asyncfl_lite.runs.initial.weights import WeightsInitial
from asyncfl_lite.runs.interrupts import saved_when_interrupted
from asyncfl_lite.runs.progress import Progress, Shown, check_shown
from asyncfl_lite.runs.results import Result, check_free, load_complete, versions
from asyncfl_lite.runs.sources import data_of, started_from
from asyncfl_lite.runs.summary import (
    class_summary,
    classes_of,
    client_summary,
    curve_summary,
    score_clients,
    trouble_summary,
    update_summary,
)
from asyncfl_lite.runs.trained import Trained
from asyncfl_lite.simulator.jobs import Arrival, Job
from asyncfl_lite.simulator.simulation import Simulation
from asyncfl_lite.simulator.tables import Schedule, who_did_what
from asyncfl_lite.simulator.update import Outcome
from asyncfl_lite.tasks import Task


def run(
    config: Config | Mapping[str, Any],
    *,
    task: Task | None = None,
    checkpoint: str | Path | None = None,
    weights: str | Path | Mapping[str, torch.Tensor] | nn.Module | None = None,
    progress: Shown = False,
    on_version: OnVersion | None = None,
    on_evaluate: OnEvaluate | None = None,
) -> Result:
    """Run ``config`` from beginning to end and return the result.

    The same configuration gives the same bits on the same machine with the same builds of its libraries. Elsewhere the
    schedule, who trains when and on which version, is the same (unless it depends on weights: where updates are refused
    or clients are chosen by their losses), but sums are rounded otherwise, and where rates are large the system is
    chaotic: a difference in the seventh decimal at version 10 was five points of accuracy at version 80. Accuracies
    reproduce as distributions over seeds.

    Args:
        config: what to run; a plain dict of settings is taken too.
        task: one's own data, in place of the one that ``config.task`` names.
        checkpoint: file that the run is saved in every ``config.checkpoint_every`` versions and every
            ``config.checkpoint_seconds``, and from which it goes on if it was interrupted; the one before it lies
            beside it. Removed when the run is finished. Anything else that lies there stays, and the run does not
            begin.
        weights: to start from, in place of random ones: a file, a state dict, a module, or a saved result's folder. It
            is another way to write ``initial="weights"``, and the configuration of the result says so.
        progress: show a bar that counts versions, or ``"lines"`` of accuracies on stderr.
        on_version: called with the :class:`Run` after every version.
        on_evaluate: called with the :class:`Run` and the new row of its curve (``version``, ``time``, ``updates``,
            ``accuracy``, ``loss`` and the task's own scores) after every evaluation, that of version 0 and the last
            included. Either ends the run by raising :class:`StopRun`; neither may change the run. Before any other
            exception leaves it, the run is saved in its ``checkpoint``, and a note on the exception says so.

    Returns:
        The result: ``summary``, ``curve``, ``updates``, ``plot()``, ``model()``, ``save(folder)``.

    Example: ten versions of a buffer of five are fifty updates, the model is tested at versions 0, 5 and 10.

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
    result = started.finish(progress=progress)
    started.remove_checkpoints()
    return result


def run_in(folder: str | Path, config: Config, *, progress: Shown = False, force: bool = False) -> Result:
    """Return the finished result of ``config`` in ``folder``; if there is none, run it there first.

    A run that was interrupted goes on from the checkpoint that it left in the folder.

    Args:
        folder: is made.
        config: what to run.
        progress: show a bar that counts versions, or ``"lines"`` of accuracies on stderr.
        force: replace the result, or the checkpoint, of another run that is in the folder.

    Raises:
        ResultError: before anything is run, when the folder holds another run's and ``force`` does not say otherwise,
            or files of the same names that are no result's.
    """
    result = load_complete(folder, config)
    if result is None:
        started = run_at(folder, config, force=force)
        result = started.finish(progress=progress)
        started.keep(result, force=force)
    return result


def run_at(
    folder: str | Path, config: Config, task: Task | None = None, *, force: bool = False, **callbacks: Any
) -> Run:
    """Make a run of ``config``, not yet started, that saves itself in ``folder``; see :func:`run_in`."""
    data = data_of(config, task)
    check_free(folder, config, None if task is None else task.name, data, force=force)
    checkpoint = Path(folder) / "checkpoint.pt"
    if force:
        remove_others(checkpoint, identity_of(config, data))
    return Run(config, task, checkpoint, **callbacks)


class Run:
    """One run with all its parts: task, model, method, trainer, simulation.

    Attributes:
        parts: client -> ``(n_i,)`` places of its samples in the task's training set.
        data: digests of what it reads that is not in the configuration, see :func:`.data_of`.
        identity: what a checkpoint must have in common with it, see :func:`.identity_of`.
        simulation: the clock; ``simulation.steps()`` walks through the run job by job.
        algorithm: the method; ``algorithm.version`` is the version and ``algorithm.x`` the global model.
        compute: returns what the server asks for; replaced where several runs wait for each other.
        curve_rows: the rows of its curve so far.
        versions: of the installed libraries, see :func:`.versions`.
        stopped: why a callback stopped it, or None.

    >>> from asyncfl_lite import Config, Run
    >>> one = Run(Config(task="digits", algorithm="fedbuff", rounds=2))
    >>> one.algorithm.version, len(one.parts)
    (0, 50)
    >>> one.finish().summary["versions"]
    2
    """

    def __init__(
        self,
        config: Config | Mapping[str, Any],
        task: Task | None = None,
        checkpoint: str | Path | None = None,
        weights: str | Path | Mapping[str, torch.Tensor] | nn.Module | None = None,
        *,
        on_version: OnVersion | None = None,
        on_evaluate: OnEvaluate | None = None,
    ) -> None:
        config = as_config(config)
        if not isinstance(task, Task | None):
            raise ConfigError(f"task: must be a Task, such as Task.from_tensors(…), got {shown(task)}")
        self.callbacks = Callbacks(on_version, on_evaluate)
        self.stopped: str | None = None
        self.own_task = config.own_task if task is None else task.name
        config, self.weights = (config, None) if weights is None else started_from(config, weights)
        config = config.model_copy(update={"device": actual(config.device)}).on_own_task(self.own_task)
        self.config = config
        self.versions = versions()  # now, as nothing that a result needs may first fail when the run is over
        check_device(config.device)
        self.data = data_of(config, task, self.weights)
        self.identity = identity_of(config, self.data)
        self.checkpoint = None if checkpoint is None else as_path(checkpoint, "checkpoint").resolve()
        if self.checkpoint is not None:
            check_place(self.checkpoint, self.identity)
        self.task = task_of(config, task).to(config.device)
        self.parts = deal_out(config, self.task)
        places = torch.from_numpy(servers_own(config, self.task)).to(config.device)
        self.labelled = (self.task.inputs[places], self.task.labels[places]) if len(places) else None
        self.model, draws, cohort = fit_model(config, self.task, self.parts, self._initial_model())
        self.compute: Callable[[Request], Any] = fulfilled_now
        self.algorithm = config.make_algorithm()
        self._start_algorithm()
        self.trainer = self._make_trainer(draws, cohort)
        self.simulation = make_simulation(
            config, self.parts, self.algorithm, [self._save_in_time], together=self.trainer.cohort
        )
        self.simulation.version_observers.append(self._made_version)
        self.curve_rows: list[dict[str, float]] = []
        self.training_seconds = 0.0
        self.saved_at = time.monotonic()

    def _initial_model(self) -> nn.Module:
        weights = int(stream(self.config.seed, "model").integers(2**31))
        rng = stream(self.config.seed, "initial")
        spec, initialiser = self.config.model_spec, self.config.initialiser
        with torch_threads(self.config.threads), written_as(model_settings=spec, initial_settings=initialiser):
            make = partial(initialiser.build, spec, self.task, self.labelled, weights, rng)
            if initialiser.costly and self.own_task is None:
                return remembered(self.config, make, partial(initial_model, spec, self.task.input_spec, weights)).to(
                    self.config.device
                )
            if self.weights is not None and isinstance(initialiser, WeightsInitial):
                module = initial_model(spec, self.task.input_spec, weights)
                return initialiser.filled(module, self.weights, "run(…, weights)").to(self.config.device)
            return make().to(self.config.device)

    def _start_algorithm(self) -> None:
        x0, buffers = self.model.flatten()
        self.server_rng = stream(self.config.seed, "server")
        context = ServerContext(
            model=self.model,
            num_clients=self.config.clients,
            rng=self.server_rng,
            unlabelled=lambda name, count: self.task.unlabelled_set(
                name, count, stream(self.config.seed, "unlabelled")
            ),
            labelled=self.labelled,
            client_lr=self.config.make_training(self.algorithm).lr_at,
            inputs=self.task.input_spec,
            predictions=self.task.predictions,
            prediction_counts=self.task.prediction_counts,
            answers=self.task.answers,
            class_logits=self.task.class_logits,
            compute=lambda request: self.compute(request),
        )
        mask = self.model.variance_mask.to(x0.device)
        with written_as(settings=self.config.settings):
            self.algorithm.start(x0, context, buffers=buffers, variance_mask=mask, keep_versions=False)

    def _make_trainer(self, draws: bool, cohort: bool) -> Trainer:
        task = self.task
        data = ClientData(task.inputs, task.labels, self.parts, task.losses, task.hits, task.num_classes, task.augment)
        training = self.config.make_training(self.algorithm)
        return Trainer(self.model, data, training, self.config.seed, cohort=cohort, draws=draws)

    def evaluate(self) -> dict[str, float]:
        """Return the global model's scores on the test set: accuracy, mean loss, and the task's own."""
        return self.task.evaluate(self._predict)

    def _predict(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.model.outputs(self.algorithm.x, inputs, self.algorithm.buffers)

    def train(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Train jobs, and add up the processor time used."""
        began = time.process_time()
        outcomes = self.trainer(jobs)
        self.training_seconds += time.process_time() - began
        return outcomes

    def begin(self) -> None:
        """Continue from the checkpoint if there is one, else record the initial model."""
        if self.config.checkpoint_every is not None and self.checkpoint is None:
            raise ConfigError(
                "checkpoint_every: needs a file to save to: --out FOLDER, in Python run(config, checkpoint='run.pt')"
            )
        if not self.resume():
            self._record()

    def resume(self) -> bool:
        """Load the state from the run's checkpoint; return whether a usable one exists."""
        if self.checkpoint is None:
            return False
        saved = load_checkpoint(self.checkpoint, self.identity, self.config.device)
        try:
            if saved is not None:
                self.restore(saved)
        except AsyncFLError:
            raise
        except DAMAGE_IN_TORCH as error:  # its digest is right: it was made so
            what = f"{type(error).__name__}: {reason(error)}"
            raise ResultError(f"{self.checkpoint}: does not hold this run's state ({what}); remove it") from None
        return saved is not None

    def keep(self, result: Result, *, force: bool = False, weights: bool = True) -> None:
        """Write the result into the folder of the run's checkpoint, if it has one, and delete the checkpoint."""
        if self.checkpoint is not None:
            result.save(self.checkpoint.parent, force=force, weights=weights)
            self.remove_checkpoints()
            self.checkpoint = None  # nothing is left to be saved

    def remove_checkpoints(self) -> None:
        """Delete the run's checkpoints, once its result is safe."""
        if self.checkpoint is not None:
            remove_checkpoints(self.checkpoint, self.identity)

    def state(self) -> dict[str, Any]:
        """Return the run's changing state as tensors and plain values; the configuration decides the rest."""
        return {
            "algorithm": self.algorithm.state(),
            "simulation": self.simulation.state(),
            "server_rng": self.server_rng.bit_generator.state,
            "curve": list(self.curve_rows),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Load what :meth:`state` returned."""
        self.algorithm.restore(state["algorithm"])
        self.simulation.restore(state["simulation"])
        self.server_rng.bit_generator.state = state["server_rng"]
        self.curve_rows = list(state["curve"])

    def finish(self, *, progress: Shown = False) -> Result:
        """Run to the end and return the result."""
        wall, processor = time.perf_counter(), time.process_time()
        with (
            saved_when_interrupted([self]) as stops,
            torch_threads(self.config.threads),
            Progress(progress, [self]),
        ):
            try:
                self.begin()
                self.simulation.run(stops.allowed()(self.train))
            except StopRun as stop:
                self.stop(stop)
            return self.result(time.perf_counter() - wall, time.process_time() - processor)

    def stop(self, why: StopRun) -> None:
        """Record that a callback has stopped the run."""
        self.stopped = str(why) or "by a callback"

    def result(self, seconds: float, cpu_seconds: float) -> Result:
        """Make the result of a run that has ended, given the seconds it took."""
        if self.curve_rows[-1]["time"] != self.simulation.clock:
            with suppress(StopRun):  # it is at its end
                self._record()
        curve = pd.DataFrame(self.curve_rows)
        who = who_did_what(self.simulation, self.parts)
        if self.task.clients:
            who = who._replace(clients=score_clients(who.clients, self.task, self._predict, self.parts))
        classes = classes_of(self.task, self._predict, self.parts, who.updates)
        return Result(
            self.config,
            self._summary(curve, who, classes),
            curve,
            *who,
            {"seconds": seconds, "cpu_seconds": cpu_seconds, "training_cpu_seconds": self.training_seconds},
            self.algorithm.x,
            self.own_task,
            data=self.data,
            classes=classes,
            trained=Trained(
                self.config.model_spec,
                self.task.input_spec,
                self.model.loaded(self.algorithm.x, self.algorithm.buffers),
            ),
            versions=self.versions,
        )

    def _summary(self, curve: pd.DataFrame, who: Schedule, classes: pd.DataFrame) -> dict[str, Any]:
        """Summarise the run in a few numbers."""
        weights = self.algorithm.x.detach().cpu().contiguous()
        return {
            **curve_summary(curve),
            "virtual_time": float(self.simulation.clock),
            "versions": int(self.algorithm.version),
            **update_summary(who.updates),
            "rejected_updates": len(self.algorithm.rejections),
            "most_versions_in_flight": self.simulation.most_versions_in_flight,
            "empty_clients": sum(not len(part) for part in self.parts),
            "parameters": self.model.num_parameters,
            "training": "cohort" if self.trainer.cohort else "one by one",
            "weights_sha256": hashlib.sha256(weights.numpy().tobytes()).hexdigest(),
            "schedule_sha256": who.digest,
            **class_summary(classes),
            **client_summary(who.clients),
            **({} if self.stopped is None else {"stopped": self.stopped}),
            **({} if self.config.trouble.none else trouble_summary(who)),
        }

    def _made_version(self, simulation: Simulation) -> None:
        """Evaluate a new version, and save the run, if either is due."""
        version, every = simulation.algorithm.version, self.config.checkpoint_every
        if version % self.config.eval_every == 0:
            self._record()
        if every is not None and version % every == 0:
            self.save()
        self.callbacks.made_version(self)

    def _save_in_time(self, simulation: Simulation, arrival: Arrival) -> None:
        """Save the run if enough time has passed since the last save."""
        seconds = self.config.checkpoint_seconds
        if seconds is not None and time.monotonic() - self.saved_at >= seconds:
            self.save()

    def save(self) -> None:
        """Save the run now, if it has a checkpoint path."""
        if self.checkpoint is not None:
            save_checkpoint(self.checkpoint, self.identity, self.state())
        self.saved_at = time.monotonic()

    def _record(self) -> None:
        row = {
            "version": self.algorithm.version,
            "time": self.simulation.clock,
            "updates": len(self.simulation.arrivals),
            **self.evaluate(),
        }
        self.curve_rows.append(row)
        self.callbacks.evaluated(self, row)
