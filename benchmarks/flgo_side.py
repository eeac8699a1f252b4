"""FLGo with our data, partition, initial weights and durations, and the configuration of our runs to compare.

FLGo's servers, clients, clock and calculator are used as they are. See ``peers.py`` for what is compared.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from asyncfl_lite import Config, Update, schedule
from asyncfl_lite.base import registry
from asyncfl_lite.base.streams import stream
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.delays import DELAYS, ClientDelays, DelayLaw, prepared
from asyncfl_lite.simulator.scheduling import SELECTIONS, IdleClients, Selection

try:
    import flgo
    import flgo.benchmark.partition
    import flgo.simulator.base
    from flgo.algorithm import fedasync, fedbuff
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}: install FLGo as the first lines of benchmarks/peers.py say") from None

METHODS = {"fedbuff": fedbuff, "fedasync": fedasync}
UPDATES, M = 150, 5
MU = 0.005
"""FLGo's default weight of FedAsync's proximal term; ours is 0 unless it is given."""
CONFIG_FILE = """
from functools import partial

import torch
from torch.nn.functional import cross_entropy

train_data, test_data = (torch.utils.data.TensorDataset(*pair) for pair in torch.load("data.pt"))
DataLoader = partial(torch.utils.data.DataLoader, shuffle=True)  # FLGo's general toolkit does not shuffle by itself

def data_to_device(batch, device):
    return [part.to(device) for part in batch]

def compute_loss(model, batch, device):
    inputs, labels = data_to_device(batch, device)
    return {"loss": cross_entropy(model(inputs), labels)}

def eval(model, loader, device):
    right = sum(int((model(inputs).argmax(-1) == labels).sum()) for inputs, labels in loader)
    return {"accuracy": right / len(loader.dataset)}

def get_model():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
"""
"""A benchmark for FLGo's general toolkit. Its image toolkit does not load under this release of torch."""


# What both share -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TickDelays(ClientDelays):
    """Random whole numbers of ticks from 1 to a client's ``longest`` (N,), divided by ``coarser`` and rounded up."""

    longest: np.ndarray
    coarser: int

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of one job of ``client`` in ticks."""
        return math.ceil(int(rng.integers(1, self.longest[client] + 1)) / self.coarser)


@DELAYS.register("whole_ticks")
class WholeTicks(DelayLaw):
    """Durations in whole ticks, as FLGo's clock counts; clients differ up to tenfold."""

    unit = "ticks"

    coarser: int = 1
    """Number of ticks that are merged into one."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> TickDelays:
        """Draw each client's longest job."""
        return TickDelays(rng.integers(200, 2001, len(num_samples)), self.coarser)


@SELECTIONS.register("flgo")
class ChosenByFLGo(Selection):
    """FLGo's choice: uniform over the idle clients that have no update waiting in the buffer."""

    class Settings(registry.Settings):
        """Options of FLGo's choice."""

        seed: int = 0
        """The run's seed."""
        buffer_size: int = 1
        """M; a client is left out until the version that contains its update is made."""

    settings: Settings

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.waiting: set[int] = set()
        self.draws = np.random.RandomState(21 + 346 + self.settings.seed)  # as flgo.init seeds numpy

    def choose(self, idle: IdleClients, count: int, reporter: int | None, rng: np.random.Generator) -> Iterable[int]:
        """Return ``count`` clients in ascending order, as FLGo dispatches them."""
        candidates = sorted(set(idle.as_list()) - self.waiting)
        return sorted(self.draws.choice(candidates, count, replace=False).tolist())

    def observe(self, update: Update) -> None:
        """Leave the client that reported out of the choice until the buffer has been emptied."""
        self.waiting.add(update.client)
        if len(self.waiting) == self.settings.buffer_size:
            self.waiting = set()


def configuration(method: str, seed: int, *, aligned: bool = True, coarser: int = 1, **changes: Any) -> Config:
    """Return our side's configuration; ``aligned`` chooses clients as FLGo does; ``changes`` override settings."""
    buffered = method == "fedbuff"
    own = {"staleness_weight": "poly"} if buffered else {"mixing": 0.6, "staleness_function": "poly", "rho": MU}
    size = M if buffered else 1
    values = {
        "task": "digits", "algorithm": method, "settings": own, "buffer_size": size, "rounds": UPDATES // size,
        "partition": "dirichlet_flgo", "alpha": 0.3, "clients": 20, "concurrency": 8, "scheduling": "after_agg",
        "delay": "whole_ticks", "delay_settings": {"coarser": coarser}, "client_lr": 0.2, "batch_size": 16,
        "local_epochs": 1, "weight_decay": 0.0, "server_lr": 1.0, "eval_every": 25 // size, "seed": seed,
        "selection": "flgo" if aligned else "uniform",
        "selection_settings": {"seed": seed, "buffer_size": size} if aligned else {},
    }  # fmt: skip
    return Config(**values | changes)


def untied_seeds(method: str, count: int) -> list[int]:
    """Return the first seeds with which no two updates arrive in the same tick; FLGo would take such two as one."""
    untied = (s for s in itertools.count() if schedule(configuration(method, s)).updates["arrived_at"].is_unique)
    return list(itertools.islice(untied, count))


# FLGo's side -----------------------------------------------------------------------------------------------------


@dataclass
class Trace:
    """The arrivals, models and accuracies of one run.

    Attributes:
        arrivals: client, tick, version that it started from, version that it went into, of each update.
        models: ``(d,)`` the parameters of each version.
        accuracies: on the test samples, at the start and every so many versions.
    """

    arrivals: list[tuple[int, int, int, int]] = field(default_factory=list)
    models: list[Tensor] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


class OurDelays(flgo.simulator.base.BasicSimulator):
    """FLGo's simulator with one of our delay laws; ``run`` is our run."""

    run: Run

    def initialize(self, *_: Any) -> None:
        """Prepare the delay law as our run does."""
        seed, sizes = self.run.config.seed, np.array([len(part) for part in self.run.parts])
        self.law = prepared(self.run.config.delay_settings, sizes, stream(seed, "delays setup"))
        self.draws = stream(seed, "delays")

    def update_client_responsiveness(self, client_ids: list[int], *_: Any) -> None:
        """Draw jobs' latencies, one tick below their durations, because FLGo sends work a tick after a slot is free."""
        self.set_variable(client_ids, "latency", [self.law.draw(client, self.draws) - 1 for client in client_ids])


def parties(method: str, run: Run, trace: Trace | None, *, aligned: bool, trains: bool = True) -> Any:
    """Return FLGo's server and client classes for a method and one run.

    Its classes are made anew each time: ``flgo.init`` wraps the methods of those that it is given, once more at every
    call, so that a second run of the same classes would draw each latency twice.
    """
    theirs = METHODS[method]

    class Server(theirs.Server):  # type: ignore[misc, name-defined]
        def package_handler(self, received: dict) -> bool:
            if trace is None:
                return super().package_handler(received)
            starts = [model._round - 1 for model in received["model"]]
            made, now = super().package_handler(received), self.gv.clock.current_time
            for client, start in zip(received["__cid"], starts, strict=True):
                trace.arrivals.append((int(client), now, start, self.current_round))
            if made:
                trace.models.append(parameters_to_vector(self.model.parameters()).detach().clone())
            return made

    class Client(theirs.Client):  # type: ignore[misc, name-defined]
        job = -1

        def train(self, model: Any) -> None:
            if trains:
                self.job, self.step = self.job + 1, -1
                super().train(model)

        def get_batch_data(self) -> tuple[Tensor, Tensor]:
            if not aligned:
                return super().get_batch_data()
            if self.step < 0:
                part, seed = run.parts[self.id], run.config.seed
                rng = stream(seed, "batches", self.id, self.job)
                places = run.trainer.training.batches(len(part), rng)
                self.batches = [torch.from_numpy(part[row[row >= 0]]) for row in places]
            self.step += 1
            places = self.batches[self.step]
            return run.task.inputs[places], run.task.labels[places]

    return types.SimpleNamespace(Server=Server, Client=Client, __name__=method)


class Theirs:
    """FLGo in a folder that holds its benchmark and its tasks."""

    def __init__(self, folder: Path, task: Any) -> None:
        torch.save([(task.inputs, task.labels), (task.test_inputs, task.test_labels)], folder / "data.pt")
        (folder / "setting.py").write_text(CONFIG_FILE.replace("data.pt", str(folder / "data.pt")))
        sys.path.insert(0, str(folder))
        self.folder = folder
        with contextlib.chdir(folder):
            name = flgo.gen_benchmark_from_file("digits8", "setting.py", ".", "general")
        self.benchmark = import_module(name)
        self.benchmark.visualize = lambda *_: None

    def runner(self, method: str, run: Run, trace: Trace | None = None, *, aligned: bool, trains: bool = True) -> Any:
        """Return FLGo's server, ready to run, with the clients' samples and the initial weights of ``run``."""
        config, parts = run.config, run.parts

        class OurParts(flgo.benchmark.partition.BasicPartitioner):
            num_parties = config.clients

            def __call__(self, data: Any) -> list[list[int]]:
                return [part.tolist() for part in parts]

        simulator = type("OurDelaysOfARun", (OurDelays,), {"run": run})
        option = {
            "num_rounds": config.rounds, "proportion": config.concurrency / config.clients,
            "num_epochs": config.local_epochs, "learning_rate": config.client_lr, "batch_size": config.batch_size,
            "sample": "uniform_available", "train_holdout": 0.0, "eval_interval": config.eval_every,
            "seed": config.seed, "dataseed": config.seed, "no_log_console": True, "no_tqdm": True,
            "algo_para": [M / config.clients, 1.0] if method == "fedbuff" else [0.6, MU, "poly"],
        }  # fmt: skip
        path = str(self.folder / f"{method}-{config.seed}")
        algorithm = parties(method, run, trace, aligned=aligned, trains=trains)
        with contextlib.redirect_stdout(io.StringIO()):
            flgo.gen_task({"benchmark": self.benchmark, "partitioner": OurParts()}, path, overwrite=True)
            server = flgo.init(path, algorithm, option, Simulator=simulator)
        vector_to_parameters(run.algorithm.x.clone(), server.model.parameters())
        return server

    def trace(self, method: str, run: Run) -> Trace:
        """Run FLGo, aligned with our ``run``, and return its :class:`Trace`."""
        server = self.runner(method, run, trace := Trace(), aligned=True)
        server.run()
        trace.accuracies = list(server.gv.logger.output["test_accuracy"])
        return trace
