"""Checks T6 and T13: FedEcho's Theorem 4.5 (rate T^-1/2), with and without its assumptions, and Remark 4.6 (M^-1/2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from asyncfl_lite.algorithms import Algorithm, Update
from asyncfl_lite.base.streams import stream
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_reproduction.theory.beds import context, race, spread, started, train
from asyncfl_reproduction.theory.results import AS_PRINTED, ASIDE, Case, Check, checked, slope

RATE = -0.5
"""The theorem's exponent of T and of M."""
LENGTHS = (250, 1000, 4000, 16000)
"""T, the lengths of runs in versions."""


@dataclass(frozen=True)
class Fleet:
    """The test bed of T6: N clients with quadratic objectives, noisy gradients and random staleness.

    Attributes:
        clients, size, steps, noise, x0: N, M, K, σ_l and the initial model.
        oldest: largest staleness; each update's staleness is drawn uniformly from 0 to this number.
    """

    clients: int = 20
    size: int = 4
    steps: int = 4
    noise: float = 0.5
    oldest: int = 5
    x0: float = 2.0

    @property
    def centres(self) -> np.ndarray:
        """The ``(N,)`` optima c_i of the clients' quadratics."""
        return spread(self.clients).numpy()

    @property
    def scale(self) -> float:
        """The term σ_l² + K σ_g² under the root in both of the theorem's learning rates."""
        return self.noise**2 + self.steps * float(self.centres.var())

    @property
    def excess(self) -> float:
        """The initial excess F = f(x_0) - min f in one coordinate."""
        return 0.5 * (self.x0 - float(self.centres.mean())) ** 2

    def local_rate(self, length: int) -> float:
        """Return the theorem's η_l = √F / √(T K (σ_l² + K σ_g²)), but at most 1/(8K)."""
        return min(1 / (8 * self.steps), (self.excess / (length * self.steps * self.scale)) ** 0.5)

    def distill_rate(self, length: int, steps: int) -> float:
        """Return the theorem's η_d = F / (√(T³ (σ_l² + K σ_g²)) Q)."""
        return self.excess / (length**1.5 * self.scale**0.5 * steps)

    def chosen(self, skews: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw ``(M, d)`` clients without replacement, as one buffer for each of ``(d,)`` skews.

        With a skew of s, clients in the upper half are s times as likely as the others; 1 is Assumption 4.4.
        """
        upper = np.arange(self.clients) >= self.clients / 2
        keys = rng.standard_exponential((len(skews), self.clients)) / np.where(upper, skews[:, None], 1.0)
        return np.argpartition(keys, self.size, axis=1)[:, : self.size].T  # the smallest keys have the wanted odds


def follow(server: Algorithm, fleet: Fleet, rates: Tensor, skews: np.ndarray, length: int, seed: int = 0) -> np.ndarray:
    """Run a buffered method for T = ``length`` versions, with an independent experiment in each coordinate.

    The method has started, and acts on each coordinate alone. Each of the ``(d,)`` coordinates has its own local
    learning rate and its own skew of arrivals, see :meth:`Fleet.chosen`.

    Returns:
        ``(T, d)`` the squared gradient of f in each coordinate, before each version.
    """
    rng, centres = stream(seed, "theory T6"), fleet.centres
    versions, gradients = [server.x], []
    for version in range(length):
        gradients.append((server.x.numpy() - centres.mean()) ** 2)
        ages = np.minimum(rng.integers(0, fleet.oldest + 1, fleet.size), version)
        starts = torch.stack([versions[-1 - age] for age in ages])
        theirs = torch.from_numpy(centres[fleet.chosen(skews, rng)])
        noise = torch.from_numpy(fleet.noise * rng.standard_normal((fleet.steps, *starts.shape)))
        deltas = train(starts, lambda x, k, c=theirs, e=noise: x - c + e[k], rates.expand_as(starts), fleet.steps)
        for client, (delta, age) in enumerate(zip(deltas, ages.tolist(), strict=True)):
            server.receive(Update(client=client, delta=delta, start_version=version - age, start=versions[-1 - age]))
        versions = [*versions[-fleet.oldest :], server.x]
    return np.array(gradients)


def mean_gradients(
    lengths: tuple[int, ...] = LENGTHS,
    skews: tuple[float, ...] = (1.0, 10.0),
    seeds: int = 24,
    seed: int = 0,
    until: int | None = None,
    fleet: Fleet | None = None,
) -> pd.DataFrame:
    """Return FedBuff's mean squared gradient over T versions at the theorem's rates, with η = √M.

    FedBuff acts on each coordinate alone, so one run holds ``seeds`` repetitions for each T of ``lengths`` and each
    skew of the arrivals (:meth:`Fleet.chosen`). If it stops after ``until`` versions, longer T are left out, and the
    others are not changed. The fleet is T6's by default.

    Returns:
        A row for each T, a column for each skew.
    """
    longest = until or max(lengths)
    fleet, shape = fleet or Fleet(), (len(skews), len(lengths), seeds)
    rates = torch.tensor([fleet.local_rate(length) for length in lengths], dtype=torch.float64)
    rates = rates[:, None].expand(shape).reshape(-1)
    server = started("fedbuff", torch.full_like(rates, fleet.x0), buffer_size=fleet.size, server_lr=fleet.size**0.5)
    squares = follow(server, fleet, rates, np.repeat(skews, len(lengths) * seeds), longest, seed)
    squares = squares.reshape(-1, *shape)
    reached = [(place, length) for place, length in enumerate(lengths) if length <= longest]
    found = {length: squares[:length, :, place].mean((0, 2)) for place, length in reached}
    return pd.DataFrame.from_dict(found, orient="index", columns=list(skews))


VARIED = {
    "M = 1": Fleet(size=1),
    "M = 16": Fleet(size=16),
    "no staleness": Fleet(oldest=0),
    "staleness up to 20": Fleet(oldest=20),
}
"""T6's clients with a different buffer size or a different staleness."""
SHORTER = (250, 1000)
"""Values of T at which :data:`VARIED` is run."""


@lru_cache(maxsize=1)
def varied_means() -> pd.DataFrame:
    """Return the mean squared gradient under uniform arrivals, a row for each T of :data:`SHORTER`.

    There is a column for T6's own fleet, "M = 4", and for each of :data:`VARIED`.
    """
    fleets = {"M = 4": Fleet(), **VARIED}
    return pd.DataFrame({name: mean_gradients(SHORTER, (1.0,), fleet=fleet)[1.0] for name, fleet in fleets.items()})


class RandomTeachers(VectorModel):
    """A model whose predictions are random, so that FedEcho stores nothing that relates to a client."""

    rng = stream(0, "theory T6, teachers")

    def outputs(self, x: Tensor, inputs: Tensor, *rest: object, **options: object) -> Tensor:
        """Return random logits."""
        return torch.from_numpy(3 * self.rng.standard_normal((len(inputs), 3)))


def with_random_teachers(
    length: int, steps: int = 2, clip: float = 5.0, rate: float | None = None
) -> tuple[float, float, float]:
    """Run FedEcho with random teachers on T6's clients, and FedBuff on the same arrivals.

    T, Q and ν are ``length``, ``steps`` and ``clip``; η_d is the theorem's for this T by default.

    Returns:
        The mean squared gradient with distillation and without, summed over six coordinates; and T Q η_d ν, the longest
        distance over which distillation can have moved the model in all.
    """
    fleet = Fleet()
    x0 = torch.full((6,), fleet.x0, dtype=torch.float64)
    rate = fleet.distill_rate(length, steps) if rate is None else rate
    model = RandomTeachers(nn.Linear(2, 3, bias=False, dtype=torch.float64))
    model.rng = stream(0, "theory T6, teachers")
    inputs = torch.from_numpy(stream(0, "theory T6, inputs").standard_normal((8, 2)))
    settings = {"distill_opt": "sgd", "distill_lr": rate, "distill_unit": "steps", "distill_q": steps, "clip": clip}
    means = []
    for name, more in (("fedecho", settings), ("fedbuff", {})):
        around = context(fleet.clients, model=model, inputs=inputs)
        server = started(name, x0, around, buffer_size=fleet.size, server_lr=fleet.size**0.5, **more)
        rates = torch.full_like(x0, fleet.local_rate(length))
        means.append(float(follow(server, fleet, rates, np.ones(6), length).sum(1).mean()))
    return means[0], means[1], length * steps * rate * clip


def random_teachers_effect(lengths: tuple[int, int] = (50, 200), *, shrinking: bool = True) -> float:
    """Return the effect of random teachers in long runs, divided by their effect in short runs.

    Their effect is the relative difference between FedEcho's mean squared gradient and FedBuff's. By the theorem it
    falls at least as fast as T^-1/2, like the other terms. If not ``shrinking``, the shorter T's η_d is used for both.
    """
    first = Fleet().distill_rate(lengths[0], 2)
    changed = []
    for length in lengths:
        distilled, plain, _ = with_random_teachers(length, rate=None if shrinking else first)
        changed.append(abs(distilled / plain - 1))
    return changed[1] / changed[0]


def check_t6(means: pd.DataFrame | None = None) -> Check:
    """Check T6, FedEcho's Theorem 4.5 (Eq. 5): the mean squared gradient falls as T^-1/2.

    The result of :func:`mean_gradients` is computed if it is not given, which takes most of the check's time.
    """
    means = mean_gradients() if means is None else means
    uniform, skewed = means[1.0], means[10.0]
    varied, rest = varied_means(), means.index[1:]
    effect, constant_effect = (random_teachers_effect(shrinking=shrinking) for shrinking in (True, False))
    far = mean_gradients((1000,), (1.0,), fleet=Fleet(oldest=100))[1.0][1000]
    cases = [
        Case(AS_PRINTED, "uniform arrivals: slope", slope(rest, uniform[rest]), "=", RATE, 0.07),
        *(
            Case(AS_PRINTED, f"uniform arrivals, {name}: slope", slope(SHORTER, varied[name]), "<=", RATE, 0.07)
            for name in VARIED
        ),
        Case(AS_PRINTED, "random teachers: their effect at T = 200 over that at T = 50", effect, "<=", 4**RATE),
        Case(ASIDE, "random teachers, η_d as at T = 50: the same", constant_effect, "<=", 4**RATE),
        Case(ASIDE, "staleness up to 100, T = 1000: mean squared gradient, 4 at the start", far, "<=", 4.0),
        *(
            Case(ASIDE, f"arrivals: half of the clients 10 times as likely, T = {t}", skewed[t], "<=", uniform[t])
            for t in means.index
        ),
        Case(ASIDE, "arrivals 10:1, FedBuff, η_l = 0.1", _race_gradient("fedbuff", 0.1), "=", 0.0, 0.01),
        Case(ASIDE, "arrivals 10:1, FedBuff, η_l = 0.01", _race_gradient("fedbuff", 0.01), "=", 0.0, 0.01),
        Case(ASIDE, "arrivals 10:1, CA²FL, η_l = 0.1", _race_gradient("ca2fl", 0.1), "=", 0.0, 0.01),
    ]
    return checked("T6", cases)


def check_t13() -> Check:
    """Check T13, FedEcho's Remark 4.6: for T large enough the rate is O(1/√(TM)), in T and in M."""
    varied, sizes = varied_means(), (1, 4, 16)
    short, long = ({size: varied[f"M = {size}"][length] for size in sizes} for length in SHORTER)
    over_size = [slope(sizes, [means[size] for size in sizes]) for means in (long, short)]
    over_length = [slope(SHORTER, [short[size], long[size]]) for size in sizes]
    return checked(
        "T13",
        [
            Case(AS_PRINTED, "T = 1000: slope over M = 1, 4, 16", over_size[0], "<=", RATE, 0.07),
            *(
                Case(AS_PRINTED, f"M = {size}: slope over T = 250, 1000", one, "<=", RATE, 0.07)
                for size, one in zip(sizes, over_length, strict=True)
            ),
            Case(ASIDE, "T = 250: slope over M = 1, 4, 16", over_size[1], "<=", RATE, 0.07),
            Case(ASIDE, "4,000 updates: M = 16 in place of M = 4", short[16] / long[4], "<=", 1.0),
        ],
    )


def settled(name: str, lr: float = 0.1, **more: float | str) -> np.ndarray:
    """Return the model after each of the last 1,100 arrivals from two clients: optima 1 and -1, speeds 10 and 1."""
    return race(name, lr=lr, versions=max(4000, int(40 / lr)), **more)[-1100:]


def _race_gradient(name: str, lr: float) -> float:
    return float((settled(name, lr, scheduling="after_agg") ** 2).mean())
