"""The delay laws of FedEcho and FADAS: every client belongs to a category of durations."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from asyncfl_lite.simulator.delays.base import DELAYS, DelayLaw, UniformDelays

CATEGORIES = ("short", "medium", "long")
SHORT, MEDIUM, LONG = range(3)
MAX_REDRAWS = 20


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


def log_dirichlet(concentration: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a draw from Dir(row) for each row of ``concentration``, as logarithms up to a constant.

    Logarithms keep draws distinct where the concentration is so small that the draws themselves would underflow.

    Args:
        concentration: (N, C) concentrations, each above 0.
        rng: generator from which random numbers are drawn.
    """
    gamma_above = rng.standard_gamma(concentration + 1)
    return np.log(gamma_above) + np.log1p(-rng.random(concentration.shape)) / concentration


def categories_by_dirichlet(num_samples: np.ndarray, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """Draw each client's category as in FADAS, but with Dirichlet concentrations that depend on the client's size.

    The concentration is (3, 2, 1) / gamma for the clients that are small enough to be short at
    ``gamma`` 0, (2, 3, 1) / gamma for the medium ones and (1, 2, 3) / gamma for the long ones. Draws with
    more than 10% long clients are repeated; after ``MAX_REDRAWS``, the long clients with the smallest
    long weight take their next best category. This rule is ours, an alternative to :func:`categories_by_rank`.

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
    """A law with short, medium and long categories of clients; durations are uniform within a category's bounds."""

    bounds: ClassVar[tuple[tuple[float, float], ...]]
    """Shortest and longest duration of each category in ``CATEGORIES``."""

    runtime_draw: Literal["per_job", "per_client"] = "per_job"
    """Whether durations are drawn anew for each job or once for each client."""

    @abstractmethod
    def categorise(self, num_samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return each client's category, (N,) int8 indices into ``CATEGORIES``."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Draw each client's category and, if a client keeps one duration for all its jobs, that duration."""
        index = self.categorise(num_samples, rng)
        low, high = np.array(self.bounds).T
        start, width = low[index], (high - low)[index]
        if self.runtime_draw == "per_client":
            start, width = start + width * rng.random(len(index)), np.zeros(len(index))
        return UniformDelays(start, width, category_index=index, category_names=CATEGORIES)


class FedEchoLaw(CategoryLaw):
    """FedEcho's delays (Section 5 and Table 1): categories that depend on a client's sample count."""

    unit = "10 s"

    gamma: float = Field(1.0, ge=0, le=1e9)
    """Noise in the category's dependence on the sample count (0: none); the paper prints no value."""

    category_rule: Literal["rank", "fadas_dirichlet"] = "rank"
    """Rule that derives categories from sample counts: by rank with noise, or by a Dirichlet draw as in FADAS's code.
    """

    def categorise(self, num_samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return each client's category, (N,) int8 indices into ``CATEGORIES``."""
        rule = categories_by_rank if self.category_rule == "rank" else categories_by_dirichlet
        return rule(num_samples, self.gamma, rng)


@DELAYS.register("fedecho_large")
class FedEchoLarge(FedEchoLaw):
    """Short U(1, 2), medium U(3, 5), long U(50, 80), in units of 10 s (FedEcho Table 1, large).

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("fedecho_large")().prepare(np.arange(1, 11), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(10)]
    [1.8, 1.0, 1.9, 1.0, 1.7, 3.4, 1.9, 4.1, 3.6, 62.7]
    """

    bounds = ((1, 2), (3, 5), (50, 80))


@DELAYS.register("fedecho_mild")
class FedEchoMild(FedEchoLaw):
    """Short U(1, 2), medium U(3, 5), long U(10, 20), in units of 10 s (FedEcho Table 1, mild).

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("fedecho_mild")().prepare(np.arange(1, 11), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(10)]
    [1.8, 1.0, 1.9, 1.0, 1.7, 3.4, 1.9, 4.1, 3.6, 14.2]
    """

    bounds = ((1, 2), (3, 5), (10, 20))


@DELAYS.register("fadas")
class FadasLaw(CategoryLaw):
    """Short U(1, 2), medium U(3, 5), long U(5, 8); category by Dirichlet (FADAS code, mild).

    The category is the largest entry of a draw from Dir(3 scale, 2 scale, scale), whatever the
    client's size and with no bound on the number of long clients: with ``scale`` 1, 63.7% are short,
    28.5% medium and 7.9% long. Bounds and scale are those of the FADAS authors' code, which does not
    name the unit.

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("fadas")().prepare(np.arange(1, 6), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(5)]
    [4.8, 1.2, 1.6, 1.1, 1.8]
    """

    unit = "time units"
    bounds = ((1, 2), (3, 5), (5, 8))

    scale: float = Field(1.0, ge=1e-9, le=1e9)
    """Factor on all Dirichlet concentrations."""

    def categorise(self, num_samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return each client's category, (N,) int8 indices into ``CATEGORIES``."""
        concentration = np.tile([3 * self.scale, 2 * self.scale, self.scale], (len(num_samples), 1))
        return log_dirichlet(concentration, rng).argmax(axis=1).astype(np.int8)
