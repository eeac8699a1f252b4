"""How large tasks and models are, said without reading data or weights: what a cost is reckoned from.

Sizes of data sets are those that their authors publish. A task that reads no files is simply made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.base import InputSpec, ModelSpec, forward_flop
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.runs.assembly import load_task
from asyncfl_lite.tasks import TASKS, TaskSource

CHECKPOINTS = {
    "google-bert/bert-base-uncased": 86e6,
    "bert-base-uncased": 86e6,
    "minilm": 10.8e6,
    "t5-small": 18.9e6,  # its encoder
    "smollm2": 134.5e6,  # with the table of embeddings, which makes the logits too
    "Qwen/Qwen2.5-1.5B-Instruct": 1.54e9,  # likewise
}
"""Parameters that each token passes through; a forward pass takes 2 operations of each, attention left out."""

SMALL = 4096
"""Numbers in an input up to which a forward pass takes no time to speak of."""


@dataclass(frozen=True)
class Size:
    """How large a task is.

    Attributes:
        inputs: shape and classes.
        samples, test_samples: for training, all clients together, and for testing.
        written: test samples to which a language model writes an answer token by token.
        owners: to whom samples belong by nature, 0 where to nobody.
    """

    inputs: InputSpec
    samples: int
    test_samples: int
    written: int = 0
    owners: int = 0


def _images(channels: int, side: int, classes: int, samples: int, tested: int) -> Callable[[Any], Size]:
    def size(task: Any) -> Size:
        shape = (channels, *[task.side or side] * 2)
        return Size(InputSpec(shape, classes), task.samples or samples, task.test_samples or tested)

    return size


def _clips(classes: int, samples: int, tested: int) -> Callable[[Any], Size]:
    def size(task: Any) -> Size:
        most = classes * task.clips_per_class if task.clips_per_class else samples
        inputs = InputSpec((3, task.frames, task.side, task.side), classes)
        return Size(inputs, min(samples, most), min(tested, most))

    return size


def _problems(samples: int) -> Callable[[Any], Size]:
    def size(task: Any) -> Size:
        tokens = 150_000 if task.tokenizer else task.vocabulary
        inputs = InputSpec((task.length,), tokens, vocabulary=tokens)
        return Size(inputs, task.samples or samples - task.held_out, task.test_samples or 1319, task.scored)

    return size


def _femnist(task: Any) -> Size:
    writers, a_writer = task.writers or 3597, 224  # of 805,263 samples
    kept = round(writers * a_writer * (1 - task.test_share))
    return Size(InputSpec((1, 28, 28), 62), kept, writers * a_writer - kept, owners=writers)


def _small_digits(task: Any) -> Size:
    return Size(InputSpec((1, task.side, task.side), 10), 4000, 1000)


def _writers(task: Any) -> Size:
    inputs = InputSpec((1, task.side, task.side), 10)
    return Size(inputs, task.writers * task.samples, 1000, owners=task.writers)


def _texts(classes: int, samples: int, tested: int) -> Callable[[Any], Size]:
    def size(task: Any) -> Size:
        inputs = InputSpec((task.length,), classes, vocabulary=getattr(task, "vocabulary", 0) or 4000)
        given = (getattr(task, name, None) for name in ("samples", "test_samples"))
        return Size(inputs, next(given) or samples, next(given) or tested)

    return size


def _shakespeare(task: Any) -> Size:
    windows = 1_000_000 // task.length  # tinyshakespeare's characters, nearly all by 90 of its 105 roles
    return Size(InputSpec((task.length,), 65, vocabulary=65), windows * 4 // 5, windows // 5, owners=90)


SIZES: dict[str, Callable[[Any], Size]] = {
    "mnist": _images(1, 28, 10, 60_000, 10_000),
    "fashion_mnist": _images(1, 28, 10, 60_000, 10_000),
    "cifar10": _images(3, 32, 10, 50_000, 10_000),
    "cifar10_jpeg75": _images(3, 32, 10, 50_000, 10_000),
    "cifar100": _images(3, 32, 100, 50_000, 10_000),
    "stl10": _images(3, 96, 10, 5_000, 8_000),
    "femnist": _femnist,
    "mnist5k": _small_digits,
    "writers": _writers,
    "hmdb51": _clips(51, 3_570, 1_530),
    "ucf101": _clips(101, 9_537, 3_783),
    "kinetics": _clips(400, 246_245, 20_000),
    "mrpc": _texts(2, 3_668, 408),
    "newsgroups20": _texts(20, 11_314, 7_532),
    "newsgroups20_snippets": _texts(20, 1_000, 7_532),
    "gsm8k": _problems(7_473),
    "mathinstruct": _problems(262_039),
    "shakespeare": _shakespeare,
}
"""Task -> its size by its settings, for tasks that read files or take seconds to make."""


@lru_cache(maxsize=64)
def size_of(source: TaskSource) -> Size:
    """Return how large a task is; one that is not in :data:`SIZES` is loaded."""
    for name, size in SIZES.items():
        if type(source) is TASKS.get(name):
            return size(source)
    task = load_task(source)
    owners = 0 if task.owners is None else int(task.owners.max()) + 1
    written = len(getattr(task, "references", ()))
    return Size(task.input_spec, len(task.labels), len(task.test_labels), written, owners)


@lru_cache(maxsize=256)
def forward_of(spec: ModelSpec, inputs: InputSpec) -> int:
    """Return the operations of one sample's forward pass.

    A checkpoint goes by :data:`CHECKPOINTS`. Any other model is run on zeros, on tensors without values where that
    would take long, or would hide what a kernel of torch does inside (LSTM).

    Raises:
        ConfigError: for a checkpoint that is not in the table.
    """
    checkpoint = getattr(spec, "checkpoint", None)
    if checkpoint is not None:
        if checkpoint not in CHECKPOINTS:
            raise ConfigError(
                f"checkpoint: the size of {checkpoint!r} is not known to asyncfl_lite/reproduction/grid/sizes.py"
            )
        return round(2 * CHECKPOINTS[checkpoint] * inputs.shape[0])
    if math.prod(inputs.shape) <= SMALL and spec.vectorises:
        return forward_flop(VectorModel(spec.build_for(inputs)), inputs)
    with torch.device("meta"):
        return forward_flop(VectorModel(spec.build_for(inputs)), inputs)
