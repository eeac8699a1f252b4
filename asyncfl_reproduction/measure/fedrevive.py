"""Our measurements for FedRevive's published numbers that recorded runs do not provide.

Three kinds of numbers need no training: staleness at the paper's scale, the schedules of β, and the operations of the
paper's model. Two come from short runs of small models, which are the same every time: how good the proxies are (Table
2), and what each part of an update does (Fig. 4).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from asyncfl_lite.algorithms.afl_dw import AFLDW
from asyncfl_lite.algorithms.fedrevive import FedRevive
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.settings_files import yaml_in
from asyncfl_lite.models import MODELS
from asyncfl_lite.models.base import InputSpec, forward_flop
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.lockstep import finish_together
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.jobs import Arrival
from asyncfl_lite.simulator.simulation import Simulation
from asyncfl_lite.tasks.partitions import label_counts
from asyncfl_reproduction.measure import kept

IN_FLIGHT, UPDATES = 100, 20_000
"""Clients in flight and updates in the simulation of staleness, with 1,000 clients."""
FAMILIES = ("cosine", "linear", "exponential", "stepwise")
"""Schedules of β in the authors' code."""
SEEDS = (0, 1, 2)
"""Seeds of the short runs for the proxies; three suffice to distinguish them from equal shares."""
SEEDS_OF_PARTS = tuple(range(10))
"""Seeds of the short runs for the parts of an update."""
_RUNS = yaml_in(Path(__file__).with_name("fedrevive.yaml").read_text("utf-8"))
SMOKE: dict[str, Any] = _RUNS["smoke"]
"""The smoke tier's cell of FedRevive, on digits and up to time 5."""
PROBED: dict[str, dict[str, Any]] = _RUNS["probed"]
"""Data set of Table 2 -> short runs of its stand-in."""


@lru_cache(maxsize=2)
def staleness(delay: str) -> np.ndarray:
    """Return the ``(n,)`` staleness of updates from 1,000 simulated clients, 100 in flight, one update per version.

    The first tenth, in which the clients that began together have not spread out yet, is left out.
    """
    at_scale = {"clients": 1000, "concurrency": IN_FLIGHT, "rounds": UPDATES}
    planned = schedule(Config(delay=delay, algorithm="afl_dw", partition="iid", **at_scale))
    return planned.updates["staleness"].to_numpy()[UPDATES // 10 :]


def betas(family: str, largest: int) -> np.ndarray:
    """Return β for staleness 0, 1, … ``largest`` under a family of schedules, ``(largest + 1,)``."""
    method = AFLDW(beta_family=family)
    return np.array([method.beta(tau) for tau in range(largest + 1)])


@kept
def resnet18_gflop() -> float:
    """Return the operations of a forward pass of ResNet-18 on one image of CIFAR-10, in units of 10^9."""
    spec = MODELS.get("resnet")(width=64, blocks="resnet18", norm="batch")
    return forward_flop(VectorModel(spec.build((3, 32, 32), 10)), InputSpec((3, 32, 32), 10)) / 1e9


def divergence(shares: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return ``(N,)`` KL(shares || others) in nats for two ``(N, C)`` arrays of class proportions."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(shares > 0, shares * np.log(shares / others), 0.0)
    return terms.sum(axis=1)


def proxy_divergences(run: Run) -> pd.DataFrame:
    """Return how far the proxies in a finished run of FedRevive diverge from the true class proportions (Table 2).

    Returns:
        One row for each client that was probed twice: ``client``, ``proxy``, ``uniform``; the latter two are
        the KL divergences, in nats, of its true class proportions from its proxy and from equal shares.

    Raises:
        ConfigError: for another method, or for FedRevive with true proportions.
    """
    server = run.algorithm
    if not isinstance(server, FedRevive) or server.settings.proxy != "estimated":
        raise ConfigError("algorithm: only fedrevive with proxy 'estimated' has proxies")
    clients = [client for client in range(run.config.clients) if server.proxies.complete(client)]
    counts = label_counts(run.task.labels.cpu().numpy(), run.parts, run.task.num_classes)[clients]
    true = counts / counts.sum(axis=1, keepdims=True)
    proxies = server.proxies.of(clients).numpy() if clients else np.zeros((0, run.task.num_classes))
    uniform = np.full_like(true, 1 / run.task.num_classes)
    return pd.DataFrame(
        {"client": clients, "proxy": divergence(true, proxies), "uniform": divergence(true, uniform)},
    )


class UpdateParts:
    """Observer of how the stale delta, the distilled delta and their sum change test accuracy (Figs. 4, 10).

    It observes a run of FedRevive that has not begun. For an update that meets the model ``x_t``, it tests ``x_t + η (1
    - β) Δ``, ``x_t + η β Δ^KD``, and the model with both parts (Eq. 3), which is the run's own next model. The paper
    does not say whether its parts keep their weights; here they do. The run itself is not changed. There are ``every``
    versions between two tests. Each of the ``rows`` holds ``version``, ``staleness``, ``beta``, and the changes of test
    accuracy, as fractions, ``stale``, ``distilled``, ``both``.
    """

    def __init__(self, run: Run, every: int = 1) -> None:
        if not isinstance(run.algorithm, FedRevive):
            raise ConfigError("algorithm: only fedrevive's updates have a distilled part")
        self.run, self.every = run, every
        self.rows: list[dict[str, float]] = []
        self._before: tuple[Tensor, Tensor | None, Tensor | None] | None = None
        self._distil = run.algorithm.distilled_update
        run.algorithm.distilled_update = self._note
        run.simulation.observers.append(self)

    def _note(self) -> Tensor | None:
        server = self.run.algorithm
        buffers = None if server.buffers is None else server.buffers.clone()
        delta = self._distil()
        self._before = (server.x.clone(), buffers, delta)
        return delta

    def __call__(self, simulation: Simulation, arrival: Arrival) -> None:
        """Test the three models after an update that has a distilled part."""
        before, self._before = self._before, None
        if before is None or before[2] is None or arrival.version % self.every:
            return
        server, (x, buffers, delta) = self.run.algorithm, before
        beta = server.beta(arrival.staleness)
        share = server.server_lr * beta * delta
        start = self._accuracy(x, buffers)
        self.rows.append(
            {
                "version": arrival.version,
                "staleness": arrival.staleness,
                "beta": beta,
                "stale": self._accuracy(server.x - share, server.buffers) - start,
                "distilled": self._accuracy(x + share, buffers) - start,
                "both": self._accuracy(server.x, server.buffers) - start,
            }
        )

    def _accuracy(self, x: Tensor, buffers: Tensor | None) -> float:
        run = self.run
        return run.task.evaluate(lambda inputs: run.model.outputs(x, inputs, buffers))["accuracy"]


@kept
def short_run_divergences(dataset: str) -> pd.DataFrame:
    """Return each seed's mean divergence of ``proxy`` and ``uniform`` on a data set's stand-in, in nats."""
    runs = [Run(Config(**PROBED[dataset], seed=seed)) for seed in SEEDS]
    finish_together(runs)
    return pd.DataFrame([proxy_divergences(run)[["proxy", "uniform"]].mean() for run in runs])


@kept
def short_run_parts() -> pd.DataFrame:
    """Return each seed's mean change of test accuracy on digits, as a fraction, by part of an update."""
    runs = [Run(Config(**SMOKE, task="digits", seed=seed)) for seed in SEEDS_OF_PARTS]
    watched = [UpdateParts(run, every=3) for run in runs]
    finish_together(runs)
    return pd.DataFrame([pd.DataFrame(one.rows)[["stale", "distilled", "both"]].mean() for one in watched])
