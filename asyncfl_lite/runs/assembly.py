"""What a configuration decides before anything is trained: the data, which client has which of it, the clock."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from asyncfl_lite.algorithms import Algorithm
from asyncfl_lite.base.streams import stream
from asyncfl_lite.runs.config import Config
from asyncfl_lite.simulator.clock_only import ClockOnly, VersionCounter
from asyncfl_lite.simulator.simulation import Observer, Simulation
from asyncfl_lite.simulator.tables import Schedule, who_did_what
from asyncfl_lite.simulator.trouble import Trouble, troubled
from asyncfl_lite.simulator.update import Outcome
from asyncfl_lite.tasks import Task, TaskSource


@lru_cache(maxsize=4)
def load_task(source: TaskSource) -> Task:
    """Load a task, once in each process."""
    return source.load()


def servers_own(config: Config, task: Task) -> np.ndarray:
    """Return the ``(k,)`` places of the labelled samples that the server keeps, none of which a client gets."""
    if config.held_out == 0:
        return np.zeros(0, dtype=np.int64)
    count = max(1, round(config.held_out * len(task.labels)))
    return np.sort(stream(config.seed, "labelled set").permutation(len(task.labels))[:count])


def deal_out(config: Config, task: Task) -> list[np.ndarray]:
    """Return client -> ``(n_i,)`` places of its samples in the task's training set."""
    rng, theirs = stream(config.seed, "partition"), np.arange(len(task.labels))
    theirs = np.setdiff1d(theirs, servers_own(config, task))
    kinds = (task.labels.cpu().numpy() if task.kinds is None else task.kinds)[theirs]
    owners = None if task.owners is None else task.owners[theirs]
    return [theirs[part] for part in config.partition_settings.split(kinds, config.clients, rng, owners=owners)]


def make_simulation(
    config: Config,
    parts: Sequence[np.ndarray],
    algorithm: Algorithm | VersionCounter,
    observers: Sequence[Observer] = (),
    kind: type[Simulation] = Simulation,
    together: bool = True,
) -> Simulation:
    """Return the clock of a run in which ``algorithm`` receives what clients with these ``parts`` send."""
    sizes = np.array([len(part) for part in parts])
    trouble: dict[str, Trouble] = {}
    if not config.trouble.none:
        kind, trouble = troubled(kind), {"trouble": config.trouble}
    return kind(
        algorithm,
        config.make_scheduling(),
        config.delay_settings.prepare(sizes, stream(config.seed, "delays setup")),
        np.flatnonzero(sizes).tolist(),
        seed=config.seed,
        rounds=config.rounds,
        horizon=config.horizon,
        server_time=config.server_time,
        selection=config.make_selection(),
        num_samples=dict(enumerate(sizes.tolist())),
        observers=observers,
        together=together,
        **trouble,
    )


def schedule(config: Config) -> Schedule:
    """Return who trains when under ``config``, without training anything.

    Delays do not depend on weights, so this is exactly the schedule that :func:`run` follows, as long as no
    update is refused; losses and accuracies are missing. A selection that goes by losses (``oort``) has none to go
    by here, so its schedule is another one than the run's.

    Example: four clients train at a time, all jobs take one unit of virtual time, two updates make a version. The
    last two were dispatched when the first two reported, just before version 1 was made, so they are two versions late.

    >>> from asyncfl_lite import Config, schedule
    >>> jobs = schedule(Config(clients=6, concurrency=4, buffer_size=2, delay="constant", rounds=3))
    >>> jobs.updates[["arrived_at", "start_version", "staleness"]].astype(int).values.tolist()
    [[1, 0, 0], [1, 0, 0], [1, 0, 1], [1, 0, 1], [2, 0, 2], [2, 0, 2]]
    >>> len(jobs.in_flight)
    4
    """
    parts = deal_out(config, load_task(config.task_settings))
    simulation = make_simulation(config, parts, VersionCounter(config.buffer_size), kind=ClockOnly)
    simulation.run_alone([Outcome(None, num_samples=len(part)) for part in parts])
    return who_did_what(simulation, parts)
