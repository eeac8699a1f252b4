"""What a run computes, reckoned from its configuration alone: client updates, and floating-point operations.

Client updates are versions times buffer and what is in flight at the end. Where a virtual time ends the run, or jobs
are called off, they are those of the run's own clock, which runs alone for the first :data:`WINDOW` of them and is then
taken to go on as before. Samples have made-up labels in equal numbers, dealt out by the run's own partition. A step of
training on a sample is three forward passes. Left out: optimisers and aggregation, FedRevive's generator, and that a
backward pass through frozen layers is cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from asyncfl_lite.algorithms import Algorithm
from asyncfl_lite.algorithms.fedadt import FedADT
from asyncfl_lite.algorithms.fedecho import FedEcho
from asyncfl_lite.algorithms.fedrevive import FedRevive
from asyncfl_lite.algorithms.multi_teacher import MultiTeacher
from asyncfl_lite.reproduction.grid.sizes import Size, forward_of, size_of
from asyncfl_lite.runs.assembly import make_simulation
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.initial import TeacherChain
from asyncfl_lite.simulator.clock_only import NOTHING, ClockOnly, VersionCounter
from asyncfl_lite.simulator.jobs import Job, Outcome
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.partitions import Partition

WINDOW = 1000
"""Client updates that the clock runs for."""
TRAINED = 3
"""Forward passes that a training step takes."""


@dataclass(frozen=True)
class Workload:
    """What one run computes.

    Attributes:
        updates: jobs that clients train.
        forward: operations of a sample's forward pass.
        clients, server, evaluation, initial: operations of local training, of the method's own work on the server,
            of tests of the global model, and of making the initial model.
    """

    updates: float
    forward: float
    clients: float
    server: float
    evaluation: float
    initial: float

    @property
    def flop(self) -> float:
        """All of it."""
        return self.clients + self.server + self.evaluation + self.initial


def workload(config: Config) -> Workload:
    """Return what a run of ``config`` computes.

    Raises:
        AsyncFLError: when the configuration cannot run, or a size that is needed is not known.
    """
    size, algorithm = size_of(config.task_settings), config.make_algorithm()
    held = round(config.held_out * size.samples)
    clients = tuple(
        _sizes(config.partition_settings, size.samples - held, size.inputs.num_classes, size.owners, config.clients)
    )
    updates, versions = _clock(config, clients)
    forward = forward_of(config.model_settings, size.inputs)
    return Workload(
        updates,
        forward,
        clients=forward * updates * _client_passes(config, algorithm, np.array(clients)),
        server=forward * server_passes(algorithm, versions * config.buffer_size, versions, config.clients, held),
        evaluation=forward * (1 + versions / config.eval_every) * _test_passes(size),
        initial=_initial(config, size, held),
    )


@lru_cache(maxsize=256)
def _sizes(partition: Partition, samples: int, classes: int, owners: int, clients: int) -> list[int]:
    """Return how many samples each client gets."""
    rng = np.random.default_rng(0)
    belong = np.arange(samples) % max(owners, clients)
    return [len(part) for part in partition.split(np.arange(samples) % classes, clients, rng, owners=belong)]


def _clock(config: Config, clients: tuple[int, ...]) -> tuple[float, float]:
    """Return how many jobs are trained, with those that are in flight at the end, and how many versions made."""
    calls_off = config.redispatch in ("rounds", "burst") and config.buffer_size < config.concurrency
    if config.horizon is None and not calls_off:
        in_flight = 0 if config.redispatch == "rounds" else config.concurrency
        return float(config.rounds * config.buffer_size + in_flight), float(config.rounds)
    key = config.model_dump_json(include=_DECIDE_THE_CLOCK), clients
    if key not in _CLOCKS:
        _CLOCKS[key] = _run_clock(config, clients)
    return _CLOCKS[key]


_DECIDE_THE_CLOCK = {"rounds", "horizon", "redispatch", "clients", "concurrency", "buffer_size", "server_time"}
_DECIDE_THE_CLOCK |= {"delay", "delay_settings", "selection", "selection_settings"}
_CLOCKS: dict[tuple[str, tuple[int, ...]], tuple[float, float]] = {}


def _run_clock(config: Config, clients: tuple[int, ...]) -> tuple[float, float]:
    most = math.ceil(WINDOW / config.buffer_size)
    rounds = math.inf if config.rounds is None else config.rounds
    begun = config.model_copy(update={"rounds": int(min(most, rounds))})
    parts = [np.empty(count) for count in clients]
    simulation = make_simulation(begun, parts, VersionCounter(config.buffer_size), kind=ClockOnly)
    trained = 0

    def count(jobs: list[Job]) -> list[Outcome]:
        nonlocal trained
        trained += len(jobs)
        return [NOTHING] * len(jobs)

    simulation.run(count)
    versions = simulation.algorithm.version
    if versions < begun.rounds or begun.rounds == rounds:
        return float(trained), float(versions)
    further = min(rounds / versions, math.inf if config.horizon is None else config.horizon / simulation.clock)
    return trained * further, versions * further


def _client_passes(config: Config, algorithm: Algorithm, sizes: np.ndarray) -> float:
    """Return the forward passes of a job, of the mean over clients."""
    sizes = sizes[sizes > 0]
    if config.local_steps is None:
        trained = config.local_epochs * sizes.mean()
    else:
        trained = config.local_steps * np.minimum(sizes, config.batch_size).mean()
    reports = len({"features", "trained_accuracy", "received_accuracy"} & algorithm.client_reports)
    return float(TRAINED * trained + reports * sizes.mean())


def server_passes(algorithm: Algorithm, updates: float, versions: float, clients: int, labelled: int) -> float:
    """Return the forward passes of a sample that a method's server makes.

    Args:
        algorithm: a method; one that is not listed here does nothing but arithmetic on updates.
        updates, versions: that arrive in the whole run, and that it makes.
        clients: N.
        labelled: samples of the server's labelled set.
    """
    return next((passes(algorithm, updates, versions, clients, labelled) for kind, passes in _SERVERS.items()
                 if isinstance(algorithm, kind)), 0.0)  # fmt: skip


def _fedecho(method: FedEcho, updates: float, versions: float, clients: int, labelled: int) -> float:
    """Predictions of every client model on the unlabelled set; Q passes over it a version."""
    chosen = method.settings
    if not method.moves_by_itself:
        return updates * chosen.distill_samples
    size = chosen.distill_samples if chosen.distill_unit == "epochs" else chosen.distill_batch_size
    return updates * chosen.distill_samples + versions * chosen.distill_q * size * TRAINED


def _fedadt(method: FedADT, updates: float, versions: float, clients: int, labelled: int) -> float:
    """For every update, which is stale nearly always: the teacher's answers, and passes over the labelled set."""
    return updates * labelled * (1 + TRAINED * method.settings.kd_rounds)


def _multi_teacher(method: MultiTeacher, updates: float, versions: float, clients: int, labelled: int) -> float:
    """For every version: each teacher's answers on its own batches, which the student trains on."""
    chosen = method.settings
    return versions * chosen.k_kd * chosen.kd_batch_size * chosen.num_teachers * (1 + TRAINED)


def _fedrevive(method: FedRevive, updates: float, versions: float, clients: int, labelled: int) -> float:
    """That after the warm-up; probes; and syntheses, which go forwards and back through teachers and student."""
    chosen = method.settings
    distilled = _multi_teacher(method, updates, max(0.0, versions - chosen.synthesis_only_rounds), clients, labelled)
    probed = 0.0 if chosen.proxy == "true" else min(updates, clients * chosen.t_est) * chosen.probes
    syntheses = max(0.0, versions - chosen.freeze_rounds) / chosen.t_gen
    return distilled + probed + syntheses * chosen.k_synth * chosen.synth_batch_size * 2 * (chosen.num_teachers + 1)


_SERVERS: dict[type[Algorithm], Callable[..., float]] = {
    FedEcho: _fedecho,
    FedADT: _fedadt,
    FedRevive: _fedrevive,
    MultiTeacher: _multi_teacher,
}
"""Most special first."""


def _test_passes(size: Size) -> float:
    """Return the passes of one evaluation; an answer is taken to be half as long as the sequence."""
    written = size.written * size.inputs.shape[0] / 2 if size.written else 0
    return size.test_samples + written


def _initial(config: Config, size: Size, held: int) -> float:
    """Return the operations of training a chain of teachers, if the initial model comes from one."""
    chosen = config.initial_settings
    if not isinstance(chosen, TeacherChain):
        return 0.0
    if chosen.task is not None:
        own = size_of(TASKS.get(chosen.task)(**chosen.task_settings))
        size, held = own, own.samples
    forwards = [forward_of(getattr(spec, "whole", spec), size.inputs) for spec in chosen.chain(config.model_settings)]
    return float(held * (TRAINED * chosen.epochs * sum(forwards) + sum(forwards[:-1])))
