"""Dirichlet partitions in four versions, each as in the code of a different paper."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.tasks.partitions.base import PARTITIONS, Partition, Parts, by_client

MAX_REDRAWS = 20
Alpha = Annotated[float, Field(gt=0, le=1e9)]
MAX_CANDIDATES = 100
AT_ONCE = 2**20
"""Number of shuffled samples in memory at a time."""
SMALL_SHARE = 1e-12
"""Number added to drawn class shares, so that every class can always be assigned."""


def counts_by_share(class_sizes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the (C, N) int sample counts, given the (C,) class sizes and the clients' (C, N) shares of them."""
    cuts = (np.cumsum(shares, axis=1)[:, :-1] * class_sizes[:, None]).astype(np.int64)
    return np.diff(cuts, axis=1, prepend=0, append=class_sizes[:, None])


def deal(kinds: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Deal ``counts[class, client]`` random samples of each class to each client; return each sample's client (n,)."""
    shuffled = rng.permutation(len(kinds))
    class_by_class = shuffled[np.argsort(kinds[shuffled], kind="stable")]
    client_of = np.empty(len(kinds), dtype=np.int64)
    num_classes, num_clients = counts.shape
    client_of[class_by_class] = np.repeat(np.tile(np.arange(num_clients), num_classes), counts.ravel())
    return client_of


def donations(sizes: np.ndarray, total: int) -> np.ndarray:
    """Return how many samples each client gives away, so that the largest clients give ``total`` together."""
    level = bisect_left(range(sizes.max()), -total, key=lambda level: -np.maximum(sizes - level, 0).sum())
    given = np.maximum(sizes - level, 0)
    given[np.flatnonzero(sizes >= level)[: total - given.sum()]] += 1
    return given


def top_up(client_of: np.ndarray, num_clients: int, min_size: int, rng: np.random.Generator) -> np.ndarray:
    """Move random samples from the largest clients until all have ``min_size``; return each sample's client (n,)."""
    sizes = np.bincount(client_of, minlength=num_clients)
    wanted = np.maximum(min_size - sizes, 0)
    given = donations(sizes, wanted.sum())
    shuffled = rng.permutation(len(client_of))
    grouped = shuffled[np.argsort(client_of[shuffled], kind="stable")]
    place = np.arange(len(client_of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    moved = grouped[place < given[client_of[grouped]]]
    client_of = client_of.copy()
    client_of[rng.permutation(moved)] = np.repeat(np.arange(num_clients), wanted)
    return client_of


@PARTITIONS.register("dirichlet_class")
class DirichletClass(Partition):
    """Each class is divided among clients by Dir(alpha); sizes differ (FADAS code; FedEcho).

    Shares are drawn again until every client has ``min_size`` samples. After ``MAX_REDRAWS`` draws,
    random samples move from the largest clients to those with too few, which makes the split a little
    milder. With ``min_size`` 0, the first draw is taken, as in the FADAS authors' code; the bound for
    FedEcho is ours. The construction is the one usually credited to Hsu et al. 2019.

    >>> import numpy as np
    >>> from asyncfl_lite.tasks.partitions import PARTITIONS
    >>> labels = np.arange(60) % 3
    >>> parts = PARTITIONS.get("dirichlet_class")(alpha=0.3).split(labels, 3, np.random.default_rng(0))
    >>> [np.bincount(labels[part], minlength=3).tolist() for part in parts]  # one row per client, one number per class
    [[5, 3, 6], [0, 2, 13], [15, 15, 1]]
    """

    alpha: Alpha = 0.1
    """Concentration; with a smaller one, classes and sizes are less equal."""
    min_size: int = Field(10, ge=0)
    """Smallest number of samples of a client; 0 allows clients without any."""

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return each client's indices, at least ``min_size`` of them."""
        if len(kinds) < num_clients * self.min_size:
            allowed = len(kinds) // num_clients
            raise ConfigError(
                f"min_size: must be at most {allowed} with {len(kinds)} samples and {num_clients} clients, "
                f"got {self.min_size}"
            )
        class_sizes = np.bincount(kinds)
        for _ in range(MAX_REDRAWS):
            shares = rng.dirichlet(np.full(num_clients, self.alpha), size=len(class_sizes))
            counts = counts_by_share(class_sizes, shares)
            if counts.sum(axis=0).min() >= self.min_size:
                break
        client_of = top_up(deal(kinds, counts, rng), num_clients, self.min_size, rng)
        return by_client(client_of, num_clients)


@PARTITIONS.register("dirichlet_client")
class DirichletClient(Partition):
    """Each client draws a class mix from Dir(alpha); equal sizes (Acar et al., FedDyn code).

    One sample after the other, a client draws a class from its mix; clients take turns in random order,
    and a class without samples left is not drawn any more. With ``prior`` ``uniform``, every class has the
    concentration alpha; with ``empirical``, alpha times its frequency, so that all classes together have alpha.

    >>> import numpy as np
    >>> from asyncfl_lite.tasks.partitions import PARTITIONS
    >>> labels = np.arange(60) % 3
    >>> parts = PARTITIONS.get("dirichlet_client")(alpha=0.3).split(labels, 3, np.random.default_rng(0))
    >>> [np.bincount(labels[part], minlength=3).tolist() for part in parts]  # one row per client, one number per class
    [[11, 2, 7], [4, 4, 12], [5, 14, 1]]
    """

    alpha: Alpha = 0.1
    """Concentration; with a smaller one, a client's samples are of fewer classes."""
    prior: Literal["uniform", "empirical"] = "uniform"
    """Concentration of a class: alpha (``uniform``), or alpha times the class's frequency (``empirical``)."""

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return each client's indices, with sizes that differ by at most one."""
        counts = self.drawn_counts(np.bincount(kinds), num_clients, rng)
        return by_client(deal(kinds, counts, rng), num_clients)

    def drawn_counts(self, class_sizes: np.ndarray, num_clients: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the (C, N) numbers of samples that clients take from classes of ``class_sizes`` (C,) samples."""
        left, num_samples = class_sizes.copy(), class_sizes.sum()
        prior = np.ones(len(left)) if self.prior == "uniform" else left / num_samples
        mixes = rng.dirichlet(self.alpha * prior, size=num_clients) + SMALL_SHARE
        clients = rng.permutation(num_samples) % num_clients
        counts = np.zeros((len(left), num_clients), dtype=np.int64)
        cumulative = mixes.cumsum(axis=1).tolist()
        for client, draw in zip(clients.tolist(), rng.random(num_samples).tolist(), strict=True):
            kind = bisect_right(cumulative[client], draw * cumulative[client][-1])
            counts[kind, client] += 1
            left[kind] -= 1
            if left[kind] == 0:
                mixes[:, kind] = 0
                cumulative = mixes.cumsum(axis=1).tolist()
        return counts


@PARTITIONS.register("dirichlet_flgo")
class DirichletFlgo(Partition):
    """Each client draws a class mix from Dir(alpha p), p the class frequencies (FLGo, FedADT).

    This follows FLGo's DirichletPartitioner with equal sizes. One client's mix after the other is replaced
    by the best of N new draws (here of at most ``MAX_CANDIDATES``) if that brings the mean mix closer to p,
    until its squared distance is at most 1e-6 (ten times more after every 500 tries). Then each class is
    divided among the clients in proportion to their mixes, so sizes are only about equal. We assume that
    FedADT, which builds on FLGo, uses this partition.

    >>> import numpy as np
    >>> from asyncfl_lite.tasks.partitions import PARTITIONS
    >>> labels = np.arange(60) % 3
    >>> parts = PARTITIONS.get("dirichlet_flgo")(alpha=0.3).split(labels, 3, np.random.default_rng(0))
    >>> [np.bincount(labels[part], minlength=3).tolist() for part in parts]  # one row per client, one number per class
    [[17, 0, 2], [2, 0, 17], [1, 20, 1]]
    """

    alpha: Alpha = 0.1
    """Concentration; with a smaller one, a client's samples are of fewer classes."""

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the indices of each client's samples."""
        class_sizes = np.bincount(kinds)
        shares = self.matched_mixes(class_sizes / len(kinds), num_clients, rng).T + SMALL_SHARE
        counts = counts_by_share(class_sizes, shares / shares.sum(axis=1, keepdims=True))
        return by_client(deal(kinds, counts, rng), num_clients)

    def matched_mixes(self, prior: np.ndarray, num_clients: int, rng: np.random.Generator) -> np.ndarray:
        """Draw (N, C) class mixes from Dir(alpha prior) whose mean is close to ``prior`` (C,)."""
        num_candidates = min(num_clients, MAX_CANDIDATES)
        mixes = rng.dirichlet(self.alpha * prior, size=num_clients)
        error, step = ((mixes.mean(axis=0) - prior) ** 2).sum(), 0
        while error > 1e-6 * 10.0 ** (step // 500):
            client = step % num_clients
            others = mixes.sum(axis=0) - mixes[client]
            candidates = rng.dirichlet(self.alpha * prior, size=num_candidates)
            errors = (((others + candidates) / num_clients - prior) ** 2).sum(axis=1)
            if errors.min() < error:
                mixes[client], error = candidates[errors.argmin()], errors.min()
            step += 1
        return mixes


@PARTITIONS.register("dirichlet_wrap")
class DirichletWrap(Partition):
    """Each client draws a class mix from Dir(alpha); samples are shared (FedRevive code).

    Each class is a shuffled list from which clients take their counts; a list with too little left for the
    next client is shuffled and begun again. Counts are rounded as in the authors' code: missing samples are
    added to a random class, and surplus samples are taken from the largest class. A class with fewer samples
    than a client's count gives all that it has, so no client holds a sample twice.

    >>> import numpy as np
    >>> from asyncfl_lite.tasks.partitions import PARTITIONS
    >>> labels = np.arange(60) % 3
    >>> parts = PARTITIONS.get("dirichlet_wrap")(alpha=0.3).split(labels, 3, np.random.default_rng(0))
    >>> [np.bincount(labels[part], minlength=3).tolist() for part in parts]  # one row per client, one number per class
    [[20, 0, 20], [20, 20, 20], [20, 20, 5]]
    """

    shares_samples = True

    alpha: Alpha = 0.5
    """Concentration; with a smaller one, a client's samples are of fewer classes. FedRevive uses 0.5 (§3)."""
    samples_per_client: int = Field(350, ge=1)
    """Number of samples that a client holds, if its classes have that many; FedRevive uses 350 (§3)."""

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return each client's indices, ``samples_per_client`` unless its classes have fewer."""
        num_classes = kinds.max() + 1
        mixes = rng.dirichlet(np.full(num_classes, self.alpha), size=num_clients)
        counts = self.rounded_counts(mixes, rng)
        held = np.minimum(counts, np.bincount(kinds))
        ends = held.cumsum().reshape(held.shape)  # end of a client's samples of a class, in one array of all samples
        whole = np.empty(ends[-1, -1], dtype=np.int64)
        for kind in range(num_classes):
            clients = np.flatnonzero(counts[:, kind])
            sizes, firsts = held[clients, kind], (ends - held)[clients, kind]
            for some, dealt in wrapped(np.flatnonzero(kinds == kind), counts[clients, kind], rng):
                steps = np.ones(len(dealt), dtype=np.int64)
                steps[sizes[some].cumsum()[:-1]] += np.diff(firsts[some]) - sizes[some][:-1]
                steps[0] = firsts[some][0]
                whole[steps.cumsum()] = dealt
        return Parts(whole, held.sum(axis=1))

    def rounded_counts(self, mixes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Round ``samples_per_client`` times ``mixes`` (N, C) to counts whose rows sum to ``samples_per_client``."""
        counts = np.rint(mixes * self.samples_per_client).astype(np.int64)
        missing = self.samples_per_client - counts.sum(axis=1)
        short = np.flatnonzero(missing > 0)
        counts[short, rng.integers(counts.shape[1], size=len(short))] += missing[short]
        while len(over := np.flatnonzero(missing < 0)):
            counts[over, counts[over].argmax(axis=1)] -= 1
            missing[over] += 1
        return counts


def wrapped(samples: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield chunks of clients, each as a slice, with the samples that these clients take from a class.

    Args:
        samples: ``(n,)`` samples, dealt out in random order. When too few are left for the next client, all are
            shuffled and dealt out again.
        counts: number of samples that each client wants, at least 1; a client that wants more than n takes all n.
        rng: generator of the shuffles.
    """
    everything = rng.permutation(samples)
    size, starts, client = len(everything), [], 0
    wanted = np.append(0, counts.cumsum())  # by all clients before each one
    following = np.searchsorted(wanted[1:], wanted[:-1] + size, side="right")
    following = np.maximum(following, np.arange(len(counts)) + 1).tolist()
    while client < len(counts):
        starts.append(client)
        client = following[client]
    starts.append(len(counts))
    rows = max(1, AT_ONCE // size)
    for block in range(0, len(starts) - 1, rows):
        bounds = np.array(starts[block : block + rows + 1])
        shuffled = np.tile(everything, (len(bounds) - 1, 1))
        new = shuffled[1:] if block == 0 and counts[0] <= size else shuffled
        rng.permuted(new, axis=1, out=new)
        taken = np.diff(wanted[bounds])
        yield slice(bounds[0], bounds[-1]), shuffled[np.arange(size) < taken[:, None]]
