"""Floating-point operations of the paper tier, from which its cost in GPU-days is estimated.

The operations of a forward pass on one sample are counted, or computed from the network's number of parameters; a
training step counts as three forward passes. Included are clients' training, tests, the accuracy that KUIPER asks for,
FedEcho's and FedRevive's servers, and the chains of teachers, each of which is trained once. Not included are reading
data, the other servers, figures, and failed runs.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from asyncfl_lite.runs.config import Config
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.grid.cost import client_updates

SAMPLES = {
    "cifar10": (50_000, 10_000), "cifar100": (50_000, 10_000), "mnist": (60_000, 10_000),
    "fashion_mnist": (60_000, 10_000), "femnist": (100_000, 20_000), "newsgroups20": (11_314, 7_532),
    "newsgroups20_snippets": (11_314, 7_532), "shakespeare": (1_000_000, 100_000), "mrpc": (3_668, 408),
    "mathinstruct": (262_000, 1_319), "hmdb51": (3_570, 1_530), "ucf101": (9_537, 3_783), "kinetics": (240_000, 20_000),
}  # fmt: skip
"""Task -> samples for training and for testing; FEMNIST's and Shakespeare's are rounded."""
GFLOP = {
    "resnet": 1.11, "flgo_cnn": 0.03, "cnn": 0.0006, "lstm": 0.03, "femnist_cnn": 0.05, "t5": 15.5, "bert": 28.0,
    "causal_lm": 988.0,
}  # fmt: skip
"""Model -> operations of a forward pass on one sample, in 10^9. Text models: 2 per parameter and token; T5 has 128
tokens, BERT 128 and Qwen 320."""
CLIP_GFLOP = {"resnet18": 5.09, "resnet26": 7.69, "resnet34": 9.42}
"""3-D network -> operations of a forward pass on one frame of a clip of 112×112, in 10^9."""
CHAIN = ("resnet34", "resnet26", "resnet18")
SERVER_SHARE = {"fedecho": 1.0, "fedrevive": 1.5, "dd_fedrevive": 1.5}
"""Operations of a server, as a multiple of its clients': FedRevive's by the paper's Table 3, FedEcho's by its 2,000
samples, once forward for each update and some passes for each version."""
STEP = 3
"""Forward passes equivalent to one training step."""


def forward_gflop(config: Config) -> float:
    """Return the operations of a forward pass on one sample, in units of 10^9."""
    if config.model == "resnet3d":
        return CLIP_GFLOP["resnet18"] * config.task_settings.frames
    return GFLOP[config.model]


def samples_a_job(config: Config) -> float:
    """Return the number of samples in all steps of one client's job, for clients of equal size."""
    if config.local_steps is not None:
        return config.local_steps * config.batch_size
    return config.local_epochs * SAMPLES[config.task][0] / config.clients


def federation(config: Config) -> float:
    """Return the operations of a run, without those that prepare its initial model."""
    asks = config.algorithm == "kuiper"
    share = 1 + SERVER_SHARE.get(config.algorithm, 0.0)
    updates, size = client_updates(config), samples_a_job(config)
    trained = updates * size * STEP * share
    asked = updates * size / config.local_epochs if asks and config.local_epochs else 0.0
    tests = (config.rounds or updates / config.buffer_size) / config.eval_every * SAMPLES[config.task][1]
    return 1e9 * forward_gflop(config) * (trained + asked + tests)


def chain(config: Config) -> float:
    """Return the operations of training a run's chain of teachers on Kinetics, or 0 if it has none."""
    if config.initial != "teacher_chain":
        return 0.0
    given = config.initial_settings
    frames = given.task_settings.get("frames", 8)
    first, assistant, last = CHAIN
    names = [last] if given.teachers else [first, *[assistant] * given.teaching_assistants, last]
    networks = [CLIP_GFLOP[name] * frames for name in names]  # given teachers are tiny (Table 3's control)
    steps = STEP * sum(networks) + sum(networks[:-1])  # each student sees its teacher's output
    return 1e9 * steps * given.epochs * SAMPLES["kinetics"][0]


def operations(cells: Iterable[Cell]) -> pd.Series:
    """Return operations by paper, and the operations of all chains of teachers, each counted once."""
    found, chains = {}, {}
    for cell in cells:
        paper, config = cell.name.split("/")[0], cell.config
        found[paper] = found.get(paper, 0.0) + len(cell.seeds) * federation(config)
        start = config.task, str(config.task_settings), config.initial, str(config.initial_settings)
        chains |= {(*start, seed): chain(config) for seed in cell.seeds}
    return pd.Series({**found, "chains of teachers": sum(chains.values())})


def days(count: float, sustained: float) -> float:
    """Return how many days these operations take at ``sustained`` operations per second."""
    return count / sustained / 86_400
