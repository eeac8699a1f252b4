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

import numpy as np
import torch

from asyncfl_lite.base.errors import AsyncFLError, ConfigError


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the random generator of the stream ``names`` in a run with this ``seed``.

    The same seed and names always give the same generator; any other name gives an independent one. The generator's
    bits are the same on every machine, but the numbers that numpy makes of them may change with numpy's version. The
    package uses the streams ``partition``, ``delays setup``, ``delays``, ``client choice``, ``model``, ``server``,
    ``initial``, ``labelled set``, ``unlabelled``, ``("batches", client, job)``, ``("augment", client, job)`` and
    ``("dropout", client, job)``. Tasks that draw their data have streams named after themselves, such as ``topics20``
    and ``("glyphs", part)``, and each kind of trouble at clients has a stream ``trouble: …``.

    Args:
        seed: the run's seed, at least 0.
        names: words and numbers that name the stream.
    """
    key = [zlib.crc32(name.encode()) if isinstance(name, str) else int(name) for name in names]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy=seed, spawn_key=key)))


def global_states() -> dict[str, bytes]:
    """Return the states of the global random generators of torch, numpy and Python, by name."""
    return {
        "torch's": torch.get_rng_state().numpy().tobytes(),
        "numpy.random": pickle.dumps(np.random.get_state(legacy=False)),
        "random": pickle.dumps(random.getstate()),
    }


def drawn_since(before: dict[str, bytes]) -> str:
    """Return the names of the global generators that were drawn from since ``before``; empty if none was."""
    return ", ".join(name for name, state in global_states().items() if state != before[name])


@contextmanager
def untouched_generators() -> Iterator[None]:
    """Restore the global random generators after the block."""
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.set_rng_state(before[2])


@contextmanager
def no_global_draws(what: str, instead: str, error: type[AsyncFLError] | None = ConfigError) -> Iterator[None]:
    """Raise an error at the end of the block if the global random generators were drawn from, and restore them.

    Args:
        what: the user's code that runs inside the block, for the message.
        instead: the source of random numbers to use.
        error: the kind of error; None for a warning.
    """
    with untouched_generators():
        before = global_states()
        yield
        drawn = drawn_since(before)
    if not drawn:
        return
    line = f"{what} draws from global random numbers ({drawn}), which no seed of a run decides; use {instead}"
    if error is not None:
        raise error(line)
    warnings.warn(line, stacklevel=3)


@contextmanager
def told_of_draws(watching: bool = True) -> Iterator[None]:
    """Warn at the end of a block of training if the global random generators were drawn from inside.

    Args:
        watching: whether to look; callbacks may draw from them, since nothing else does.
    """
    before = global_states() if watching else {}
    yield
    if watching and (drawn := drawn_since(before)):
        warnings.warn(
            f"run: a method or other code of your own drew from global random numbers ({drawn}), so that the seed does "
            "not decide the result; draw from the generators that are given, such as context.rng",
            stacklevel=4,
        )
