"""Checks that a model fits into memory before it is built, since a process that asks for too much may be killed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from asyncfl_lite.base.devices import seeded
from asyncfl_lite.base.errors import ConfigError

LIMIT = Path("/sys/fs/cgroup/memory.max")
"""File with the number of bytes that a container may use, if there is such a limit."""
SMALL = 2**20
"""Size in bytes below which a tensor is made without a check of free memory."""
LARGE = 1 / 8
"""Share of the free memory that a model may fill before its parameters are counted."""


def free_memory() -> int:
    """Return the number of free bytes on this machine, at most the limit of its container."""
    limit = LIMIT.read_text().strip() if LIMIT.is_file() else ""
    available = psutil.virtual_memory().available
    return min(available, int(limit)) if limit.isdigit() else available


def check_copies(name: str, module: nn.Module, free: int | None = None) -> None:
    """Raise an error if memory cannot hold the copies of a model that a run needs.

    A run holds at least the module, a copy of it, and three vectors of the trained parameters: the global model, a
    client's model and its gradient.

    Args:
        name: the model's name, for the message.
        module: the model; it may be on the device ``meta``, where nothing takes memory.
        free: number of bytes that were free before the model was made; by default, those that are free now, with the
            model in memory.

    Raises:
        ConfigError: if memory does not suffice, naming the sizes.
    """
    whole = sum(part.nbytes for part in (*module.parameters(), *module.buffers()))
    trained = sum(part.nbytes for part in module.parameters() if part.requires_grad)
    needed = whole + 3 * trained
    if free is not None:
        needed += whole
    if needed <= SMALL:
        return
    free = free_memory() if free is None else free
    if needed > free:
        count = sum(part.numel() for part in module.parameters())
        raise ConfigError(
            f"model: {name!r} has {count:,} parameters; a run with it needs {_size(needed)} at least, but "
            f"{_size(free)} of memory are free"
        )


class Room(TorchDispatchMode):
    """Context that raises before allocating a tensor larger than free memory.

    A tensor that is too large is refused before it is made. When the tensors fill more than the share :data:`LARGE` of
    the memory that was free, the whole model is built once more on the device ``meta``, which takes no memory, and its
    parameters are counted.

    Args:
        name: the name of the model being built, for the message.
        build: a function that builds the model.

    Raises:
        ConfigError: if memory does not suffice, naming the tensor's shape or the number of the model's parameters,
            their size and the free memory.
    """

    def __init__(self, name: str, build: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.name, self.build = name, build
        self.free, self.made, self.counted = free_memory(), 0, False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Run a torch operation; if it makes a tensor of a given shape, check first that memory suffices."""
        kwargs = kwargs or {}
        if func.overloadpacket in MAKERS and str(kwargs.get("device")) != "meta":
            dtype = kwargs.get("dtype") or torch.get_default_dtype()
            needed = math.prod(args[0]) * dtype.itemsize
            if needed > SMALL and needed > (free := free_memory()):
                raise ConfigError(
                    f"model: {self.name!r} would make a tensor of shape {tuple(args[0])}, {_size(needed)}; "
                    f"{_size(free)} of memory are free"
                )
            self.made += needed
            if not self.counted and self.made > self.free * LARGE:
                self.counted = True
                self._count()
        return func(*args, **kwargs)

    def _count(self) -> None:
        """Raise an error if the whole model needs more memory than was free; do nothing if that cannot be counted."""
        module = None
        with suppress(Exception), warnings.catch_warnings(action="ignore"), seeded(0), torch.device("meta"):
            module = self.build()
        if isinstance(module, nn.Module):
            check_copies(self.name, module, self.free)


MAKERS = {getattr(torch.ops.aten, name) for name in ("empty", "zeros", "ones", "full", "rand", "randn")}


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count > 1e8 else f"{count / 1e6:,.1f} MB"
