"""The papers' own cells: each federation is set up, and every task meets every one of its methods for one version.

Data are made up, of the papers' shapes (``paper_shapes.py``), as nobody's machine holds all of them.
"""

from __future__ import annotations

from pathlib import Path

import paper_shapes
import pytest

from asyncfl_lite import Config
from asyncfl_lite.algorithms import FedRevive
from asyncfl_lite.runs import assembly
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.clock_only import ClockOnly, VersionCounter
from asyncfl_lite.simulator.jobs import Outcome
from asyncfl_lite.tasks.task import TASKS
from asyncfl_reproduction.grid.cells import Cell, expand_grid
from asyncfl_reproduction.home import CELLS

PAPER = expand_grid(CELLS / "paper.yaml")
OWN_TOKENS = {"tokenizer": None}
"""In place of the printed checkpoints' tokenisers, which must be downloaded."""
OWN_MODEL = {"checkpoint": None, "width": 16, "layers": 1}
"""In place of the printed checkpoints: BERT, T5 and Qwen as they are, but small and with random weights."""


def settings_on_made_up_data(cell: Cell) -> dict:
    """Return a cell's settings, with a text's tokeniser and model in place of what must be downloaded."""
    given = cell.config.as_dict()
    if "tokenizer" in given["task_settings"]:
        given["task_settings"] |= OWN_TOKENS
        given["model_settings"] |= OWN_MODEL
    return given


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    paper_shapes.write_texts(folder)
    return folder


@pytest.fixture
def data(texts, monkeypatch):
    """Let sets of images and clips be made up; ``data(most)`` says how many samples they may have."""
    monkeypatch.setenv("ASYNCFL_DATA", str(texts))
    real, loaded = assembly._loaded, {}

    def with_most(most: int | None) -> None:
        def load(source, stamp):
            name = next(name for name in TASKS if TASKS.get(name) is type(source))
            if name not in paper_shapes.IMAGES and name not in paper_shapes.CLIPS:
                return real(source, stamp)
            key = (name, str(source))
            if key not in loaded:
                loaded[key] = paper_shapes.made_up(name, source, most)
            return loaded[key]

        monkeypatch.setattr(assembly, "_loaded", load)
        monkeypatch.setattr(TASKS.get("kinetics"), "load", lambda source: load(source, None))  # which teachers ask for

    return with_most


OF_THE_METHOD = {
    "algorithm", "settings", "model", "model_settings", "initial", "initial_settings", "client_lr", "rounds", "server_lr",
    "client_optimizer", "weight_decay", "client_lr_decay", "bn_mode", "horizon", "eval_every",
}  # fmt: skip
"""What does not bear on who has which data and trains when, but for the samples that the server keeps."""
OF_THE_DEAL = (
    "task", "task_settings", "partition", "partition_settings", "alpha", "clients", "seed", "algorithm", "settings",
    "initial", "initial_settings",
)  # fmt: skip
"""What bears on who has which data."""


BY_NAME = {cell.name: cell for cell in PAPER}
READINGS = [  # a cell, the place and words of a reading in its `ours`, and what its run then has
    ("kuiper/fig3b/bias0/kuiper", "initial_settings", "clipped at L2 norm 1", lambda run: run.initial_settings.clip == 1),
    ("kuiper/fig3b/bias0/kuiper", "initial_settings", "200 epochs", lambda run: run.initial_settings.epochs == 200),
    ("kuiper/fig3b/bias0/kuiper", "t0", "latency threshold", lambda run: run.settings.t0 is None),
    ("kuiper/fig3b/bias0/kuiper", "bn_mode", "as the weights", lambda run: run.bn_mode == "avg"),
    ("kuiper/fig3b/bias0/fedbuff", "settings", "server rate 1", lambda run: run.server_lr == 1),
    ("kuiper/fig3b/bias0/fedbuff", "scheduling", "as soon as they report", lambda run: run.scheduling == "before_agg"),
    ("kuiper/fig4/bias0-clients12/kuiper", "partition", "equal parts", lambda run: run.partition == "noniid_bias"),
    ("kuiper/fig6/k2/kuiper", "partition_settings", "not printed", lambda run: run.partition_settings.bias == 0.8),
    ("kuiper/fig12/slow/kuiper", "partition_settings", "not printed", lambda run: run.partition_settings.bias == 0.5),
    ("kuiper/table4/hmdb51/fedavg", "clients", "500 of 2,062 MB", lambda run: run.clients == 4),
    ("fedadt/table1/mnist-dir0.1/fedadt", "delay", "for each job", lambda run: run.delay == "fedadt"),
    ("fedadt/table1/mnist-dir0.1/fedadt", "correction", "τ > 1", lambda run: run.settings.tau_kd == 1),
    ("fedadt/table1/mnist-dir0.1/fedadt", "labelled set", "no client keeps", lambda run: run.held_out == 0.005),
    ("fedadt/table1/mnist-dir0.1/fedbuff", "staleness_weight", "none", lambda run: run.settings.staleness_weight == "none"),
    ("fedecho/table2/large-dir0.1/fedbuff", "scheduling", "reporter is one", lambda run: run.scheduling == "before_agg"),
    ("fedecho/table2/large-dir0.1/fedbuff", "client_optimizer", "without momentum", lambda run: run.client_optimizer == "sgd"),
    ("fedecho/table2/large-dir0.1/fedbuff", "client_optimizer", "constant rate", lambda run: run.client_lr_decay == 1),
    ("fedecho/table5/fedecho", "partition", "sources", lambda run: run.alpha == 0.6),
    ("fedecho/table11/no-clip", "delay, alpha", "Table 2 has", lambda run: (run.delay, run.alpha) == ("fedecho_large", 0.1)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "place", "words", "true"), READINGS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_reading_of_ours_is_named_and_is_what_runs(name, place, words, true):
    cell = BY_NAME[name]
    assert words in cell.ours[place] and true(cell.config)


def test_each_federation_is_set_up_at_its_own_size(data):
    """Each client has what the partition deals it; the clock makes a version. Cells with the same federation share it."""
    data(None)
    federations = {}
    for cell in PAPER:
        given = settings_on_made_up_data(cell)
        own = {name: value for name, value in given.items() if name not in OF_THE_METHOD}
        federations.setdefault((str(own), cell.config.held_out), (cell.name, given))
    wrong, dealt = [], {}
    for name, given in federations.values():
        config = Config(**given | {"rounds": 1, "horizon": None})
        deal = str([given.get(of) for of in OF_THE_DEAL])
        parts = dealt[deal] = dealt.get(deal) or assembly.deal_out(config, assembly.task_of(config))
        counter = VersionCounter(config.buffer_size)
        simulation = assembly.make_simulation(config, parts, counter, kind=ClockOnly)
        simulation.run_alone([Outcome(None, num_samples=len(part)) for part in parts])
        if len(parts) != config.clients or not any(map(len, parts)) or counter.version != 1:
            wrong.append(name)
    assert len(PAPER) > 550 and len(federations) > 100 and not wrong


PAIRS = {(cell.config.task, cell.config.model, cell.config.algorithm, cell.config.initial): cell for cell in PAPER}
"""One cell for each task with each model, method and start."""
SMALL = {
    "distill_samples": 4, "distill_q": 1, "distill_batch_size": 2, "num_teachers": 2, "k_kd": 1, "kd_batch_size": 2,
    "k_synth": 1, "kd_fraction": 0.5, "queue_length": 2,
    "freeze_rounds": 0, "synthesis_only_rounds": 0, "adversarial_from": 1,
}  # fmt: skip
"""Sizes of methods' own work at the server."""
SIDE = 32
"""Of clips: their networks take any size."""


def in_small(cell: Cell) -> Config:
    """Return a cell's configuration with its model and method, cut to two jobs of one minibatch of two samples."""
    given = settings_on_made_up_data(cell)
    if "scored" in given["task_settings"]:
        given["task_settings"] |= {"test_samples": 4, "scored": 2}  # of which answers are written, token by token
    if cell.config.task in paper_shapes.CLIPS:
        given["task_settings"]["side"] = SIDE
    if given["initial"] == "teacher_chain":
        frames = given["task_settings"]["frames"]
        given["initial_settings"] |= {"epochs": 1, "batch_size": 4, "task_settings": {"frames": frames, "side": SIDE}}
    given.pop("alpha", None)  # of the partition, which is iid here
    given["settings"] |= {name: value for name, value in SMALL.items() if name in given["settings"]}
    return Config(**given | {"clients": 4, "concurrency": 2, "buffer_size": min(given["buffer_size"], 2), "rounds": 1,
                             "horizon": None, "local_epochs": None, "local_steps": 1, "batch_size": 2, "device": "cpu",
                             "eval_every": 1, "partition": "iid", "partition_settings": {}})  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("cell", PAIRS.values(), ids=["-".join(pair) for pair in PAIRS])
def test_each_task_meets_each_of_its_methods_for_a_version(cell, data, monkeypatch):
    data(8)
    monkeypatch.setattr(FedRevive, "synth_batch_size", 2)
    run = Run(in_small(cell))
    before = run.algorithm.x.clone()
    result = run.finish()
    assert result.summary["versions"] == 1 and result.curve["loss"].notna().all()
    assert run.algorithm.x.equal(before) == (run.config.client_lr == 0), (
        "a chain of teachers alone has no client's rate"
    )
