"""Delay laws: how long one job of a client takes on the virtual clock.

A law's ``prepare`` draws once what stays with a client (its category, its mean); the
:class:`ClientDelays` that it returns draws the duration of each job. The two use separate random
streams, so that neither moves when the other draws more.
"""

from __future__ import annotations

import csv
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from asyncfl_lite.errors import DataError
from asyncfl_lite.registry import Registry, Settings

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Device = Literal["Nano", "TX2", "NX", "AGX"]

CATEGORIES = ("short", "medium", "long")
SHORT, MEDIUM, LONG = range(3)
MAX_REDRAWS = 20


# --- what a law draws once for each client -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClientDelays(ABC):
    """What a law drew once for each of N clients; draws the duration of each of their jobs.

    It holds arrays and never changes, so that a saved run needs only the states of its generators.

    Attributes:
        category_index: (N,) int8 place of a client's category in ``category_names``, or None.
        category_names: the names of the law's categories.
    """

    category_index: np.ndarray | None = field(default=None, kw_only=True)
    category_names: tuple[str, ...] = field(default=(), kw_only=True)

    @cached_property
    def categories(self) -> list[str] | None:
        """A client's category name by client index, or None where the law has no categories."""
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
    """Uniform between ``low`` and ``low + width``, both (N,); a width of 0 is a fixed duration."""

    low: np.ndarray
    width: np.ndarray

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of one job of ``client``, in the law's unit."""
        return self.low.item(client) + self.width.item(client) * rng.random()


@dataclass(frozen=True, eq=False)
class ExponentialDelays(ClientDelays):
    """Exponential with ``mean`` (N,), plus a uniform part between ``low`` and ``low + width`` (N,)."""

    mean: np.ndarray
    low: np.ndarray
    width: np.ndarray

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration of one job of ``client``, in the law's unit."""
        uniform = self.low.item(client) + self.width.item(client) * rng.random()
        return uniform + self.mean.item(client) * rng.standard_exponential()


@dataclass(frozen=True, eq=False)
class TraceDelays(ClientDelays):
    """One of the client's recorded durations: ``seconds[starts[client]:starts[client + 1]]``."""

    seconds: np.ndarray
    starts: np.ndarray

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return one of the client's recorded durations in seconds, each as likely as the others."""
        start, end = self.starts.item(client), self.starts.item(client + 1)
        return self.seconds.item(start + int(rng.random() * (end - start)))


# --- laws ----------------------------------------------------------------------------------------


class DelayLaw(Settings):
    """How long jobs take; abstract. A new law defines ``unit`` and ``prepare`` and is registered."""

    unit: ClassVar[str]
    """What one unit of virtual time means under this law, such as ``"s"``."""

    @abstractmethod
    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> ClientDelays:
        """Draw what stays with each client for the whole run.

        Args:
            num_samples: (N,) number of training samples of each client.
            rng: the run's stream ``delays setup``.
        """


DELAYS: Registry[DelayLaw] = Registry("delay")


def same_for_all(low: float, high: float, num_clients: int) -> UniformDelays:
    """Return uniform delays with the same bounds for every client."""
    return UniformDelays(np.full(num_clients, low), np.full(num_clients, high - low))


# --- FedEcho and FADAS: categories ---------------------------------------------------------------


def size_rank(num_samples: np.ndarray) -> np.ndarray:
    """Return each client's rank by sample count, (N,) in [0, 1]; equal counts share their mean rank."""
    _, position, counts = np.unique(num_samples, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts + 1) / 2
    return mean_rank[position] / max(len(num_samples) - 1, 1)


def categories_by_rank(num_samples: np.ndarray, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """Return categories by ``(size rank + gamma u) / (1 + gamma)``, with ``u`` uniform on [0, 1].

    The floor(N / 10) highest scores are long, the next floor(3 N / 10) medium, the rest short:
    ``gamma`` 0 goes by size alone, and a large one makes category and size independent. FedEcho
    (Section 5) asks for that and for at most 10% long clients; it prints no formula, this one is ours.

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


def log_dirichlet(concentration: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a draw from Dir(row) for each row of ``concentration``, as logarithms up to a constant.

    Logarithms keep draws with a very small concentration, which would underflow, apart.

    Args:
        concentration: (N, C), each above 0.
        rng: generator of the draws.
    """
    gamma_above = rng.standard_gamma(concentration + 1)
    return np.log(gamma_above) + np.log1p(-rng.random(concentration.shape)) / concentration


def categories_by_dirichlet(num_samples: np.ndarray, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """Return categories by the largest entry of a Dirichlet draw, as FADAS, but led by size.

    The concentration is (3, 2, 1) / gamma for the clients that are small enough to be short at
    ``gamma`` 0, (2, 3, 1) / gamma for the medium and (1, 2, 3) / gamma for the long ones. Draws with
    more than 10% long clients are repeated; after ``MAX_REDRAWS``, the long clients with the smallest
    long weight take their next best category. Ours, as an alternative to :func:`categories_by_rank`.

    Returns:
        (N,) int8 indices into ``CATEGORIES``.
    """
    preference = np.array([[3.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 2.0, 3.0]])
    concentration = preference[categories_by_rank(num_samples, 0.0, rng)] / max(gamma, 1e-9)
    most_long = len(num_samples) // 10
    for _ in range(MAX_REDRAWS):
        weights = log_dirichlet(concentration, rng)
        long_clients = np.flatnonzero(weights.argmax(axis=1) == LONG)
        if len(long_clients) <= most_long:
            break
    else:
        fewest_first = long_clients[np.argsort(weights[long_clients, LONG])]
        weights[fewest_first[: len(long_clients) - most_long], LONG] = -np.inf
    return weights.argmax(axis=1).astype(np.int8)


class CategoryLaw(DelayLaw):
    """A short, medium or long category for each client; durations uniform within its bounds."""

    bounds: ClassVar[tuple[tuple[float, float], ...]]
    """Low and high duration of each of ``CATEGORIES``."""

    runtime_draw: Literal["per_job", "per_client"] = "per_job"
    """Whether a duration is drawn anew for each job or once for each client."""

    @abstractmethod
    def categorise(self, num_samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return each client's category, (N,) int8 indices into ``CATEGORIES``."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Draw each client's category and, where wanted, its one duration."""
        index = self.categorise(num_samples, rng)
        low, high = np.array(self.bounds).T
        start, width = low[index], (high - low)[index]
        if self.runtime_draw == "per_client":
            start, width = start + width * rng.random(len(index)), np.zeros(len(index))
        return UniformDelays(start, width, category_index=index, category_names=CATEGORIES)


class FedEchoLaw(CategoryLaw):
    """FedEcho's delays (Section 5 and Table 1), by a category that depends on a client's size."""

    unit = "10 s"

    gamma: float = Field(1.0, ge=0, le=1e9)
    """How little the category depends on the sample count; the paper prints no value."""

    category_rule: Literal["rank", "fadas_dirichlet"] = "rank"

    def categorise(self, num_samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return each client's category, (N,) int8 indices into ``CATEGORIES``."""
        rule = categories_by_rank if self.category_rule == "rank" else categories_by_dirichlet
        return rule(num_samples, self.gamma, rng)


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

    The category is the largest entry of a draw from Dir(3 scale, 2 scale, scale), whatever the
    client's size and with no bound on the number of long clients: with ``scale`` 1, 63.7% are short,
    28.5% medium and 7.9% long. Bounds and scale are those of the FADAS authors' code, which gives the
    unit no name.
    """

    unit = "time units"
    bounds = ((1, 2), (3, 5), (5, 8))

    scale: float = Field(1.0, ge=1e-9, le=1e9)
    """Common factor of the Dirichlet concentrations."""

    def categorise(self, num_samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return each client's category, (N,) int8 indices into ``CATEGORIES``."""
        concentration = np.tile([3 * self.scale, 2 * self.scale, self.scale], (len(num_samples), 1))
        return log_dirichlet(concentration, rng).argmax(axis=1).astype(np.int8)


# --- FedRevive -----------------------------------------------------------------------------------


class FedReviveLaw(DelayLaw):
    """Exponential training, constant download and uniform upload, with means that stay per client."""

    unit = "time units"
    train_means: ClassVar[tuple[float, ...]]
    train_shares: ClassVar[tuple[float, ...]]
    download: ClassVar[float]
    upload_means: ClassVar[tuple[float, ...]]
    upload_half_width: ClassVar[float]

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> ExponentialDelays:
        """Draw each client's mean training and upload time, independently of each other."""
        train = rng.choice(self.train_means, len(num_samples), p=self.train_shares)
        upload = rng.choice(self.upload_means, len(num_samples))
        low = np.maximum(upload - self.upload_half_width, 0)
        return ExponentialDelays(train, self.download + low, upload + self.upload_half_width - low)


@DELAYS.register("fedrevive")
class FedReviveDefault(FedReviveLaw):
    """Train Exp(1.0 to 1.6), download 0.1, upload 0.15 or 0.25 +- 0.02 (FedRevive App. D)."""

    train_means = (1.0, 1.3, 1.6)
    train_shares = (0.25, 0.5, 0.25)
    download = 0.1
    upload_means = (0.15, 0.25)
    upload_half_width = 0.02


@DELAYS.register("fedrevive_shift")
class FedReviveShift(FedReviveLaw):
    """Train Exp(0.1), download 0.02, upload 0.05 or 0.10 +- 0.01 (FedRevive App. D.1)."""

    train_means = (0.1,)
    train_shares = (1.0,)
    download = 0.02
    upload_means = (0.05, 0.10)
    upload_half_width = 0.01


# --- KUIPER --------------------------------------------------------------------------------------


class KuiperDeviceLaw(DelayLaw):
    """Measured seconds of four boards; client i has ``devices[i % len(devices)]``.

    A job takes ``epochs`` times the seconds of a training epoch (KUIPER Table 1) plus those of a
    pass over the test set (Table 2), whatever the client's sample count: a client of the paper held
    about 500 MB of HMDB51 or 1.73 GB of UCF101. That a job includes one test pass is assumed.
    """

    unit = "s"
    epoch_seconds: ClassVar[dict[str, float]]
    test_seconds: ClassVar[dict[str, float]]

    devices: Annotated[tuple[Device, ...], Field(min_length=1)] = ("Nano", "TX2", "NX", "AGX")
    epochs: int = Field(3, ge=1)
    jitter: float = Field(0.0, ge=0, le=1)
    """A duration is uniform within this share above and below the measured one."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Give each client its board; draws nothing."""
        names = tuple(self.epoch_seconds)
        by_board = np.array([self.epochs * self.epoch_seconds[n] + self.test_seconds[n] for n in names])
        index = np.resize([names.index(name) for name in self.devices], len(num_samples)).astype(np.int8)
        seconds = by_board[index]
        low, width = seconds * (1 - self.jitter), seconds * 2 * self.jitter
        return UniformDelays(low, width, category_index=index, category_names=names)


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
    """A third of the clients at 1 x, a third at 3 x, a third at 5 x the base (KUIPER Fig. 7).

    The paper has 12 clients, 4 of each, in this order; other numbers of clients are cut in thirds
    in the same way. It does not print the base: the default is its AGX board's on HMDB51.
    """

    unit = "s"
    multipliers: ClassVar[tuple[int, ...]] = (1, 3, 5)

    seconds: Positive = 3 * 84.5 + 68.3

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Give each client its multiplier; draws nothing."""
        num_clients, kinds = len(num_samples), len(self.multipliers)
        index = (np.arange(num_clients) * kinds // max(num_clients, 1)).astype(np.int8)
        duration = self.seconds * np.array(self.multipliers)[index]
        names = tuple(f"{multiplier}x" for multiplier in self.multipliers)
        return UniformDelays(duration, np.zeros(num_clients), category_index=index, category_names=names)


# --- FedADT, and laws for teaching and tests -----------------------------------------------------


@DELAYS.register("fedadt")
class FedAdtLaw(DelayLaw):
    """Uniform between 0 and 5000 s for every job of every client (FedADT Section V-A)."""

    unit = "s"

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Give every client the same bounds; draws nothing."""
        return same_for_all(0.0, 5000.0, len(num_samples))


@DELAYS.register("constant")
class ConstantLaw(DelayLaw):
    """The same duration for every job of every client: no spread, hence no stragglers."""

    unit = "time units"

    duration: Positive = 1.0

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Give every client the same duration; draws nothing."""
        return same_for_all(self.duration, self.duration, len(num_samples))


@DELAYS.register("uniform")
class UniformLaw(DelayLaw):
    """Uniform between low and high for every job of every client."""

    unit = "time units"

    low: NotNegative
    high: Positive

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low: must be at most high ({self.high}), got {self.low}")
        return self

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Give every client the same bounds; draws nothing."""
        return same_for_all(self.low, self.high, len(num_samples))


@DELAYS.register("exponential")
class ExponentialLaw(DelayLaw):
    """Exponential with the same mean for every job of every client: a memoryless long tail."""

    unit = "time units"

    mean: Positive = 1.0

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> ExponentialDelays:
        """Give every client the same mean; draws nothing."""
        nothing = np.zeros(len(num_samples))
        return ExponentialDelays(np.full(len(num_samples), self.mean), nothing, nothing)


@DELAYS.register("per_client")
class PerClientLaw(DelayLaw):
    """A fixed duration for each client, by a list that is repeated when clients outnumber it."""

    unit = "time units"

    durations: Annotated[tuple[Positive, ...], Field(min_length=1)]

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Give client i ``durations[i % len(durations)]``; draws nothing."""
        return UniformDelays(np.resize(self.durations, len(num_samples)), np.zeros(len(num_samples)))


# --- recorded durations --------------------------------------------------------------------------


@DELAYS.register("trace")
class TraceLaw(DelayLaw):
    """Recorded seconds from a CSV file (client,seconds); a job takes one of its client's rows.

    Clients count from 0. Each of a client's rows is as likely as its others; rows of clients that a
    run does not have, and other columns, are ignored.
    """

    unit = "s"

    path: Path
    """The file, relative to the working folder."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> TraceDelays:
        """Read the file; draws nothing.

        Raises:
            DataError: if it cannot be read, has a bad row (named by its line), or lacks a client.
        """
        clients, seconds = read_trace(self.path, len(num_samples))
        rows = np.bincount(clients, minlength=len(num_samples))
        if not rows.all():
            raise DataError(f"{self.path}: no row for client {rows.argmin()} of {len(num_samples)}")
        by_client = np.argsort(clients, kind="stable")
        return TraceDelays(seconds[by_client], np.concatenate([[0], np.cumsum(rows)]))


def read_trace(path: Path, num_clients: int) -> tuple[np.ndarray, np.ndarray]:
    """Read the rows of clients 0 to ``num_clients - 1``, in the order of the file.

    Returns:
        (R,) int64 clients and (R,) float64 seconds.

    Raises:
        DataError: if the file cannot be read, or has a bad header or row, with its line.
    """
    clients, seconds = [], []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            if not {"client", "seconds"} <= set(rows.fieldnames or ()):
                raise DataError(f"{path}, line 1: the header must name the columns client,seconds")
            for row in rows:
                where = f"{path}, line {rows.line_num}"
                client = parse_number(row["client"], int, f"{where}: client must be a whole number")
                duration = parse_number(row["seconds"], float, f"{where}: seconds must be a number")
                if client < num_clients:
                    clients.append(client)
                    seconds.append(duration)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return np.array(clients, dtype=np.int64), np.array(seconds, dtype=np.float64)


def parse_number(text: str | None, kind: Callable[[str], float], message: str) -> float:
    """Return ``text`` as a finite number of at least 0, or raise a DataError that starts with ``message``."""
    try:
        number = kind(text or "")
    except ValueError:
        number = -1
    if not 0 <= number < math.inf:
        raise DataError(f"{message} of at least 0, got {text!r}")
    return number
