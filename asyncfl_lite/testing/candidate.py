"""The method under test, and small helpers for the checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from asyncfl_lite.algorithms.base import ALGORITHMS, Algorithm, ServerContext
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.streams import stream
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.simulation import Train
from asyncfl_lite.simulator.update import Receipt, Update
from asyncfl_lite.tasks import Task
from asyncfl_lite.tasks.subsets import UnlabelledSet

INPUT_SHAPE = (1, 8, 8)
NUM_CLASSES = 4
SMALL_RUN: dict[str, Any] = {
    "partition": "iid",
    "delay": "exponential",
    "model": "mlp",
    "model_settings": {"hidden": (16,)},
    "local_steps": 2,
    "batch_size": 8,
    "client_lr": 0.1,
    "cohort": "on",
    "eval_every": 1000,
    "seed": 1,
}
"""Settings of the run in which methods are checked; its buffer, concurrency and length depend on the method."""

LIGHTER_SETTINGS = {"distill_samples": 100}
"""Settings that replace a class's defaults in checks, so that its server does not take long."""


class RuleBroken(AssertionError):
    """Raised for a broken rule; the message says what was expected, why it matters, and what was found."""


def expect(kept: bool, sentence: str) -> None:
    """Raise :class:`RuleBroken` with ``sentence`` unless the rule is kept."""
    if not kept:
        raise RuleBroken(sentence)


@dataclass(frozen=True)
class Candidate:
    """The method under test; a call makes a fresh instance with the settings to check.

    Attributes:
        cls: the method's class.
        name: the name under which it is registered while it is checked.
        buffer_size, server_lr, bn_mode, settings: the values with which it is checked.
    """

    cls: type[Algorithm]
    name: str
    buffer_size: int = 1
    server_lr: float = 1.0
    bn_mode: str = "avg"
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self, **changes: Any) -> Algorithm:
        """Make a fresh instance, not yet started."""
        given = {"buffer_size": self.buffer_size, "server_lr": self.server_lr, "bn_mode": self.bn_mode}
        return self.cls(**{**given, **self.settings, **changes})

    def run(self, **changes: Any) -> Run:
        """Make a small run whose method is started: three versions, or six if each update makes one.

        Args:
            changes: settings of :class:`Config` that replace the usual ones.
        """
        buffer_size = changes.get("buffer_size", self.buffer_size)
        concurrency = buffer_size if self.cls.redispatch == "rounds" else max(4, buffer_size)
        usual = {
            **SMALL_RUN,
            "algorithm": self.name,
            "buffer_size": buffer_size,
            "server_lr": self.server_lr,
            "bn_mode": self.bn_mode,
            "settings": self.settings,
            "concurrency": concurrency,
            "clients": concurrency + 2,
            "rounds": 3 if buffer_size > 1 else 6,
        }
        config = Config(**{**usual, **changes})
        return Run(config, small_task(max(240, 4 * config.clients)))

    @property
    def at_least_two(self) -> int:
        """Buffer size of at least two, or 1 for a method without a buffer."""
        return max(2, self.buffer_size) if self.cls.buffered else 1

    @property
    def source_files(self) -> set[str]:
        """Paths of the files with the method's own code, without the base class's."""
        classes = [part for part in self.cls.__mro__ if issubclass(part, Algorithm) and part is not Algorithm]
        members = [getattr(member, "fget", member) for part in classes for member in vars(part).values()]
        return {member.__code__.co_filename for member in members if hasattr(member, "__code__")}


Check = Callable[[Candidate], None]


@contextmanager
def registered(algorithm: type[Algorithm] | Algorithm) -> Iterator[Candidate]:
    """Register a method under a name inside the block, so that configurations find it."""
    cls = algorithm if isinstance(algorithm, type) else type(algorithm)
    if not issubclass(cls, Algorithm):
        raise ConfigError(f"algorithm: must be a subclass of Algorithm or an instance of one, got {algorithm!r}")
    name = f"{cls.__name__} (under check)"
    if isinstance(algorithm, Algorithm):
        settings = algorithm.settings.model_dump()
        make = Candidate(cls, name, algorithm.buffer_size, algorithm.server_lr, algorithm.bn_mode, settings)
    else:
        fields = getattr(cls.Settings, "model_fields", {})
        less = {setting: value for setting, value in LIGHTER_SETTINGS.items() if setting in fields}
        make = Candidate(cls, name, 3 if cls.buffered else 1, settings=less)
    ALGORITHMS.register(name)(cls)
    try:
        yield make
    finally:
        ALGORITHMS.remove(name)


class _EverySet(dict[str, UnlabelledSet]):
    """A mapping that has an unlabelled set under every name."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> UnlabelledSet:
        return lambda count, rng: torch.from_numpy(rng.random((count, *INPUT_SHAPE)))


@lru_cache(maxsize=2)
def small_task(num_samples: int) -> Task:
    """Make a task of images: one image per class plus noise, values in [0, 1], and an unlabelled set under any name."""
    rng = np.random.default_rng(0)
    classes = np.arange(num_samples) % NUM_CLASSES
    images = (rng.random((NUM_CLASSES, *INPUT_SHAPE))[classes] + rng.random((num_samples, *INPUT_SHAPE))) / 2
    inputs, labels = torch.from_numpy(images).float(), torch.from_numpy(classes)
    task = Task.from_tensors(inputs, labels, inputs[:40], labels[:40], name="small")
    return dataclasses.replace(task, unlabelled=_EverySet())


Watch = Callable[[Update, Callable[[Update], Receipt]], Receipt]
"""A function ``(update, receive) -> receive's return value`` that is called between the clock and the method."""


def simulate(run: Run, watch: Watch | None = None, train: Train | None = None) -> Algorithm:
    """Carry ``run`` through to its end, and return its method.

    Args:
        run: a run that has not begun.
        watch: function through which every update passes.
        train: function that turns jobs into outcomes, instead of the run's own training.
    """
    method = run.algorithm
    receive = method.receive
    if watch is not None:
        vars(method)["receive"] = lambda update: watch(update, receive)
    try:
        run.simulation.run(train or run.train)
    finally:
        vars(method).pop("receive", None)
    return method


def reports(make: Candidate, count: int) -> list[Update]:
    """Return the first updates of ``count`` different clients, trained from version 0 and not yet received."""
    many = max(count, make.buffer_size)
    run = make.run(delay="constant", clients=many, concurrency=many, rounds=None, horizon=1.5)
    updates: list[Update] = []

    def keep(update: Update, receive: Callable[[Update], Receipt]) -> Receipt:
        updates.append(update)
        return Receipt(False)

    simulate(run, keep)
    return updates[:count]


def restart(
    run: Run, *, method: Algorithm | None = None, dtype: torch.dtype = torch.float32, **options: Any
) -> Algorithm:
    """Start a method anew from the initial model of ``run``, with the server's random stream at its beginning.

    Args:
        run: the run that provides the initial model and the context.
        method: the method to start; by default, the run's own.
        dtype: type of the method's parameters and of the server's data.
        options: further arguments of ``start``.
    """
    x0, _ = run.model.flatten()
    context = dataclasses.replace(run.algorithm.context, rng=stream(run.config.seed, "server"))
    method = method or run.algorithm
    method.start(x0.to(dtype), context_in_dtype(context, dtype), **{"keep_versions": False, **options})
    return method


def context_in_dtype(given: ServerContext, dtype: torch.dtype) -> ServerContext:
    """Return a server's context with its real-valued tensors in ``dtype``."""
    unlabelled, labelled = given.unlabelled, given.labelled
    return dataclasses.replace(
        given,
        unlabelled=lambda name, count: unlabelled(name, count).to(dtype),
        labelled=labelled and (labelled[0].to(dtype), labelled[1]),
    )


def feed(method: Algorithm, updates: Sequence[Update]) -> Algorithm:
    """Pass all updates to the method, one after another, and return the method."""
    for update in updates:
        method.receive(update)
    return method
