"""The parts of one run, put together: task, model, method, trainer and clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from asyncfl_lite.algorithms import ServerContext
from asyncfl_lite.base.devices import actual, check_device, torch_threads
from asyncfl_lite.base.errors import ConfigError, DataError, shown
from asyncfl_lite.base.plugins import on_copies
from asyncfl_lite.base.registry import written_as
from asyncfl_lite.base.streams import no_global_draws, stream
from asyncfl_lite.clients.local_training import ClientData
from asyncfl_lite.clients.trainer import Trainer
from asyncfl_lite.models.base import initial_model
from asyncfl_lite.models.requests import Request, fulfilled_now
from asyncfl_lite.runs.assembly import as_config, deal_out, fit_model, make_simulation, method_for, servers_own, task_of
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.initial import WeightsInitial
from asyncfl_lite.runs.meaning import versions
from asyncfl_lite.runs.sources import checksum, data_of, remembered, started_from
from asyncfl_lite.simulator.jobs import Job, Outcome
from asyncfl_lite.tasks import Task

Weights = str | Path | Mapping[str, torch.Tensor] | nn.Module
"""Weights to start from: a file, a state dict, a module, or a saved result's folder."""


@dataclass
class Given:
    """The checked inputs from which a run is made; no data are loaded yet.

    Attributes:
        config: the configuration, with the names of the actual device and of the user's own data.
        task: the user's own data, or None.
        weights: state dict to start from, or None.
        versions: versions of the installed libraries; read before the run, so that an error in reading them does not
            come only at its end.
        data: digests of the data that the run reads but its configuration does not contain; see :func:`.data_of`.
    """

    config: Config
    task: Task | None
    weights: Mapping[str, torch.Tensor] | None
    versions: dict[str, str]
    data: dict[str, str]

    @classmethod
    def of(cls, config: Config | Mapping[str, Any], task: Task | None, weights: Weights | None) -> Given:
        """Check the inputs from which a run is to be made, and return them.

        Raises:
            ConfigError: if ``task`` is not a task, ``config`` names other weights already, or the device is missing.
            DataError: if ``weights`` are not weights.
        """
        config = as_config(config)
        if not isinstance(task, Task | None):
            raise ConfigError(f"task: must be a Task, such as Task.from_tensors(…), got {shown(task)}")
        own = config.own_task if task is None else task.name
        config, state = (config, None) if weights is None else started_from(config, weights)
        config = config.with_checked(device=actual(config.device)).on_own_task(own)
        known = versions()
        check_device(config.device)
        if torch.device(config.device).type == "cuda":
            known["gpu"] = torch.cuda.get_device_name(config.device)
        return cls(config, task, state, known, data_of(config, task, state))


class JoinedRun:
    """A run's parts, ready to train and to evaluate, without checkpoints, curves or results."""

    def __init__(self, given: Given) -> None:
        config = self.config = given.config
        self.own_task, self.weights, self.versions = given.config.own_task, given.weights, given.versions
        self.data = given.data
        self.task = task_of(config, given.task).to(config.device)
        self._checksum = checksum(self.task)
        self.parts = deal_out(config, self.task)
        indices = torch.from_numpy(servers_own(config, self.task)).to(config.device)
        self.labelled = (self.task.inputs[indices], self.task.labels[indices]) if len(indices) else None
        self.model, draws, cohort = fit_model(config, self.task, self.parts, self._initial_model())
        self.compute: Callable[[Request], Any] = fulfilled_now
        self.algorithm = method_for(config, self.model)
        self._start_algorithm()
        self.trainer = self._make_trainer(draws, cohort)
        self.simulation = make_simulation(config, self.parts, self.algorithm, together=self.trainer.cohort)
        self.training_seconds = 0.0

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ConfigError(
            "run: cannot be pickled or copied; pickle its config or its result, or give it a checkpoint=FILE"
        )

    def _initial_model(self) -> nn.Module:
        weights = int(stream(self.config.seed, "model").integers(2**31))
        rng = stream(self.config.seed, "initial")
        spec, initialiser = self.config.model_settings, self.config.initial_settings
        labelled = None if self.labelled is None else (self.labelled[0].clone(), self.labelled[1].clone())
        with (
            torch_threads(self.config.threads),
            written_as(model_settings=spec, initial_settings=initialiser),
            no_global_draws(
                initialiser, f"initial: {type(initialiser).__name__}.build", "the generator that it is given"
            ),
        ):
            make = partial(initialiser.build, spec, self.task, labelled, weights, rng)
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
        if not torch.isfinite(x0).all():
            raise ConfigError(f"initial: the first weights of {self.config.model!r} are not finite (NaN or infinity)")
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
            predictions=on_copies(self.task.predictions),
            prediction_counts=on_copies(self.task.prediction_counts),
            answers=on_copies(self.task.answers),
            class_logits=on_copies(self.task.class_logits),
            compute=lambda request: self.compute(request),
        )
        mask = self.model.variance_mask.to(x0.device)
        with written_as(settings=self.config.settings):
            self.algorithm.start(x0, context, buffers=buffers, variance_mask=mask, keep_versions=False)

    def _make_trainer(self, draws: bool, cohort: bool) -> Trainer:
        task = self.task
        score = on_copies(task.losses), on_copies(task.hits)
        data = ClientData(task.inputs, task.labels, self.parts, *score, task.num_classes, task.augment)
        training = self.config.make_training(self.algorithm)
        return Trainer(self.model, data, training, self.config.seed, cohort=cohort, draws=draws)

    def evaluate(self) -> dict[str, float]:
        """Return the global model's scores on the test set: accuracy, mean loss, and the task's own."""
        return self.task.evaluate(self.predict)

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the global model's ``(n, …)`` outputs for ``(n, …)`` inputs."""
        return self.model.outputs(self.algorithm.x, inputs, self.algorithm.buffers)

    def check_data(self) -> None:
        """Raise an error if the task's data are not what they were when the run was made.

        Raises:
            DataError: if they have been changed; the message names the task.
        """
        if checksum(self.task) != self._checksum:
            raise DataError(
                f"task: the data of {self.task.name!r} were changed during the run, which falsifies its scores; your "
                "own code, such as a callback, must work on copies, such as run.task.test_inputs.clone()"
            )

    def train(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Train jobs, and add the processor time used to ``training_seconds``."""
        began = time.process_time()
        outcomes = self.trainer(jobs)
        self.training_seconds += time.process_time() - began
        return outcomes
