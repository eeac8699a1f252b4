"""The delay laws of the papers: FedEcho, FADAS, FedRevive, FedADT and KUIPER."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from asyncfl_lite.simulator.delays import DELAYS, DelayLaw, ExponentialDelays, UniformDelays, same_for_all

CATEGORIES = ("short", "medium", "long")
SHORT, MEDIUM, LONG = range(3)


def size_rank(num_samples: np.ndarray) -> np.ndarray:
    """Return each client's rank by sample count, (N,) in [0, 1]; equal counts share their mean rank."""
    _, position, counts = np.unique(num_samples, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts + 1) / 2
    return mean_rank[position] / max(len(num_samples) - 1, 1)


def categories_by_rank(num_samples: np.ndarray, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """Return each client's category by the score ``(size rank + gamma u) / (1 + gamma)``, ``u`` uniform on [0, 1].

    The floor(N / 10) clients with the highest scores are long, the next floor(3 N / 10) medium, the rest
    short. With ``gamma`` 0, size alone decides; a large ``gamma`` makes category and size independent.
    FedEcho (Section 5) asks for this and for at most 10% long clients. It prints no formula; this one is ours.

    Returns:
        (N,) int8 indices into ``CATEGORIES``. Equal scores are ordered by ``u``.
    """
    num_clients = len(num_samples)
    noise = rng.random(num_clients)
    score = (size_rank(num_samples) + gamma * noise) / (1 + gamma)
    ascending = np.lexsort((noise, score))
    num_long, num_medium = num_clients // 10, 3 * num_clients // 10
    categories = np.full(num_clients, SHORT, dtype=np.int8)
    categories[ascending[num_clients - num_long - num_medium :]] = MEDIUM
    categories[ascending[num_clients - num_long :]] = LONG
    return categories


class FedEchoLaw(DelayLaw):
    """FedEcho's delays (Section 5 and Table 1): categories that depend on a client's sample count.

    Durations are uniform within a category's bounds, and drawn anew for each job. The paper leaves open how exactly the
    category depends on the sample count, and whether a client keeps one duration for all its jobs.
    """

    unit = "10 s"
    bounds: ClassVar[tuple[tuple[float, float], ...]]
    """Shortest and longest duration of each category in ``CATEGORIES``."""

    gamma: float = Field(1.0, ge=0, le=1e9)
    """Noise in the category's dependence on the sample count (0: none); the paper prints no value."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Draw each client's category."""
        index = categories_by_rank(num_samples, self.gamma, rng)
        low, high = np.array(self.bounds).T
        return UniformDelays(low[index], (high - low)[index], category_index=index, category_names=CATEGORIES)


@DELAYS.register("fedecho_large")
class FedEchoLarge(FedEchoLaw):
    """Short U(1, 2), medium U(3, 5), long U(50, 80), in units of 10 s (FedEcho Table 1, large)."""

    bounds = ((1, 2), (3, 5), (50, 80))


@DELAYS.register("fedecho_mild")
class FedEchoMild(FedEchoLaw):
    """Short U(1, 2), medium U(3, 5), long U(10, 20), in units of 10 s (FedEcho Table 1, mild)."""

    bounds = ((1, 2), (3, 5), (10, 20))


def log_dirichlet(concentration: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a draw from Dir(row) for each row of ``concentration``, as logarithms up to a constant.

    Logarithms keep draws distinct where the concentration is so small that the draws themselves would underflow.

    Args:
        concentration: (N, C) concentrations, each above 0.
        rng: generator from which random numbers are drawn.
    """
    gamma_above = rng.standard_gamma(concentration + 1)
    return np.log(gamma_above) + np.log1p(-rng.random(concentration.shape)) / concentration


@DELAYS.register("fadas")
class FadasLaw(DelayLaw):
    """Short U(1, 2), medium U(3, 5), long U(5, 8); category by Dirichlet (FADAS code, mild).

    The category is the largest entry of a draw from Dir(3, 2, 1), whatever the client's size and with no bound on the
    number of long clients: 63.7% are short, 28.5% medium and 7.9% long. The FADAS authors' code does not name the unit.
    """

    unit = "time units"

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Draw each client's category."""
        index = log_dirichlet(np.tile([3.0, 2.0, 1.0], (len(num_samples), 1)), rng).argmax(axis=1).astype(np.int8)
        low, width = np.array([[1, 3, 5], [1, 2, 3]], dtype=float)
        return UniformDelays(low[index], width[index], category_index=index, category_names=CATEGORIES)


class FedReviveLaw(DelayLaw):
    """Exponential training times, constant download times and uniform upload times; each client keeps its means."""

    train_means: ClassVar[tuple[float, ...]]
    train_shares: ClassVar[tuple[float, ...]]
    download: ClassVar[float]
    upload_means: ClassVar[tuple[float, ...]]
    upload_half_width: ClassVar[float]

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> ExponentialDelays:
        """Draw each client's mean training and upload times, independently."""
        train = rng.choice(self.train_means, len(num_samples), p=self.train_shares)
        upload = rng.choice(self.upload_means, len(num_samples))
        low = np.maximum(upload - self.upload_half_width, 0)
        return ExponentialDelays(train, self.download + low, upload + self.upload_half_width - low)


@DELAYS.register("fedrevive")
class FedReviveDefault(FedReviveLaw):
    """Train Exp(mean 1.0 to 1.6), download 0.1, upload 0.15 or 0.25 ± 0.02 (FedRevive App. D)."""

    train_means = (1.0, 1.3, 1.6)
    train_shares = (0.25, 0.5, 0.25)
    download = 0.1
    upload_means = (0.15, 0.25)
    upload_half_width = 0.02


@DELAYS.register("fedrevive_shift")
class FedReviveShift(FedReviveLaw):
    """Train Exp(mean 0.1), download 0.02, upload 0.05 or 0.10 ± 0.01 (FedRevive App. D.1)."""

    train_means = (0.1,)
    train_shares = (1.0,)
    download = 0.02
    upload_means = (0.05, 0.10)
    upload_half_width = 0.01


@DELAYS.register("fedadt")
class FedAdtLaw(DelayLaw):
    """Uniform between 0 and 5000 s for every job of every client (FedADT Section V-A)."""

    unit = "s"

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign every client the same bounds, without random numbers."""
        return same_for_all(0.0, 5000.0, len(num_samples))


Device = Literal["Nano", "TX2", "NX", "AGX"]
Jitter = Annotated[float, Field(ge=0, le=1)]


class KuiperDeviceLaw(DelayLaw):
    """Measured durations of four boards; client i has ``devices[i % len(devices)]``.

    A job takes three times the seconds of a training epoch (KUIPER Table 1, §4) plus the seconds of a pass
    over the test set (Table 2). The client's sample count does not matter; in the paper, a client
    held about 500 MB of HMDB51 or 1.73 GB of UCF101. We assume that a job includes one test pass.
    """

    unit = "s"
    epoch_seconds: ClassVar[dict[str, float]]
    test_seconds: ClassVar[dict[str, float]]

    devices: Annotated[tuple[Device, ...], Field(min_length=1)] = ("Nano", "TX2", "NX", "AGX")
    """Boards, assigned to the clients in turn; client i has ``devices[i % len(devices)]``."""
    jitter: Jitter = 0.0
    """Relative half-width of the uniform distribution around the measured duration."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign each client its board, without random numbers."""
        names = tuple(self.epoch_seconds)
        by_board = np.array([3 * self.epoch_seconds[n] + self.test_seconds[n] for n in names])
        index = np.resize([names.index(name) for name in self.devices], len(num_samples)).astype(np.int8)
        seconds = by_board[index]
        return _around(seconds, self.jitter, index, names)


@DELAYS.register("kuiper_hmdb51")
class KuiperHmdb51(KuiperDeviceLaw):
    """Nano, TX2, NX and AGX boards on HMDB51: 3 epochs and a test pass (KUIPER Tables 1-2)."""

    epoch_seconds = {"Nano": 391.1, "TX2": 293.1, "NX": 121.3, "AGX": 84.5}
    test_seconds = {"Nano": 181.4, "TX2": 116.3, "NX": 89.4, "AGX": 68.3}


@DELAYS.register("kuiper_ucf101")
class KuiperUcf101(KuiperDeviceLaw):
    """Nano, TX2, NX and AGX boards on UCF101: 3 epochs and a test pass (KUIPER Tables 1-2)."""

    epoch_seconds = {"Nano": 2691.6, "TX2": 2001.4, "NX": 821.9, "AGX": 572.1}
    test_seconds = {"Nano": 621.3, "TX2": 381.2, "NX": 322.5, "AGX": 217.7}


@DELAYS.register("kuiper_straggler")
class KuiperStraggler(DelayLaw):
    """A third of the clients each at 1×, 3× and 5× the base duration (KUIPER Fig. 7).

    The paper has 12 clients, 4 of each, in this order; other numbers of clients are divided into thirds
    in the same way. It does not print the base duration; we take that of its AGX board on HMDB51.
    """

    unit = "s"
    multipliers: ClassVar[tuple[int, ...]] = (1, 3, 5)
    seconds: ClassVar[float] = 3 * 84.5 + 68.3
    """Duration of the fastest third's jobs: that of an AGX board under ``kuiper_hmdb51``."""

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
