"""The threads and devices that torch uses for a run."""

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
"""Name that stands for the best device of this machine; see :func:`actual`."""


def actual(name: str) -> str:
    """Return the torch device that a configuration's ``device`` stands for on this machine.

    Args:
        name: a device, or ``auto``, which means CUDA's current device if torch can use one, else the CPU.

    >>> actual("cpu")
    'cpu'
    """
    if name != AUTO:
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def check_device(name: str) -> None:
    """Raise an error if torch cannot use the device ``name`` on this machine.

    Raises:
        ConfigError: if torch cannot use it; the message says why.
    """
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # which one depends on the kind of device
        raise ConfigError(f"device: this machine has no {name!r} that torch can use ({reason(error)})") from None


@contextmanager
def seeded(seed: int, device: str | torch.device = "cpu") -> Iterator[list[torch.Generator]]:
    """Seed torch's generators and yield them; restore their earlier states when the block ends.

    Torch draws from them where it takes no generator: for layers' initial weights, and in layers such as dropout.
    ``torch.manual_seed`` would set them, too, but it records a stack of calls for every kind of device that is absent,
    which takes longer than drawing a small layer's weights.

    Args:
        seed: any 64-bit integer.
        device: the CPU's generator is always seeded; if this is a CUDA device, its generator is, too.
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
