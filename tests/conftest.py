"""What several test files use.

torch is imported where it is needed, not here: pytest reads this file before it starts the processes that run tests.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
import slow_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import torch

    from asyncfl_lite import Config, Result
    from asyncfl_lite.algorithms import Algorithm, ServerContext, Update
    from asyncfl_lite.models.vectors import VectorModel


hypothesis.settings.register_profile("here", deadline=None)  # a process's first gradient takes a second
hypothesis.settings.load_profile("here")

ROOT = Path(__file__).parents[1]


def tracked() -> list[str]:
    """Names of the project's files: those that git tracks or, in an unpacked source archive, those that it holds."""
    with suppress(FileNotFoundError):
        told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
        if told.stdout:
            return told.stdout.rstrip("\0").split("\0")
    return (ROOT / "asyncfl_lite.egg-info/SOURCES.txt").read_text().splitlines()


def pytest_collection_modifyitems(items):
    """Mark what ``make test-fast`` leaves out, and have nbval run lessons with their exercises solved."""
    slow = slow_tests.listed()
    solved: dict = {}
    for item in items:
        if type(item).__name__ == "IPyNbCell" and "exercise" in item.cell.metadata.get("tags", []):
            from solutions import exercises_of, filled

            if item.path not in solved:
                solved[item.path] = {stub.checked: stub for stub in exercises_of(item.path)}
            item.cell.source = next(filled(s) for c, s in solved[item.path].items() if item.cell.source.endswith(c))
        if f"{item.path.stem}::{getattr(item, 'originalname', '')}" in slow:
            item.add_marker("slow")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Models as small as the tests' run fastest on one."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk():
    """Files that a failing power supply would lose are as good: half of the time of a small save is this call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """What is made once and kept must come from the code that is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASYNCFL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def quick_syntheses():
    """FedRevive makes 16 inputs at every second update; the paper's 64 at every tenth take longer than a test may."""
    from asyncfl_lite.algorithms import FedRevive

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FedRevive, "t_gen", 2)
        patch.setattr(FedRevive, "synth_batch_size", 16)
        yield patch


@pytest.fixture
def cohorts(monkeypatch) -> list[tuple]:
    """The model, the settings of training and the jobs of each cohort, noted when its training begins."""
    from asyncfl_lite.clients.cohorts import Cohort

    begun, begin = [], Cohort.__init__

    def noted(self, model, data, training, works, **ways):
        begun.append((model, training, works))
        begin(self, model, data, training, works, **ways)

    monkeypatch.setattr(Cohort, "__init__", noted)
    return begun


@pytest.fixture
def hears_ctrl_c():
    """Ctrl-C interrupts this process and those that it starts, even where tests were started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


SHARED = Path(os.environ.get("ASYNCFL_DATA") or Path(__file__).parents[1] / "../shared/data").resolve()
"""Where the real data sets may be."""
EVERYTHING = {
    "dropout": 0.1, "crash": 0.2, "late": 2.5, "partial": 0.3, "duplicate": 0.3, "damage": 0.2, "time_out": 4.0,
    "available": 8.0, "away": 2.0,
}  # fmt: skip
"""Every fault that clients can have."""


def needs(name: str) -> pytest.MarkDecorator:
    """Skip where the real files are not there."""
    return pytest.mark.skipif(not (SHARED / name).exists(), reason=f"no {name} in {SHARED}")


def line(call: Callable[[], object], kind: type[Exception] | None = None) -> str:
    """The one line of the error that a call ends with."""
    from asyncfl_lite.base.errors import AsyncFLError

    with pytest.raises(kind or AsyncFLError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def wait_for(condition: Callable[[], object], seconds: float = 150) -> None:
    """Look again and again until it is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def contents(folder: Path) -> dict[Path, bytes | None]:
    """Every file below a folder with what it holds, and every folder."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def same(one: Result, other: Result) -> None:
    """Two results are alike to the last bit."""
    import pandas as pd
    import torch

    from asyncfl_lite.runs.store import TABLES

    assert one.summary == other.summary and (one.x is other.x or torch.equal(one.x, other.x))
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(one, table), getattr(other, table), check_exact=True)


def die_after(arrivals: int, config: Config, path: Path, **given) -> None:
    """Run with a checkpoint until so many arrivals, and fail."""
    from asyncfl_lite import Run

    begun = Run(config, checkpoint=path, **given)
    begun.simulation.observers.append(lambda simulation, _: 1 / (arrivals - len(simulation.arrivals)))
    with pytest.raises(ZeroDivisionError):
        begun.finish()


def vector(*values: float) -> torch.Tensor:
    """A float64 vector."""
    import torch

    return torch.tensor(values, dtype=torch.float64)


def update(delta, start_version=0, client=0, num_samples=1, **more) -> Update:
    """An update of the given values."""
    from asyncfl_lite.algorithms import Update

    return Update(client=client, delta=vector(*delta), start_version=start_version, num_samples=num_samples, **more)


def started(name: str, x0=(1.0, 0.0), context: ServerContext | None = None, **settings) -> Algorithm:
    """A server of the given method and settings, started at ``x0``."""
    from asyncfl_lite import make_algorithm

    method = make_algorithm(name, **settings)
    method.start(vector(*x0), context)
    return method


def toy_grid(folder: Path, *names: str, seeds: Sequence[int] = (0,), cells: dict | None = None, **settings) -> Path:
    """Write a tier's file whose paper has the named cells, or these, or ``toy/a`` alone; return it."""
    small = {"clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 3, **settings}
    tier = {"seeds": list(seeds), "settings": small}
    cells = cells or dict.fromkeys(names or ("toy/a",), {})
    (folder / "toy.yaml").write_text(json.dumps({"paper": "toy", "tiers": {"smoke": tier}, "cells": cells}))
    (folder / "smoke.yaml").write_text("tier: smoke\npapers: [toy.yaml]\n")
    return folder / "smoke.yaml"


@functools.cache
def seeds_apart(cell: str) -> np.ndarray:
    """What ten made-up seeds of a cell differ by, a ``(10,)`` standard normal; every cell has another one."""
    import numpy as np

    rows = np.random.default_rng(7).standard_normal((200, 10))
    return rows[zlib.crc32(cell.encode()) % len(rows)]


class Fixed:
    """Durations by client, always the same."""

    def __init__(self, *durations: float) -> None:
        self.durations = durations

    def draw(self, client: int, rng: np.random.Generator) -> float:
        return self.durations[client % len(self.durations)]


def linear_model(inputs: int, outputs: int) -> VectorModel:
    """A linear softmax student with zero weights, in float64."""
    import torch

    from asyncfl_lite.models.vectors import VectorModel

    layer = torch.nn.Linear(inputs, outputs, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(layer.weight)
    return VectorModel(layer)


@pytest.fixture
def as_in_a_notebook(monkeypatch):
    """The lessons' folder, figures that nobody sees, and no names registered for other tests."""
    import matplotlib.pyplot as plt

    from asyncfl_lite.runs.config import registries

    monkeypatch.chdir(ROOT / "notebooks")
    monkeypatch.setitem(sys.modules, "lesson", type(sys)("lesson"))
    known = registries().values()
    before = [{name: registry.get(name) for name in registry} for registry in known]  # imports all of them
    backend = plt.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(backend)
    for registry, entries in zip(known, before, strict=True):
        loaded = {name: one for name, one in registry._entries.items() if one.__module__.startswith("asyncfl_")}
        registry._entries = loaded | entries  # ours are imported once, when they are asked for


@pytest.fixture
def shown(monkeypatch) -> list:
    """What a report's page displays."""
    things: list = []
    monkeypatch.setattr("asyncfl_reproduction.report.page.display", lambda *more: things.extend(more))
    return things


@pytest.fixture
def context():
    """A server context around a linear model and a given unlabelled set."""
    import numpy as np

    from asyncfl_lite.algorithms import ServerContext

    def make(model: VectorModel, unlabelled: torch.Tensor, seed: int = 0) -> ServerContext:
        return ServerContext(
            model=model,
            num_clients=4,
            rng=np.random.default_rng(seed),
            unlabelled=lambda name, count: unlabelled[:count],
        )

    return make


@pytest.fixture
def own(monkeypatch):
    """Register a model whose module is made by a function, under the name ``own``; return a configuration of it."""
    from own import SMALL

    from asyncfl_lite import Config
    from asyncfl_lite.models import MODELS, ModelSpec

    def register(make: Callable, **settings) -> Config:
        monkeypatch.setitem(MODELS._entries, "own", type("Own", (ModelSpec,), {"build": lambda *_: make()}))
        return Config(model="own", **{**SMALL, **settings})

    return register
