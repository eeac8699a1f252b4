"""The parts of a run that a configuration decides before training: data, partition, model, clock."""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from asyncfl_lite.algorithms import Algorithm, ServerContext
from asyncfl_lite.base.devices import machine, torch_threads, usual_torch
from asyncfl_lite.base.errors import ConfigError, ResultError
from asyncfl_lite.base.files import cache_root, fingerprint, sealed, unsealed, write_atomically
from asyncfl_lite.base.registry import is_ours, on_copies, written_as
from asyncfl_lite.base.streams import no_global_draws, stream, untouched_generators
from asyncfl_lite.clients.cohorts import LocalTraining
from asyncfl_lite.models.base import forward_flop, initial_model
from asyncfl_lite.models.compute import Request
from asyncfl_lite.models.images import begin_anew, only_tracks
from asyncfl_lite.models.probe import check_conduct, takes_one, why_alone
from asyncfl_lite.models.vectors import VectorModel, all_finite
from asyncfl_lite.models.weights import WeightsInitial
from asyncfl_lite.runs.config import Config, as_config, registries
from asyncfl_lite.runs.store import checksum, data_of, meaning
from asyncfl_lite.simulator.delays import prepared
from asyncfl_lite.simulator.jobs import Outcome, Schedule, who_did_what
from asyncfl_lite.simulator.server import Server
from asyncfl_lite.simulator.simulation import Simulation
from asyncfl_lite.tasks import Task, TaskSource
from asyncfl_lite.tasks.partitions import sizes_of
from asyncfl_lite.tasks.task import check_augment
from asyncfl_lite.tasks.task_checks import check_classes, check_scoring

Labelled = tuple[Tensor, Tensor] | None
"""The inputs and labels that a server keeps, or None."""
COHORT_UP_TO_FLOP = 1_000_000
"""Largest number of operations, per sample in a forward pass, of models that ``vectorize="auto"`` trains in cohorts;
a larger model keeps a core busy by itself."""


def load_task(source: TaskSource) -> Task:
    """Load a task, or return the loaded one from a cache if its files have not changed."""
    files = source.files()
    return _loaded(source, fingerprint(files) if files else None)


def task_of(config: Config, own: Task | None = None) -> Task:
    """Return a run's task, as drawn for its seed: the user's own data if given, else the task that ``config`` names."""
    return checked_task(config, own)[0]


def checked_task(config: Config, own: Task | None = None) -> tuple[Task, int]:
    """Return the task, as :func:`task_of` does, and the checksum of its data, which are as they were loaded."""
    if own is None and config.own_task is not None:
        raise ConfigError(
            f"task: this is the configuration of a run on your own data ({config.own_task!r}), which it does "
            "not contain; pass the data too, as in run(config, task=…)"
        )
    given = load_task(config.task_settings) if own is None else own
    task = given.of_run(config.seed).scored_on(config.eval_split)
    now = checksum(task)
    if own is not None or task.test_inputs not in _SUMS:
        check_classes(task)
    if own is not None or _SUMS.setdefault(task.test_inputs, now) == now:
        return task, now
    warnings.warn(f"task: the data of {task.name!r} were changed in this process; they are loaded again", stacklevel=2)
    _loaded.cache_clear()
    return checked_task(config)


_SUMS = WeakTensorKeyDictionary()
"""Test inputs of tasks that runs have used -> the checksum of the task's data."""


@lru_cache(maxsize=4)
@usual_torch()
def _loaded(source: TaskSource, _: str | None) -> Task:
    # one thread: the same data for runs with any number of threads
    with torch_threads(1), written_as(task_settings=source), untouched_generators() as before:
        task = source.load()
        if not is_ours(source) and (drawn := before.drawn()) and checksum(source.load()) != checksum(task):
            raise ConfigError(
                f"task: {type(source).__name__}.load draws from global random numbers ({drawn}), so its data differ "
                "each time; use a generator of its own with a fixed seed"
            )
        return task


def servers_own(config: Config, task: Task) -> np.ndarray:
    """Return the ``(k,)`` indices of the labelled samples that the server keeps; no client gets them."""
    if config.held_out == 0:
        return np.zeros(0, dtype=np.int64)
    indices = task.own_places
    count = max(1, round(config.held_out * len(indices)))
    return np.sort(indices[stream(config.seed, "labelled set").permutation(len(indices))[:count]])


def deal_out(config: Config, task: Task) -> list[np.ndarray]:
    """Return, for each client, the ``(n_i,)`` indices of its samples in the task's training set."""
    if task.clients and (config.partition != "given" or config.clients != len(task.clients)):
        raise ConfigError(
            f"partition: the data came with their clients, so it must be 'given' with clients={len(task.clients)}, got "
            f"{config.partition!r} with clients={config.clients}"
        )
    rng, clients_own = stream(config.seed, "partition"), np.zeros(len(task.labels), dtype=bool)
    clients_own[task.own_places] = True
    clients_own[servers_own(config, task)] = False
    theirs = np.flatnonzero(clients_own)
    kinds = (task.labels.cpu().numpy() if task.kinds is None else task.kinds)[theirs]
    owners = None if task.owners is None else task.owners[theirs]
    partition = config.partition_settings
    with written_as(partition_settings=partition):
        parts = partition.split(kinds, config.clients, rng, owners=owners)
    return parts if clients_own.all() else [theirs[part] for part in parts]


class Fitted(NamedTuple):
    """A run's model, whether it draws random numbers in training, as dropout does, and whether it trains in cohorts."""

    model: VectorModel
    draws: bool
    cohort: bool


def fit_model(config: Config, task: Task, parts: Sequence[np.ndarray], module: nn.Module) -> Fitted:
    """Try the initial model on two samples of a task, and decide how clients train it.

    Raises:
        ConfigError: when the model does not fit the task; the message says why.
        DataError: when the losses or the scores of a user's own task class fail.
    """
    model = VectorModel(module)
    if model.buffer_slots:
        begin_anew(model)
    size, sizes = config.batch_size, sizes_of(parts)
    single = np.flatnonzero(sizes if size == 1 else sizes % size == 1)
    ours = all(map(is_ours, (config.model_settings, config.initial_settings, type(task)))) and task.augment is None
    outputs = (*task.labels.shape[1:], task.num_classes)
    kind = (config.model_settings, model.architecture, task.input_spec, task.inputs.dtype, outputs)
    case = (*kind, config.vectorize, config.device, len(single) > 0)
    if ours and case in _WITHOUT_FAULT:
        return Fitted(model, *_WITHOUT_FAULT[case])
    draws = check_conduct(config.model_settings.title, model, task.samples[0], outputs, task.vocabulary)
    x, buffers = model.flatten()
    check_scoring(task, lambda inputs: model.outputs(x, inputs, buffers))
    check_augment(task.augment, task.samples[0])
    steady = len(single) > 0 and _steady_on_one(config, task, model, single[0])
    cohort = _trains_together(config, task, model, draws)
    if ours and not (steady or model.overwrites or model.needs_two):
        _WITHOUT_FAULT[case] = draws, cohort
    return Fitted(model, draws, cohort)


_WITHOUT_FAULT: dict[Hashable, tuple[bool, bool]] = {}
"""Models of this package that a run has tried without finding anything unusual, with all on which that depends ->
the last two fields of :class:`Fitted`."""


def _steady_on_one(config: Config, task: Task, model: VectorModel, client: int) -> bool:
    """Prepare the model for minibatches of one sample; return whether BatchNorm goes by running statistics there."""
    if takes_one(model, task.samples[0]):
        return False
    name, which = config.model_settings.title, f"a minibatch of one sample, such as client {client}'s last"
    model.steady_on_one()
    if not takes_one(model, task.samples[0]):
        raise ConfigError(
            f"model: {name!r} cannot be trained on {which}; take a normalisation that keeps running statistics "
            "or goes by single samples, such as GroupNorm"
        )
    _say(f"model: {name!r} cannot normalise {which}; BatchNorm goes by its running statistics there")
    return True


def _trains_together(config: Config, task: Task, model: VectorModel, draws: bool) -> bool:
    """Return whether to train clients in cohorts; this depends only on the configuration, the task and the model."""
    reason = "with running statistics" if model.num_buffers else "that draws random numbers" if draws else ""
    if not config.model_settings.vectorises:
        reason = "of this kind"
    if reason and config.vectorize == "on":
        raise ConfigError(f"vectorize: a model {reason} trains one by one, got 'on'")
    if reason or config.vectorize == "off":
        return False
    if config.vectorize == "auto" and forward_flop(model, task.input_spec) > COHORT_UP_TO_FLOP:
        return False
    alone, name = why_alone(model, task.samples[0]), config.model_settings.title
    if alone and config.vectorize == "on":
        raise ConfigError(f"vectorize: {name!r} trains one by one ({alone}), got 'on'")
    if alone:
        _say(f"model: {name!r} is trained one by one, as several cannot be computed together ({alone})")
    return not alone


def _say(line: str) -> None:
    warnings.warn(line, stacklevel=7)  # points at the user's line that makes the Run


def method_for(config: Config, model: VectorModel) -> Algorithm:
    """Return a run's method, which never changes the statistics of a model that only tracks them: all jobs begin anew.

    The clients still report what their trackers recorded.
    """
    method = config.make_algorithm()
    if model.buffer_slots and only_tracks(model):
        method.bn_mode = "freeze"
    return method


def first_module(config: Config, task: Task, labelled: Labelled, state: Mapping[str, Tensor] | None) -> nn.Module:
    """Return the module from which a run starts, on its device; ``state`` is a state dict to start from, or None."""
    weights, rng = int(stream(config.seed, "model").integers(2**31)), stream(config.seed, "initial")
    spec, initialiser = config.model_settings, config.initial_settings
    copies = None if labelled is None else (labelled[0].clone(), labelled[1].clone())
    with (
        written_as(model_settings=spec, initial_settings=initialiser),
        no_global_draws(initialiser, f"initial: {type(initialiser).__name__}.build", "the generator that it is given"),
    ):
        make = partial(initialiser.build, spec, task, copies, weights, rng)
        like = partial(initial_model, spec, task.input_spec, weights)
        if initialiser.costly and config.own_task is None:
            module = remembered(config, make, like)
        elif state is not None and isinstance(initialiser, WeightsInitial):
            module = initialiser.filled(like(), state, "run(…, weights)")
        else:
            module = make()
        return module.to(config.device)


def remembered(config: Config, make: Callable[[], nn.Module], like: Callable[[], nn.Module]) -> nn.Module:
    """Return the initial model of ``config`` from the cache, or make the model and cache it.

    So all methods that start from a chain of teachers share one chain. The models are kept in ``initial/`` of the cache
    folder, under a digest of everything that they depend on. It is not an error if the folder cannot be written to.
    ``like`` makes a module of the same architecture, with any weights.
    """
    groups = ("task", "task_settings", "model", "model_settings", "initial", "initial_settings")
    whole, data = config.as_dict(), data_of(config)
    decisive = {name: whole[name] for name in (*groups, "device", "threads", "seed")}
    decisive |= {"held_out": config.held_out, "meaning": meaning(config), "machine": machine(config.device)}
    decisive |= {"data": data} if data else {}
    digest = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:20]
    path = cache_root() / "initial" / f"{config.initial}-{digest}.pt"
    if path.exists():
        with suppress(Exception):  # torch raises many kinds of error for a damaged file; then the model is made anew
            module = like()
            content = io.BytesIO(unsealed(path.read_bytes()))
            module.load_state_dict(torch.load(content, map_location="cpu", weights_only=True))
            return module
    module, content = make(), io.BytesIO()
    torch.save(module.state_dict(), content)
    with suppress(ResultError):
        write_atomically(path, lambda file: file.write(sealed(content.getvalue())))
    return module


OF_OUTPUTS = ("predictions", "prediction_counts", "answers", "class_logits")
"""Functions of a task that a server's context has, too."""


def start_method(
    algorithm: Algorithm,
    config: Config,
    task: Task,
    model: VectorModel,
    labelled: Labelled,
    rng: np.random.Generator,
    training: LocalTraining,
    compute: Callable[[Request], Any],
) -> None:
    """Give a method the first weights, and the context from which its server asks for data and computations."""
    x0, buffers = model.flatten()
    if not all_finite(x0):
        name = config.model_settings.title
        raise ConfigError(f"initial: the first weights of {name!r} are not finite (NaN or infinity)")
    context = ServerContext(
        model=model,
        num_clients=config.clients,
        rng=rng,
        unlabelled=lambda name, count: task.unlabelled_set(name, count, stream(config.seed, "unlabelled")),
        labelled=labelled,
        client_lr=training.lr_at,
        inputs=task.input_spec,
        compute=compute,
        **{name: on_copies(getattr(task, name)) for name in OF_OUTPUTS},
    )
    with written_as(settings=config.settings):
        mask = model.variance_mask.to(x0.device)
        algorithm.start(x0, context, buffers=buffers, variance_mask=mask, keep_versions=False)


def make_simulation(
    config: Config,
    parts: Sequence[np.ndarray],
    algorithm: Server,
    kind: type[Simulation] = Simulation,
    together: bool = True,
) -> Simulation:
    """Build the Simulation for this configuration and partition."""
    sizes = sizes_of(parts)
    ends_and_faults: dict[str, Any] = {"rounds": config.rounds, "horizon": config.horizon}
    if not config.faults.none:
        from asyncfl_lite.simulator.faulty_simulation import faulty

        kind, ends_and_faults["faults"] = faulty(kind), config.faults
    return kind(
        algorithm,
        registries()["scheduling"].get(config.scheduling)(config.concurrency, config.buffer_size),
        prepared(config.delay_settings, sizes, stream(config.seed, "delays setup")),
        np.flatnonzero(sizes).tolist(),
        seed=config.seed,
        server_time=config.server_time,
        selection=registries()["selection"].get(config.selection)(**config.selection_settings.model_dump()),
        num_samples=dict(enumerate(sizes.tolist())),
        together=together,
        **ends_and_faults,
    )


@usual_torch()
def schedule(config: Config | Mapping[str, Any], *, task: Task | None = None) -> Schedule:
    """Return the schedule of a run (which client trains when) without training anything.

    ``config`` may also be a dict of settings; ``task`` is your own data, as for :func:`run`.

    Delays do not depend on weights, so this is exactly the schedule that :func:`run` follows, as long as no
    update is refused; losses and accuracies are missing. A selection that uses losses (``oort``) has none here, so its
    schedule differs from the run's.

    Example: four clients train at a time, all jobs take one unit of virtual time, and two updates make a version. The
    jobs of the last two updates were dispatched when the first two clients reported, just before version 1 was made, so
    these updates are two versions late.

    >>> from asyncfl_lite import Config, schedule
    >>> jobs = schedule(Config(clients=6, concurrency=4, buffer_size=2, delay="constant", rounds=3))
    >>> jobs.updates[["arrived_at", "start_version", "staleness"]].astype(int).values.tolist()
    [[1, 0, 0], [1, 0, 0], [1, 0, 1], [1, 0, 1], [2, 0, 2], [2, 0, 2]]
    >>> len(jobs.in_flight)
    4
    """
    from asyncfl_lite.simulator.clock_only import ClockOnly, VersionCounter

    config = as_config(config)
    parts = deal_out(config, task_of(config, task))
    simulation = make_simulation(config, parts, VersionCounter(config.buffer_size), kind=ClockOnly)
    cast(ClockOnly, simulation).run_alone([Outcome(None, num_samples=len(part)) for part in parts])
    return who_did_what(simulation, parts)
