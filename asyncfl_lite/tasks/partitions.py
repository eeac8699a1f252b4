"""Partitions, which decide the training samples of each client.

A partition splits sample indices by label (or, for ``natural`` and ``given``, by owner). Every partition except
``dirichlet_wrap`` gives an index to at most one client. ``dirichlet_wrap``, ``natural``, ``pathological`` and
``noniid_bias_part`` may leave indices out. Clients may end up without samples unless a partition says otherwise.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from asyncfl_lite.base.errors import ConfigError, DataError
from asyncfl_lite.base.registry import Registry, Settings, is_ours
from asyncfl_lite.base.streams import no_global_draws

MAX_REDRAWS = 20
Alpha = Annotated[float, Field(gt=0, le=1e9, exclude=True)]
"""Concentration of a Dirichlet distribution. A configuration keeps it beside the partition's settings, as ``alpha``."""
MAX_CANDIDATES = 100
AT_ONCE = 2**20
"""Number of shuffled samples in memory at a time."""
SMALL_SHARE = 1e-12
"""Number added to drawn class shares, so that every class can always be assigned."""


class Partition(Settings):
    """Abstract base of partitions; a new one defines ``assign`` and is registered.

    Example: three partitions of 60 samples of three classes; one row per client, one number per class.

    >>> import numpy as np
    >>> from asyncfl_lite.tasks.partitions import PARTITIONS, label_counts
    >>> labels = np.arange(60) % 3
    >>> for name, settings in (("iid", {}), ("dirichlet_class", {"alpha": 0.3}), ("noniid_bias", {"bias": 0.8})):
    ...     parts = PARTITIONS.get(name)(**settings).split(labels, 3, np.random.default_rng(0))
    ...     print(name, label_counts(labels, parts, 3).tolist())
    iid [[7, 9, 4], [5, 6, 9], [8, 5, 7]]
    dirichlet_class [[5, 3, 6], [0, 2, 13], [15, 15, 1]]
    noniid_bias [[2, 18, 0], [1, 1, 17], [17, 1, 3]]
    """

    revision: ClassVar[int] = 1
    """Revision of the partition's numbers; increase it when they change meaning, to mark older results as outdated."""

    needs_owners: ClassVar[bool] = False
    """Whether samples are split by their owners, not by label."""

    shares_samples: ClassVar[bool] = False
    """Whether several clients may get the same sample."""

    def split(
        self, labels: np.ndarray, num_clients: int, rng: np.random.Generator, owners: np.ndarray | None = None
    ) -> list[np.ndarray]:
        """Return each client's sorted (n_i,) int64 indices into the (n,) ``labels``.

        ``rng`` is the run's stream ``partition``; ``owners`` (n,), such as writers, count only where ``needs_owners``.

        Raises:
            ConfigError: if the samples cannot be split so, or owners are needed and not given.
            DataError: if labels or owners have a wrong shape, or there are no labels.
        """
        labels = np.asarray(labels)
        if labels.ndim != 1 or len(labels) == 0:
            raise DataError(f"labels: must be one class for each of at least 1 sample, got shape {labels.shape}")
        if num_clients < 1:
            raise ConfigError(f"clients: must be at least 1, got {num_clients}")
        if num_clients > len(labels) and not self.shares_samples:
            raise ConfigError(f"clients: must be at most the {len(labels)} samples, got {num_clients}")
        if self.needs_owners and owners is None:
            raise ConfigError("owners: this partition needs the owner of each sample, which these data do not have")
        _, kinds = np.unique(_checked_owners(owners, len(labels)) if self.needs_owners else labels, return_inverse=True)
        with no_global_draws(self, f"partition: {type(self).__name__}.assign", "the generator that it is given"):
            parts = self.assign(kinds, num_clients, rng)
        if is_ours(self):
            for part in parts:
                part.sort()
            return parts
        return self._checked(parts, num_clients, len(labels))

    @abstractmethod
    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return each client's indices of (n,) labels, or owners if it ``needs_owners``, numbered without gaps."""

    def _checked(self, parts: object, num_clients: int, num_samples: int) -> list[np.ndarray]:
        whose = f"partition: {type(self).__name__}.assign"
        found = [np.asarray(part) for part in parts] if isinstance(parts, Iterable) else []
        if len(found) != num_clients:
            raise ConfigError(f"{whose} must give a part for each of {num_clients} clients, got {len(found)}")
        for client, part in enumerate(found):
            if part.ndim != 1 or (part.size and part.dtype.kind not in "iu"):
                raise ConfigError(
                    f"{whose} must give each client (n_i,) indices of samples, got {part.dtype} of shape "
                    f"{part.shape} for {client}{'; write np.flatnonzero(...)' * (part.dtype.kind == 'b')}"
                )
            if (odd := part[(part < 0) | (part >= num_samples)]).size:
                raise ConfigError(
                    f"{whose} must give indices from 0 to {num_samples - 1}, got {odd[0]} for client {client}"
                )
        found = [np.sort(part).astype(np.int64) for part in found]
        times = np.bincount(np.concatenate(found), minlength=num_samples)
        if times.max() > 1 and not self.shares_samples:
            index = int(times.argmax())
            holders = [client for client, part in enumerate(found) if index in part]
            raise ConfigError(
                f"{whose} must give no sample twice, got sample {index} for clients {', '.join(map(str, holders))}; a "
                "partition whose clients share samples says shares_samples = True"
            )
        if not times.any():
            raise ConfigError(f"{whose} must give samples to some client, got none for any")
        return found


PARTITIONS: Registry[Partition] = Registry("partition")


def cut(whole: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Return each client's indices, as views of the ``(n,)`` array that holds them all, client after client."""
    return [whole[start:end] for start, end in pairwise([0, *sizes.cumsum().tolist()])]


def sizes_of(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return each client's number of samples, (N,) int64."""
    return np.fromiter(map(len, parts), np.int64, len(parts))


def by_client(client_of: np.ndarray, num_clients: int) -> list[np.ndarray]:
    """Return each client's sorted int64 sample indices, given the ``(n,)`` client of each sample (-1 for none)."""
    order = np.argsort(client_of, kind="stable").astype(np.int64)
    sizes = np.bincount(client_of.astype(np.int64) + 1, minlength=num_clients + 1)
    return cut(order[sizes[0] :], sizes[1:])


def _checked_owners(owners: object, count: int) -> np.ndarray:
    from asyncfl_lite.tasks.arrays import owners_of  # which most runs do not need

    return owners_of(owners, count)


def label_counts(labels: np.ndarray, parts: Sequence[np.ndarray], num_classes: int) -> np.ndarray:
    """Return the number of samples per client and class, (N, num_classes) int64; ``parts`` index the (n,) labels."""
    labels = np.asarray(labels)
    if len(labels) and not 0 <= labels.min() <= labels.max() < num_classes:
        raise DataError(f"labels: must be 0 to {num_classes - 1}, got {labels.min()} to {labels.max()}")
    return np.array([np.bincount(labels[part], minlength=num_classes) for part in parts])


def total_variation(counts: np.ndarray) -> float:
    """Return the mean total variation distance, 0 to 1, between clients' label shares and the overall ones.

    ``counts`` (N, C) are the numbers of samples of each class that each client holds; clients without any are left out.
    """
    counts = counts[counts.sum(axis=1) > 0]
    if not len(counts):
        raise DataError("counts: no client holds a sample")
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(np.abs(shares - counts.sum(axis=0) / counts.sum()).sum(axis=1).mean() / 2)


@PARTITIONS.register("iid")
class Iid(Partition):
    """Random samples for each client; client sizes differ by at most one."""

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the indices of each client's samples."""
        return by_client(rng.permutation(len(kinds)) % num_clients, num_clients)


@PARTITIONS.register("shard")
class Shard(Partition):
    """Samples sorted by class and cut into equal shards, of which each client gets some at random (FedAvg's paper)."""

    shards: int = Field(2, ge=1)
    """Number of shards that each client gets."""

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the indices of each client's samples."""
        order = shuffled_within(kinds, rng)
        count, client_of = num_clients * self.shards, np.empty(len(kinds), dtype=np.int64)
        shard_of = np.arange(len(kinds)) * count // len(kinds)
        client_of[order] = rng.permutation(count)[shard_of] % num_clients
        return by_client(client_of, num_clients)


@PARTITIONS.register("pathological")
class Pathological(Partition):
    """A few classes for each client; the clients that have a class share its samples equally."""

    classes: int = Field(2, ge=1)
    """Number of classes of each client; all of them if the task has fewer."""

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the indices of each client's samples; a class that no client has is left out."""
        total = int(kinds.max()) + 1
        first = rng.permutation(np.arange(num_clients) % total)  # so that every class has a client, if there are enough
        has = np.zeros((total, num_clients), dtype=np.int64)
        for client, own in enumerate(first):
            others = rng.permutation(np.delete(np.arange(total), own))[: self.classes - 1]
            has[[own, *others], client] = 1
        sizes, holders = np.bincount(kinds, minlength=total)[:, None], has.sum(1, keepdims=True).clip(1)
        counts = has * (sizes // holders + (has.cumsum(1) <= sizes % holders))
        left_out = np.where(has.any(1, keepdims=True), 0, sizes)
        client_of = deal(kinds, np.hstack([counts, left_out]), rng)
        return by_client(np.where(client_of < num_clients, client_of, -1), num_clients)


@PARTITIONS.register("natural")
class Natural(Partition):
    """All samples of one random owner (such as a FEMNIST writer) for each client (FedRevive)."""

    needs_owners = True

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the indices of each chosen owner's samples; samples of other owners are left out."""
        num_owners = kinds.max() + 1
        if num_clients > num_owners:
            raise ConfigError(f"clients: must be at most the {num_owners} owners, got {num_clients}")
        client_of_owner = np.full(num_owners, -1)
        client_of_owner[rng.choice(num_owners, num_clients, replace=False)] = np.arange(num_clients)
        return by_client(client_of_owner[kinds], num_clients)


@PARTITIONS.register("given")
class Given(Partition):
    """Each client's own samples, as given to Task.from_clients."""

    needs_owners = True

    def split(
        self, labels: np.ndarray, num_clients: int, rng: np.random.Generator, owners: np.ndarray | None = None
    ) -> list[np.ndarray]:
        """Return each client's sorted indices; ``owners`` holds the number of each sample's client."""
        if owners is None:
            raise ConfigError("owners: this partition needs the client of each sample, which these data do not have")
        owners = _checked_owners(owners, len(labels))
        if owners.dtype.kind not in "iu" or owners.min() < 0 or owners.max() >= num_clients:
            found = "words" if owners.dtype.kind == "U" else f"{owners.min()} to {owners.max()}"
            raise ConfigError(
                f"clients: partition 'given' needs owners that are clients' numbers, 0 to {num_clients - 1}, got "
                f"{found}"
            )
        return self.assign(owners, num_clients, rng)

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the indices of each client's samples, without using random numbers."""
        return by_client(kinds, num_clients)


class DirichletPartition(Partition):
    """Abstract base of the partitions that draw from Dir(alpha)."""

    alpha: Alpha = 0.1
    """Concentration; with a smaller one, a client's samples are of fewer classes."""


@PARTITIONS.register("dirichlet_class")
class DirichletClass(DirichletPartition):
    """Each class is divided among clients by Dir(alpha); sizes differ (FADAS code; FedEcho; Hsu et al. 2019).

    Shares are drawn again until every client has ``min_size`` samples. After ``MAX_REDRAWS`` draws, random samples
    move from the largest clients to those with too few. With ``min_size`` 0, the first draw is taken, as in the FADAS
    authors' code; the bound for FedEcho is ours.
    """

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
class DirichletClient(DirichletPartition):
    """Each client draws a class mix from Dir(alpha); equal sizes (Acar et al., FedDyn code).

    One sample after the other, a client draws a class from its mix; clients take turns in random order,
    and a class without samples left is not drawn any more.
    """

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return each client's indices, with sizes that differ by at most one."""
        counts = self.drawn_counts(np.bincount(kinds), num_clients, rng)
        return by_client(deal(kinds, counts, rng), num_clients)

    def drawn_counts(self, class_sizes: np.ndarray, num_clients: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the (C, N) numbers of samples that clients take from classes of ``class_sizes`` (C,) samples."""
        left, num_samples = class_sizes.copy(), class_sizes.sum()
        mixes = rng.dirichlet(np.full(len(left), self.alpha), size=num_clients) + SMALL_SHARE
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
class DirichletFlgo(DirichletPartition):
    """Each client draws a class mix from Dir(alpha p), p the class frequencies (FLGo, FedADT).

    This follows FLGo's DirichletPartitioner with equal sizes. One client's mix after the other is replaced by the best
    of N new draws (here of at most ``MAX_CANDIDATES``) if that brings the mean mix closer to p, until its squared
    distance is at most 1e-6 (ten times more after every 500 tries). Then each class is divided in proportion to the
    mixes, so sizes are only about equal. We assume that FedADT, which builds on FLGo, uses this partition.
    """

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
class DirichletWrap(DirichletPartition):
    """Each client draws a class mix from Dir(alpha); samples are shared (FedRevive code).

    Each class is a shuffled list from which clients take their counts; a list with too little left for the next client
    is shuffled and begun again. Counts are rounded as in the authors' code: missing samples are added to a random
    class, and surplus samples are taken from the largest one. A client never holds a sample twice.
    """

    shares_samples = True

    alpha: Alpha = 0.5
    """Concentration, as in all partitions that draw from Dir(alpha); FedRevive uses 0.5 (§3)."""
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
        return cut(whole, held.sum(axis=1))

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


def counts_by_share(class_sizes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the (C, N) int sample counts, given the (C,) class sizes and the clients' (C, N) shares of them."""
    cuts = (np.cumsum(shares, axis=1)[:, :-1] * class_sizes[:, None]).astype(np.int64)
    return np.diff(cuts, axis=1, prepend=0, append=class_sizes[:, None])


def shuffled_within(kinds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the (n,) indices of samples, kind after kind, in random order within each kind."""
    shuffled = rng.permutation(len(kinds))
    return shuffled[np.argsort(kinds[shuffled], kind="stable")]


def deal(kinds: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Deal ``counts[class, client]`` random samples of each class to each client; return each sample's client (n,)."""
    client_of = np.empty(len(kinds), dtype=np.int64)
    num_classes, num_clients = counts.shape
    client_of[shuffled_within(kinds, rng)] = np.repeat(np.tile(np.arange(num_clients), num_classes), counts.ravel())
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
    grouped = shuffled_within(client_of, rng)
    rank = np.arange(len(client_of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    moved = grouped[rank < given[client_of[grouped]]]
    client_of = client_of.copy()
    client_of[rng.permutation(moved)] = np.repeat(np.arange(num_clients), wanted)
    return client_of


def wrapped(samples: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of clients, with the samples that they take from a class of ``(n,)`` samples in random order.

    When too few are left for the next client, all are shuffled and dealt out again; no client gets more than n.
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


class BiasPartition(Partition):
    """Base class of partitions in which ``bias`` decides how many samples of a label go to its group of clients.

    Labels are dealt to the groups at random, and clients in the order of their indices, both as evenly as possible.
    There are never more groups than labels. If a group has several clients, they share its labels.
    """

    bias: float = Field(0.5, ge=0, le=1)
    """Non-IID bias, from 0 (IID) to 1 (each group has only its own labels); KUIPER's figures vary it."""
    groups: int | None = Field(None, ge=1)
    """Number of groups of clients and labels, at most the number of clients; None for one group per client."""

    @abstractmethod
    def group_probabilities(self, group_sizes: np.ndarray) -> np.ndarray:
        """Return (G, G) probabilities that a row group's samples go to a column group, of (G,) numbers of clients."""

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the indices of each client's samples."""
        if self.groups is not None and self.groups > num_clients:
            raise ConfigError(f"groups: must be at most the {num_clients} clients, got {self.groups}")
        num_classes = kinds.max() + 1
        num_groups = min(self.groups or num_clients, num_classes)
        group_of_class = rng.permutation(np.arange(num_classes) * num_groups // num_classes)
        group_sizes = np.bincount(np.arange(num_clients) * num_groups // num_clients)
        receiver = np.empty(len(kinds), dtype=np.int64)
        for group, probabilities in enumerate(self.group_probabilities(group_sizes)):
            own = group_of_class[kinds] == group
            receiver[own] = rng.choice(num_groups, size=own.sum(), p=probabilities)
        first_client = np.cumsum(group_sizes) - group_sizes
        return by_client(first_client[receiver] + rng.integers(group_sizes[receiver]), num_clients)


@PARTITIONS.register("noniid_bias")
class NoniidBias(BiasPartition):
    """A sample goes to its label's group with probability bias, else to any (KUIPER, inferred).

    A bias of 0 is IID, and with a bias of 1 the groups have disjoint labels. KUIPER (Section 5) varies such a bias and
    prints no formula; this reading is ours.
    """

    def group_probabilities(self, group_sizes: np.ndarray) -> np.ndarray:
        """Return (G, G) probabilities: ``bias`` for the label's own group, and the rest spread over all clients."""
        anywhere = group_sizes / group_sizes.sum()
        return self.bias * np.eye(len(group_sizes)) + (1 - self.bias) * anywhere


@PARTITIONS.register("noniid_bias_fang")
class NoniidBiasFang(BiasPartition):
    """A sample goes to its label's group with probability bias, else to others (FLTrust style).

    A bias of 1 / G is IID. A bias of 0 is IID too, as in published code of this family.
    """

    def group_probabilities(self, group_sizes: np.ndarray) -> np.ndarray:
        """Return (G, G) probabilities, with ``bias`` on the diagonal and the rest spread evenly; a bias of 0 is IID."""
        num_groups = len(group_sizes)
        if self.bias == 0 or num_groups == 1:
            return np.tile(group_sizes / group_sizes.sum(), (num_groups, 1))
        other = (1 - self.bias) / (num_groups - 1)
        return np.full((num_groups, num_groups), other) + (self.bias - other) * np.eye(num_groups)


@PARTITIONS.register("noniid_bias_part")
class NoniidBiasPart(NoniidBias):
    """The data of some clients of a larger `noniid_bias` federation (KUIPER Figs. 2, 4, 7, 13).

    With the same seed, every client that is left has the samples that ``noniid_bias`` gives it among ``of`` clients.
    """

    of: int | None = Field(None, ge=1)
    """Number of clients in the whole federation; None for the run's own number, so that no client is left out."""
    chosen: Literal["first", "random"] = "first"
    """Choice of the run's clients: the first ones (0, 1, …), or random ones for each seed."""

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the indices of each client's samples."""
        everyone = num_clients if self.of is None else self.of
        if everyone < num_clients:
            raise ConfigError(f"of: must be at least the run's {num_clients} clients, got {everyone}")
        parts = super().assign(kinds, everyone, rng)
        if self.chosen == "first":
            return parts[:num_clients]
        return [parts[client] for client in np.sort(rng.choice(everyone, num_clients, replace=False))]
