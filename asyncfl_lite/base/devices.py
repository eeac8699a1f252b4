"""The threads and devices with which torch computes a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from asyncfl_lite.base.errors import ConfigError, reason


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use ``count`` threads inside the block, and restore the number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


AUTO = "auto"
"""Name that stands for the best device of this machine: see :func:`actual`."""


def actual(name: str) -> str:
    """Return the torch device that a configuration's ``device`` means on this machine.

    Args:
        name: of a device, or ``auto``: CUDA's current device where torch can use one, else the processor.

    >>> actual("cpu")
    'cpu'
    """
    if name != AUTO:
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def check_device(name: str) -> None:
    """Refuse a torch device that this machine does not have.

    Raises:
        ConfigError: if it has not.
    """
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # torch's own, by kind of device
        raise ConfigError(f"device: this machine has no {name!r} that torch can use ({reason(error)})") from None


@contextmanager
def seeded(seed: int, device: str | torch.device = "cpu") -> Iterator[list[torch.Generator]]:
    """Seed torch's generators inside the block, restore them afterwards, and yield them.

    They are what torch draws from where it takes no generator: layers' first weights, layers that draw.
    ``torch.manual_seed`` would set them too, but notes a stack of calls for every kind of device that is not there,
    which takes longer than to draw a small layer's weights.

    Args:
        seed: any integer of 64 bits.
        device: the processor's generator is set always, that of a CUDA device too if it is one.
    """
    device, generators = torch.device(device), [torch.default_generator]
    if device.type == "cuda":
        torch.cuda.init()  # until then there are no generators
        generators.append(torch.cuda.default_generators[device.index or 0])
    before = [generator.get_state() for generator in generators]
    for generator in generators:
        generator.manual_seed(seed)
    try:
        yield generators
    finally:
        for generator, state in zip(generators, before, strict=True):
            generator.set_state(state)
