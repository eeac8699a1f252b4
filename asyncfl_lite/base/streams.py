"""Separate, named random streams, so that draws for one feature never change another feature's draws."""

from __future__ import annotations

import zlib

import numpy as np


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
