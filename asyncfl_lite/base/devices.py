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
