"""Delay laws, which draw how long each job of a client takes on the virtual clock.

A law's ``prepare`` draws each client's fixed properties once (its category, its mean). The object that it returns draws
the duration of each job. The two use separate random streams, so that more draws from one never change the other. The
simulator needs only ``draw`` (:class:`.Delays`); :class:`ClientDelays` adds categories, which tables show.
"""

from __future__ import annotations

import csv
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from asyncfl_lite.base.errors import ConfigError, DataError, shown
from asyncfl_lite.base.files import regular
from asyncfl_lite.base.registry import Registry, Settings, is_ours
from asyncfl_lite.base.streams import no_global_draws
from asyncfl_lite.simulator.simulation import Delays

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, eq=False)
class ClientDelays(ABC):
    """The properties of N clients that a delay law fixes for the whole run; durations of jobs are drawn from them.

    An instance holds arrays and never changes, so that a saved run needs only the states of the run's generators.

    Attributes:
        category_index: (N,) int8 index of a client's category in ``category_names``, or None.
        category_names: the names of the law's categories.
    """

    category_index: np.ndarray | None = field(default=None, kw_only=True)
    category_names: tuple[str, ...] = field(default=(), kw_only=True)

    @cached_property
    def categories(self) -> list[str] | None:
        """Name of each client's category, by client index; None if the law has no categories."""
        if self.category_index is None:
            return None
        return [self.category_names[index] for index in self.category_index.tolist()]

    @abstractmethod
    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of one job of ``client``, in the law's unit: finite, at least 0.

        Args:
            client: index of the client, 0 to N - 1.
            rng: the run's stream ``delays``.
        """


@dataclass(frozen=True, eq=False)
class UniformDelays(ClientDelays):
    """Durations uniform between ``low`` and ``low + width``, both (N,); a width of 0 means a fixed duration."""

    low: np.ndarray
    width: np.ndarray

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of one job of ``client``, in the law's unit."""
        return self.low.item(client) + self.width.item(client) * rng.random()


@dataclass(frozen=True, eq=False)
class ExponentialDelays(UniformDelays):
    """Durations with an exponential part of mean ``mean``, (N,), besides the uniform part."""

    mean: np.ndarray

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of one job of ``client``, in the law's unit."""
        return super().draw(client, rng) + self.mean.item(client) * rng.standard_exponential()


@dataclass(frozen=True, eq=False)
class TraceDelays(ClientDelays):
    """Recorded durations of each client: ``seconds[starts[client]:starts[client + 1]]``."""

    seconds: np.ndarray
    starts: np.ndarray

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return one of the client's recorded durations in seconds, each as likely as the others."""
        start, end = self.starts.item(client), self.starts.item(client + 1)
        return self.seconds.item(start + int(rng.random() * (end - start)))


class DelayLaw(Settings):
    """Abstract base of delay laws; a new law defines ``prepare`` (and ``unit``, if it has one) and is registered.

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("fedecho_large")(gamma=1.0).prepare(np.arange(1, 11), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(10)]
    [1.8, 1.0, 1.9, 1.0, 1.7, 3.4, 1.9, 4.1, 3.6, 62.7]
    """

    revision: ClassVar[int] = 1
    """Revision of the law's numbers; increase it when their meaning changes, to mark older results as outdated."""

    unit: ClassVar[str] = "time units"
    """Unit of virtual time under this law, for example ``"s"`` for seconds."""

    @abstractmethod
    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> Delays:
        """Draw the properties that each client keeps for the whole run.

        Args:
            num_samples: (N,) number of training samples of each client.
            rng: the run's stream ``delays setup``.

        Returns:
            An object with a method ``draw(client, rng)`` like :meth:`ClientDelays.draw`; it need not be a
            :class:`ClientDelays`. If it has no ``categories``, tables leave that column empty. It must not change from
            draw to draw, since a checkpoint saves only the states of generators.
        """


DELAYS: Registry[DelayLaw] = Registry("delay")


def prepared(law: DelayLaw, num_samples: np.ndarray, rng: np.random.Generator) -> Delays:
    """Return, after a check, the delays that ``law`` prepares for clients with the given sample counts.

    Raises:
        ConfigError: if a user's own law has no unit, or if its delays have no ``draw`` or a wrong number of categories.
    """
    if is_ours(law):
        return law.prepare(num_samples.copy(), rng)
    name = type(law).__name__
    unit = getattr(law, "unit", None)
    if not isinstance(unit, str) or not unit:
        raise ConfigError(f"delay: {name} must state its unit of time, such as unit = 's', got {shown(unit)}")
    with no_global_draws(law, f"delay: {name}.prepare", "the generator that it is given"):
        delays = law.prepare(num_samples.copy(), rng)
    if not callable(getattr(delays, "draw", None)):
        raise ConfigError(f"delay: {name}.prepare must return an object with draw(client, rng), got {shown(delays)}")
    categories = getattr(delays, "categories", None)
    if categories is not None and len(categories) != len(num_samples):
        raise ConfigError(
            f"delay: {name} must have a category for each of {len(num_samples)} clients, got {len(categories)}"
        )
    return delays


def _around(seconds: np.ndarray, jitter: float = 0.0, **categories: Any) -> UniformDelays:
    """Return durations of ``seconds``, (N,), or uniform around them with a relative half-width of ``jitter``."""
    return UniformDelays(seconds * (1 - jitter), seconds * 2 * jitter, **categories)


@DELAYS.register("constant")
class ConstantLaw(DelayLaw):
    """The same duration for every job of every client: no spread, hence no stragglers."""

    duration: Positive = 1.0
    """Duration of a job, in time units."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign every client the duration."""
        return _around(np.full(len(num_samples), self.duration))


@DELAYS.register("uniform")
class UniformLaw(DelayLaw):
    """Uniform between low and high for every job of every client."""

    low: NotNegative
    """Shortest duration of a job, in time units."""
    high: Positive
    """Longest duration of a job, in time units; at least ``low``."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low: must be at most high ({self.high}), got {self.low}")
        return self

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign every client the same bounds."""
        count = len(num_samples)
        return UniformDelays(np.full(count, self.low), np.full(count, self.high - self.low))


@DELAYS.register("exponential")
class ExponentialLaw(DelayLaw):
    """Exponential with the same mean for every job of every client: a memoryless long tail."""

    mean: Positive = 1.0
    """Mean duration of a job, in time units."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> ExponentialDelays:
        """Assign every client the same mean."""
        nothing = np.zeros(len(num_samples))
        return ExponentialDelays(nothing, nothing, np.full(len(num_samples), self.mean))


@DELAYS.register("per_client")
class PerClientLaw(DelayLaw):
    """A fixed duration for each client, from a list that repeats if there are more clients."""

    durations: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Duration of each client's jobs, in time units; client i has ``durations[i % len(durations)]``."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign client i ``durations[i % len(durations)]``."""
        return _around(np.resize(self.durations, len(num_samples)))


@DELAYS.register("bandwidth")
class BandwidthLaw(DelayLaw):
    """Download of the model, training, upload of the update: bytes over each client's bandwidth, and seconds."""

    unit = "s"

    megabytes: Positive
    """Size of the model, and of an update, in millions of bytes: 4e-6 times the number of trained parameters."""
    download: Annotated[tuple[Positive, ...], Field(min_length=1)] = (20.0,)
    """Each client's bandwidth for the model in megabits a second; client i has ``download[i % len(download)]``."""
    upload: Annotated[tuple[Positive, ...], Field(min_length=1)] = (5.0,)
    """The same for the update."""
    training: Annotated[tuple[NotNegative, ...], Field(min_length=1)] = (1.0,)
    """Seconds that each client trains in a job, by client in the same way."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign client i its sum of the three parts."""
        down, up, training = (np.resize(part, len(num_samples)) for part in (self.download, self.upload, self.training))
        return _around(8 * self.megabytes * (1 / down + 1 / up) + training)


@DELAYS.register("trace")
class TraceLaw(DelayLaw):
    """Durations from a CSV file (client,seconds); each job draws one of its client's rows.

    Client numbers start at 0. All rows of a client are equally likely. Rows of clients that a run does
    not have, and other columns, are ignored.
    """

    unit = "s"

    path: Path
    """Path of the file, relative to the working folder."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> TraceDelays:
        """Read the recorded durations from the file.

        Raises:
            DataError: if the file cannot be read, has a bad row (the message names its line), or lacks a client.
        """
        rows: list[list[float]] = [[] for _ in num_samples]
        for where, row in read_rows(self.path, ("client", "seconds")):
            client = int(parse_number(row["client"], int, f"{where}: client must be a whole number of at least 0"))
            duration = parse_number(row["seconds"], float, f"{where}: seconds must be a number of at least 0")
            if not math.isfinite(duration):
                raise DataError(f"{where}: seconds must be a number of at least 0, got {row['seconds']!r}")
            if client < len(rows):
                rows[client].append(duration)
        if [] in rows:
            raise DataError(f"{self.path}: no row for client {rows.index([])} of {len(rows)}")
        return TraceDelays(np.concatenate(rows), np.cumsum([0, *map(len, rows)]))


def read_rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield each row of a CSV file that has the given columns, after the text that names its file and line.

    Raises:
        DataError: if the file cannot be read, or lacks a column.
    """
    try:
        with regular(path).open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            if not set(columns) <= set(rows.fieldnames or ()):
                raise DataError(f"{path}, line 1: the header must name the columns {','.join(columns)}")
            for row in rows:
                yield f"{path}, line {rows.line_num}", row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def parse_number(text: str | None, kind: Callable[[str], float], message: str) -> float:
    """Parse ``text`` as a number of at least 0, or raise a DataError that begins with ``message``."""
    try:
        number = kind(text or "")
    except ValueError:
        number = -1
    if not number >= 0:
        raise DataError(f"{message}, got {text!r}")
    return number


# The papers' laws: FedEcho, FADAS, FedRevive, FedADT and KUIPER

CATEGORIES = ("short", "medium", "long")


def size_rank(num_samples: np.ndarray) -> np.ndarray:
    """Return each client's rank by sample count, (N,) in [0, 1]; equal counts share their mean rank."""
    _, position, counts = np.unique(num_samples, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts + 1) / 2
    return mean_rank[position] / max(len(num_samples) - 1, 1)


class CategoryLaw(DelayLaw):
    """Durations uniform within the bounds of each client's category, and drawn anew for each job."""

    bounds: ClassVar[tuple[tuple[float, float], ...]]
    """Shortest and longest duration of each category in ``CATEGORIES``."""

    @abstractmethod
    def categories(self, num_samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw each client's category, an (N,) int8 index into ``CATEGORIES``."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Draw each client's category."""
        index = self.categories(num_samples, rng)
        low, high = np.array(self.bounds, dtype=float).T
        return UniformDelays(low[index], (high - low)[index], category_index=index, category_names=CATEGORIES)


class FedEchoLaw(CategoryLaw):
    """FedEcho's delays (Section 5 and Table 1): categories that depend on a client's sample count.

    A client's score is ``(size rank + gamma u) / (1 + gamma)``, ``u`` uniform on [0, 1]. The floor(N / 10) clients with
    the highest scores are long, the next floor(3 N / 10) medium, the rest short. With ``gamma`` 0, size alone decides;
    a large ``gamma`` makes category and size independent. The paper asks for this and for at most 10% long clients. It
    prints no formula; this one is ours. Nor does it say whether a client keeps one duration for all its jobs.
    """

    unit = "10 s"

    gamma: float = Field(1.0, ge=0, le=1e9)
    """Noise in the category's dependence on the sample count (0: none); the paper prints no value."""

    def categories(self, num_samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw each client's category by its score; equal scores are ordered by ``u``."""
        num_clients = len(num_samples)
        noise = rng.random(num_clients)
        score = (size_rank(num_samples) + self.gamma * noise) / (1 + self.gamma)
        num_long, num_medium = num_clients // 10, 3 * num_clients // 10
        categories = np.empty(num_clients, dtype=np.int8)
        sizes = [num_clients - num_medium - num_long, num_medium, num_long]
        categories[np.lexsort((noise, score))] = np.repeat(range(3), sizes)
        return categories


@DELAYS.register("fedecho_large")
class FedEchoLarge(FedEchoLaw):
    """Short U(1, 2), medium U(3, 5), long U(50, 80), in units of 10 s (FedEcho Table 1, large)."""

    bounds = ((1, 2), (3, 5), (50, 80))


@DELAYS.register("fedecho_mild")
class FedEchoMild(FedEchoLaw):
    """Short U(1, 2), medium U(3, 5), long U(10, 20), in units of 10 s (FedEcho Table 1, mild)."""

    bounds = ((1, 2), (3, 5), (10, 20))


@DELAYS.register("fadas")
class FadasLaw(CategoryLaw):
    """Short U(1, 2), medium U(3, 5), long U(5, 8); category by Dirichlet (FADAS code, mild).

    The category is the largest entry of a draw from Dir(3, 2, 1), whatever the client's size and with no bound on the
    number of long clients: 63.7% are short, 28.5% medium and 7.9% long. The FADAS authors' code does not name the unit.
    """

    bounds = ((1, 2), (3, 5), (5, 8))

    def categories(self, num_samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw each client's category from logarithms of gamma variables, whose ratios are the Dirichlet's."""
        concentration = np.tile([3.0, 2.0, 1.0], (len(num_samples), 1))
        above = np.log(rng.standard_gamma(concentration + 1))
        return (above + np.log1p(-rng.random(concentration.shape)) / concentration).argmax(axis=1).astype(np.int8)


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
        return ExponentialDelays(self.download + low, upload + self.upload_half_width - low, train)


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
        """Assign every client the same bounds."""
        return UniformDelays(np.zeros(len(num_samples)), np.full(len(num_samples), 5000.0))


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
        """Assign each client its board."""
        names = tuple(self.epoch_seconds)
        by_board = np.array([3 * self.epoch_seconds[n] + self.test_seconds[n] for n in names])
        index = np.resize([names.index(name) for name in self.devices], len(num_samples)).astype(np.int8)
        seconds = by_board[index]
        return _around(seconds, self.jitter, category_index=index, category_names=names)


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
        """Assign each client its multiplier."""
        num_clients, kinds = len(num_samples), len(self.multipliers)
        index = (np.arange(num_clients) * kinds // max(num_clients, 1)).astype(np.int8)
        duration = self.seconds * np.array(self.multipliers)[index]
        names = tuple(f"{multiplier}x" for multiplier in self.multipliers)
        return _around(duration, self.jitter, category_index=index, category_names=names)
