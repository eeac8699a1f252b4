"""What a run computes on: torch's threads and devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from asyncfl_lite.base.errors import ConfigError, reason


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use ``count`` threads inside, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def check_device(name: str) -> None:
    """Find out whether this machine has a device of torch's.

    Raises:
        ConfigError: if it has not.
    """
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # torch's own, by kind of device
        raise ConfigError(f"device: this machine has no {name!r} that torch can use ({reason(error)})") from None


@contextmanager
def torch_draws(seed: int) -> Iterator[None]:
    """Seed what torch draws on the processor without a generator, such as layers' weights; leave its state as it was.

    ``torch.manual_seed`` would do it too, but notes a stack of calls for every kind of device that is not there, which
    takes longer than to draw a small layer's weights.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
