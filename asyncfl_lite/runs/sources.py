"""Digests of the data that a run reads but its configuration does not contain: files, data sets, users' own data.

A configuration names a trace or a data set, and the content of the file decides the run, too. So results and
checkpoints keep these digests, and belong to another run if a digest differs. Data that are missing, as on a machine to
which only results were copied, are not compared.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from functools import reduce
from pathlib import Path

import numpy as np
import torch

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.files import fingerprint
from asyncfl_lite.models.weights import as_state
from asyncfl_lite.models.weights import digest_of as weights_digest
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.groups import GROUPS
from asyncfl_lite.tasks import Task
from asyncfl_lite.tasks.data import stored

OWN = "own data"
"""Name of the kind of data in a user's own task; other kinds are named after groups of settings."""
WEIGHTS = "own weights"
"""Name of the kind of data in a state dict from which a run starts."""
TENSORS = ("inputs", "labels", "test_inputs", "test_labels", "owners", "kinds")


def data_of(
    config: Config, task: Task | None = None, weights: Mapping[str, torch.Tensor] | None = None
) -> dict[str, str]:
    """Return digests (16 hexadecimal digits), by kind, of the data that a run of ``config`` reads from outside.

    Args:
        config: the configuration. Its groups of settings are the kinds; a group that reads no existing file is left
            out.
        task: your own data, instead of the task that ``config.task`` names.
        weights: a state dict that the run starts from.
    """
    groups = [group for group in GROUPS if task is None or group != "task_settings"]
    found = {group: fingerprint(getattr(config, group).files()) for group in groups}
    if task is not None:
        found[OWN] = digest_of(task)
    if weights is not None:
        found[WEIGHTS] = weights_digest(weights)
    return {kind: digest for kind, digest in found.items() if digest is not None}


def started_from(
    config: Config, weights: str | Path | Mapping[str, torch.Tensor] | torch.nn.Module
) -> tuple[Config, dict[str, torch.Tensor] | None]:
    """Return ``config`` changed to start from ``weights``, and their state dict, or None if they are in a file.

    Raises:
        ConfigError: when the configuration already names other weights to start from.
        DataError: when ``weights`` is neither a file, a module nor a state dict.
    """
    chosen = config.initial_settings
    if config.initial not in ("random", "weights") or getattr(chosen, "file", None) is not None:
        raise ConfigError(f"weights: the configuration starts from {config.initial!r} already; give one of the two")
    settings = chosen.model_dump() if config.initial == "weights" else {}
    of_file = isinstance(weights, str | Path)
    if of_file:
        settings["file"] = str(weights)
    config = Config(**{**config.as_dict(), "initial": "weights", "initial_settings": settings})
    return config, None if of_file else as_state(weights, "weights")


def changed_data(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the kinds of data that both mappings contain with different digests."""
    return [kind for kind, digest in then.items() if now.get(kind, digest) != digest]


def digest_of(task: Task) -> str:
    """Return 16 hexadecimal digits that identify a task's tensors and arrays: shapes, types and numbers."""
    digest = hashlib.sha256(f"{type(task).__name__} {task.num_classes} {task.vocabulary}".encode())
    own = dict(zip(("inputs", "labels"), task.samples, strict=True))  # without other seeds' samples in these tensors
    for name in TENSORS:
        if (values := own.get(name, getattr(task, name))) is not None:
            digest.update(f"{name} {tuple(values.shape)} {values.dtype}".encode())
            digest.update(_bytes(values))
    return digest.hexdigest()[:16]


def checksum(task: Task) -> int:
    """Return a number that changes if a task's samples are changed; much faster to compute than :func:`digest_of`."""
    parts = (*task.samples, task.test_inputs, task.test_labels, *(task.validation or ()))
    return reduce(lambda found, values: zlib.crc32(_bytes(stored(values)), found), parts, 0)


def _bytes(values: torch.Tensor | np.ndarray) -> memoryview | bytes:
    """Return the content of a tensor or array of any type, in a form that can be hashed."""
    if isinstance(values, torch.Tensor):
        return values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
    return repr(values.tolist()).encode() if values.dtype == object else np.ascontiguousarray(values).tobytes()
