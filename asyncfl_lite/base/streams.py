"""Separate, named random streams, so that draws for one feature never change another feature's draws.

Users' own code must draw from the generators that it is given, too. The global generators of torch, numpy and Python
follow no run's seed, so a run that draws from them cannot be repeated.
"""

from __future__ import annotations

import pickle
import random
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from asyncfl_lite.base.errors import AsyncFLError, ConfigError
from asyncfl_lite.base.registry import is_ours


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the random generator of the stream ``names`` in a run with this ``seed``.

    The same seed and names always give the same generator; any other name gives an independent one. The generator's
    bits are the same on every machine, but the numbers that numpy makes of them may change with numpy's version. The
    package uses the streams ``partition``, ``delays setup``, ``delays``, ``client choice``, ``model``, ``server``,
    ``initial``, ``labelled set``, ``unlabelled``, ``("batches", client, job)``, ``("augment", client, job)`` and
    ``("dropout", client, job)``. Tasks that draw their data have streams named after themselves, such as ``topics20``
    and ``("glyphs", part)``, and each kind of fault at clients has a stream ``trouble: …``.

    Args:
        seed: the run's seed, at least 0.
        names: words and numbers that name the stream.
    """
    key = [zlib.crc32(name.encode()) if isinstance(name, str) else int(name) for name in names]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy=seed, spawn_key=key)))


class GlobalStates(NamedTuple):
    """The states of the global random generators of torch, numpy and Python."""

    torch: torch.Tensor
    numpy: dict[str, Any]
    python: tuple[Any, ...]

    @classmethod
    def now(cls) -> GlobalStates:
        """Return the states as they are now."""
        return cls(torch.get_rng_state(), np.random.get_state(legacy=False), random.getstate())

    def drawn(self, now: GlobalStates | None = None) -> str:
        """Return the names of the generators that have been drawn from since, or up to ``now``; empty if none has."""
        now = GlobalStates.now() if now is None else now
        moved = {
            "torch's": not torch.equal(self.torch, now.torch),
            "numpy.random": pickle.dumps(self.numpy) != pickle.dumps(now.numpy),
            "random": self.python != now.python,
        }
        return ", ".join(name for name, drawn in moved.items() if drawn)

    def restore(self) -> None:
        """Set the generators to these states."""
        torch.set_rng_state(self.torch)
        np.random.set_state(self.numpy)
        random.setstate(self.python)


@contextmanager
def untouched_generators() -> Iterator[GlobalStates]:
    """Yield the states of the global random generators, and restore them after the block."""
    before = GlobalStates.now()
    try:
        yield before
    finally:
        before.restore()


@contextmanager
def no_global_draws(
    code: object, what: str, instead: str, error: type[AsyncFLError] | None = ConfigError
) -> Iterator[None]:
    """Raise an error at the end of the block if a user's ``code`` drew from the global generators, and restore them.

    The message says ``what`` it is, and which source of random numbers to use ``instead``; without ``error``, it is a
    warning.
    """
    if is_ours(code):
        yield
        return
    with untouched_generators() as before:
        yield
        drawn = before.drawn()
    line = f"{what} draws from global random numbers ({drawn}), which no seed of a run decides; use {instead}"
    if drawn and error is not None:
        raise error(line)
    if drawn:
        warnings.warn(line, stacklevel=3)


@contextmanager
def told_of_draws() -> Iterator[None]:
    """Warn at the end of a block of training if the global random generators were drawn from inside."""
    before = GlobalStates.now()
    yield
    if drawn := before.drawn():
        warnings.warn(
            f"run: a method or other code of your own drew from global random numbers ({drawn}), so that the seed does "
            "not decide the result; draw from the generators that are given, such as context.rng",
            stacklevel=4,
        )
