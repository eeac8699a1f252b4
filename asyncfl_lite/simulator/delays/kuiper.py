"""KUIPER's delay laws: measured boards, and clients in three groups of different speed."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from asyncfl_lite.simulator.delays.base import DELAYS, DelayLaw, UniformDelays

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Device = Literal["Nano", "TX2", "NX", "AGX"]
Jitter = Annotated[float, Field(ge=0, le=1)]


class KuiperDeviceLaw(DelayLaw):
    """Measured durations of four boards; client i has ``devices[i % len(devices)]``.

    A job takes ``epochs`` times the seconds of a training epoch (KUIPER Table 1) plus the seconds of
    a pass over the test set (Table 2). The client's sample count does not matter; in the paper, a client
    held about 500 MB of HMDB51 or 1.73 GB of UCF101. We assume that a job includes one test pass.
    """

    unit = "s"
    epoch_seconds: ClassVar[dict[str, float]]
    test_seconds: ClassVar[dict[str, float]]

    devices: Annotated[tuple[Device, ...], Field(min_length=1)] = ("Nano", "TX2", "NX", "AGX")
    """Boards, assigned to the clients in turn; client i has ``devices[i % len(devices)]``."""
    epochs: int = Field(3, ge=1)
    """Number of training epochs in a job; the paper uses 3 (§4)."""
    jitter: Jitter = 0.0
    """Relative half-width of the uniform distribution around the measured duration."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign each client its board, without random numbers."""
        names = tuple(self.epoch_seconds)
        by_board = np.array([self.epochs * self.epoch_seconds[n] + self.test_seconds[n] for n in names])
        index = np.resize([names.index(name) for name in self.devices], len(num_samples)).astype(np.int8)
        seconds = by_board[index]
        return _around(seconds, self.jitter, index, names)


@DELAYS.register("kuiper_hmdb51")
class KuiperHmdb51(KuiperDeviceLaw):
    """Nano, TX2, NX and AGX boards on HMDB51: 3 epochs and a test pass (KUIPER Tables 1-2).

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("kuiper_hmdb51")().prepare(np.arange(1, 5), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(4)]
    [1354.7, 995.6, 453.3, 321.8]
    """

    epoch_seconds = {"Nano": 391.1, "TX2": 293.1, "NX": 121.3, "AGX": 84.5}
    test_seconds = {"Nano": 181.4, "TX2": 116.3, "NX": 89.4, "AGX": 68.3}


@DELAYS.register("kuiper_ucf101")
class KuiperUcf101(KuiperDeviceLaw):
    """Nano, TX2, NX and AGX boards on UCF101: 3 epochs and a test pass (KUIPER Tables 1-2).

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("kuiper_ucf101")().prepare(np.arange(1, 5), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(4)]
    [8696.1, 6385.4, 2788.2, 1934.0]
    """

    epoch_seconds = {"Nano": 2691.6, "TX2": 2001.4, "NX": 821.9, "AGX": 572.1}
    test_seconds = {"Nano": 621.3, "TX2": 381.2, "NX": 322.5, "AGX": 217.7}


@DELAYS.register("kuiper_straggler")
class KuiperStraggler(DelayLaw):
    """A third of the clients each at 1×, 3× and 5× the base duration (KUIPER Fig. 7).

    The paper has 12 clients, 4 of each, in this order; other numbers of clients are divided into thirds
    in the same way. It does not print the base duration; the default is that of its AGX board on HMDB51.

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("kuiper_straggler")().prepare(np.arange(1, 7), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(6)]
    [321.8, 321.8, 965.4, 965.4, 1609.0, 1609.0]
    """

    unit = "s"
    multipliers: ClassVar[tuple[int, ...]] = (1, 3, 5)
    later: ClassVar[frozenset[str]] = frozenset({"jitter"})

    seconds: Positive = 3 * 84.5 + 68.3
    """Duration of the fastest third's jobs, in seconds; by default that of an AGX board under ``kuiper_hmdb51``."""
    jitter: Jitter = 0.0
    """Relative half-width of the uniform distribution around a client's duration; the paper's is 0."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign each client its multiplier, without random numbers."""
        num_clients, kinds = len(num_samples), len(self.multipliers)
        index = (np.arange(num_clients) * kinds // max(num_clients, 1)).astype(np.int8)
        duration = self.seconds * np.array(self.multipliers)[index]
        names = tuple(f"{multiplier}x" for multiplier in self.multipliers)
        return _around(duration, self.jitter, index, names)


def _around(seconds: np.ndarray, jitter: float, index: np.ndarray, names: tuple[str, ...]) -> UniformDelays:
    low, width = seconds * (1 - jitter), seconds * 2 * jitter
    return UniformDelays(low, width, category_index=index, category_names=names)
