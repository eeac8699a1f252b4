"""Digests of the data that a run reads but its configuration does not contain: files, data sets, users' own data.

A configuration names a trace or a data set, and the content of the file decides the run, too. So results and
checkpoints keep these digests, and belong to another run if a digest differs. Data that are missing, as on a machine to
which only results were copied, are not compared.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import reduce
from pathlib import Path

import numpy as np
import torch
from torch import nn

from asyncfl_lite.base.devices import machine
from asyncfl_lite.base.errors import ConfigError, ResultError
from asyncfl_lite.base.files import cache_root, fingerprint, sealed, unsealed, write_atomically
from asyncfl_lite.models.weights import as_state
from asyncfl_lite.models.weights import digest_of as weights_digest
from asyncfl_lite.runs.config import GROUPS, Config
from asyncfl_lite.runs.meaning import meaning
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


DECISIVE = (
    *("task", "task_settings", "model", "model_settings", "initial", "initial_settings"),
    *("device", "threads", "seed"),
)
"""Settings on which an initial model depends; they and the held-out fraction determine the labelled set."""


def remembered(config: Config, make: Callable[[], nn.Module], like: Callable[[], nn.Module]) -> nn.Module:
    """Return the initial model of ``config`` from the cache, or make the model and cache it.

    So all methods that start from a chain of teachers share one chain. The models are kept in ``initial/`` of the cache
    folder (the variable ``ASYNCFL_CACHE``, else ``~/.cache/asyncfl_lite``), under a digest of everything that they
    depend on: model, task, initialisation, seed, data, device, number of threads, the revision of the code, and what
    rounding depends on (:func:`.machine`). Each file ends with its own digest, and a damaged one is made anew. Loading
    executes no code. It is not an error if the folder cannot be written to.

    Args:
        config: the run's configuration.
        make: function that makes the model.
        like: function that makes a module of the same architecture, with any weights.
    """
    path = _path(config)
    if path.exists():
        with suppress(Exception):  # torch raises many kinds of error for a damaged file; then the model is made anew
            module = like()
            content = io.BytesIO(unsealed(path.read_bytes()))
            module.load_state_dict(torch.load(content, map_location="cpu", weights_only=True))
            return module
    module, content = make(), io.BytesIO()
    torch.save(module.state_dict(), content)
    with suppress(ResultError):
        write_atomically(path, lambda file: file.write(sealed(content.getvalue())))
    return module


def _path(config: Config) -> Path:
    whole = config.as_dict()
    decisive = {name: whole[name] for name in DECISIVE}
    decisive |= {"held_out": config.held_out, "meaning": meaning(config), "machine": machine(config.device)}
    decisive |= {"data": data} if (data := data_of(config)) else {}
    digest = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:20]
    return cache_root() / "initial" / f"{config.initial}-{digest}.pt"
