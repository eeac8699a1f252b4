"""A cache of expensive initial models, so that all methods that start from a chain of teachers share one chain.

The models are kept in ``initial/`` of the cache folder (the variable ``ASYNCFL_CACHE``, else
``~/.cache/asyncfl_lite``), under a digest of everything that they depend on: model, task, initialisation, seed, data,
device, number of threads, the revision of the code, and what rounding depends on (:func:`.machine`). Each file ends
with its own digest, and a damaged one is made anew. Loading executes no code. It is not an error if the folder cannot
be written to.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from asyncfl_lite.base.devices import machine
from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.base.files import cache_root, sealed, unsealed, write_atomically
from asyncfl_lite.runs.meaning import meaning
from asyncfl_lite.runs.sources import data_of

if TYPE_CHECKING:
    from asyncfl_lite.runs.config import Config

DECISIVE = (
    *("task", "task_settings", "model", "model_settings", "initial", "initial_settings"),
    *("device", "threads", "seed"),
)
"""Settings on which an initial model depends; they and the held-out fraction determine the labelled set."""


def remembered(config: Config, make: Callable[[], nn.Module], like: Callable[[], nn.Module]) -> nn.Module:
    """Return the initial model of ``config`` from the cache, or make the model and cache it.

    Args:
        config: the run's configuration.
        make: function that makes the model.
        like: function that makes a module of the same architecture, with any weights.
    """
    place = _place(config)
    if place.exists():
        with suppress(Exception):  # torch raises many kinds of error for a damaged file; then the model is made anew
            module = like()
            content = io.BytesIO(unsealed(place.read_bytes()))
            module.load_state_dict(torch.load(content, map_location="cpu", weights_only=True))
            return module
    module, content = make(), io.BytesIO()
    torch.save(module.state_dict(), content)
    with suppress(ResultError):
        write_atomically(place, lambda file: file.write(sealed(content.getvalue())))
    return module


def _place(config: Config) -> Path:
    whole = config.as_dict()
    decisive = {name: whole[name] for name in DECISIVE}
    decisive |= {"held_out": config.held_out, "meaning": meaning(config), "machine": machine(config.device)}
    decisive |= {"data": data} if (data := data_of(config)) else {}
    digest = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:20]
    return cache_root() / "initial" / f"{config.initial}-{digest}.pt"
