"""FedEcho's numbers that need no training, such as durations, staleness and the versions that clients hold."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from asyncfl_lite.runs.assembly import load_task, schedule
from asyncfl_lite.runs.config import Config
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.jobs import Schedule
from asyncfl_lite.tasks import TASKS

LARGE, MILD = LAWS = ("fedecho_large", "fedecho_mild")
CATEGORIES = ("short", "medium", "long")
SEEDS = range(5)
VERSIONS = 500
"""Number of versions in the paper's runs on images."""


class Runtimes(NamedTuple):
    """The shortest and longest duration that a delay law draws for each category, and the number of long clients."""

    ranges: dict[str, tuple[float, float]]
    long: int


class Stored(NamedTuple):
    """The clients' outputs that FedEcho's server stores, at the paper's scale.

    Attributes:
        clients: number of clients N, whose outputs are all kept.
        samples: number of unlabelled samples.
        outputs: number of outputs for each sample: classes, or tokens times vocabulary.
        parameters: number of parameters in one model.
    """

    clients: int
    samples: int
    outputs: int
    parameters: int

    @property
    def logits_over_model(self) -> float:
        """Number of stored outputs, divided by the number of parameters in one model."""
        return self.clients * self.samples * self.outputs / self.parameters


TOKENS, VOCABULARY = 320, 151_936
"""Tokens per sample of MathInstruct (where this package cuts it; not printed), and in Qwen2.5's vocabulary."""
STORED = {
    "CIFAR-10": Stored(50, 2000, 10, 11_173_962),
    "CIFAR-100": Stored(50, 2000, 100, 11_220_132),
    "MRPC": Stored(10, 100, 2, 109_483_778),
    "MathInstruct": Stored(10, 100, TOKENS * VOCABULARY, 1_543_714_304),
}
"""ResNet-18, BERT-base and Qwen2.5-1.5B, with the printed numbers of clients and samples."""


@lru_cache(maxsize=1)
def runtimes(clients: int = 50, draws: int = 200) -> dict[str, Runtimes]:
    """Draw durations from each delay law, and return their range by category of client."""
    rng, found = np.random.default_rng(0), {}
    for law in LAWS:
        delays = DELAYS.get(law)().prepare(np.arange(1, clients + 1), rng)
        ranges = {}
        for category in CATEGORIES:
            members = [client for client in range(clients) if delays.categories[client] == category]
            drawn = [delays.draw(client, rng) for client in members for _ in range(draws)]
            ranges[category] = (min(drawn), max(drawn))
        found[law] = Runtimes(ranges, delays.categories.count("long"))
    return found


@lru_cache(maxsize=len(LAWS) * len(SEEDS))
def planned(law: str, seed: int) -> Schedule:
    """Simulate the schedule of the paper's 500 versions under a delay law, without training."""
    return schedule(Config(delay=law, rounds=VERSIONS, seed=seed))


def staleness_of_long_clients(law: str) -> np.ndarray:
    """Return the mean staleness of updates from ``long`` clients, one number per seed, ``(5,)``."""
    means = []
    for seed in SEEDS:
        updates, clients = planned(law, seed).updates, planned(law, seed).clients
        means.append(updates["staleness"][updates["client"].map(clients["category"]) == "long"].mean())
    return np.array(means)


def most_versions_held(plan: Schedule) -> int:
    """Return the largest number of distinct model versions that clients in flight hold at any one time."""
    updates, waiting = plan.updates, plan.in_flight
    began = np.concatenate([updates["dispatched_at"], waiting["dispatched_at"]])
    ended = np.concatenate([updates["arrived_at"], np.full(len(waiting), np.inf)])
    started_from = np.concatenate([updates["start_version"], waiting["start_version"]])
    return max(len(np.unique(started_from[(began <= time) & (time < ended)])) for time in np.unique(began))


@lru_cache(maxsize=len(LAWS))
def versions_held(law: str) -> tuple[int, ...]:
    """Return the largest number of model versions that clients hold at once during 500 versions, by seed."""
    return tuple(most_versions_held(planned(law, seed)) for seed in SEEDS)


@lru_cache(maxsize=1)
def larger_class_of_pairs() -> float:
    """Return the share of the larger class among the test pairs of the generated text task."""
    share = float(load_task(TASKS.get("pairs")()).test_labels.float().mean())
    return max(share, 1 - share)
