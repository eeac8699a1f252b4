"""The base class of partitions, which decide the training samples of each client.

A partition splits sample indices by label (or, for ``natural`` and ``given``, by owner). Every partition except
``dirichlet_wrap`` gives an index to at most one client. ``dirichlet_wrap``, ``natural`` and
``noniid_bias_part`` may leave indices out. Clients may end up without samples unless a partition says otherwise.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from asyncfl_lite.base.errors import ConfigError, DataError
from asyncfl_lite.base.registry import Registry, Settings
from asyncfl_lite.base.streams import no_global_draws


class Partition(Settings):
    """Abstract base of partitions; a new one defines ``assign`` and is registered."""

    revision: ClassVar[int] = 1
    """Revision of the partition's numbers; increase it when they change meaning, to mark older results as outdated."""

    needs_owners: ClassVar[bool] = False
    """Whether samples are split by their owners, not by label."""

    shares_samples: ClassVar[bool] = False
    """Whether several clients may get the same sample."""

    def split(
        self,
        labels: np.ndarray,
        num_clients: int,
        rng: np.random.Generator,
        owners: np.ndarray | None = None,
    ) -> list[np.ndarray]:
        """Return each client's sorted (n_i,) int64 indices into ``labels``, for ``num_clients`` clients.

        Args:
            labels: (n,) class of each sample.
            num_clients: how many parts to make, at least 1.
            rng: the run's stream ``partition``.
            owners: (n,) owner of each sample, such as a writer; used only where ``needs_owners``.

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
        values = checked_owners(owners, labels) if self.needs_owners else labels
        _, kinds = np.unique(values, return_inverse=True)
        with no_global_draws(self, f"partition: {type(self).__name__}.assign", "the generator that it is given"):
            parts = self.assign(kinds, num_clients, rng)
        return checked_parts(self, parts, num_clients, len(labels))

    @abstractmethod
    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Assign samples to clients, after ``split`` has checked the input.

        Args:
            kinds: (n,) labels (owners where ``needs_owners``), numbered 0 to C - 1 without gaps.
            num_clients: how many parts to make.
            rng: the run's stream ``partition``.
        """


PARTITIONS: Registry[Partition] = Registry("partition")


class Parts(list[np.ndarray]):
    """List of each client's indices, which are views of one array that holds them all.

    Args:
        whole: ``(n,)`` int64 indices of all clients, one client after the other.
        sizes: (N,) number of each client's indices; they sum to n.
    """

    def __init__(self, whole: np.ndarray, sizes: np.ndarray) -> None:
        super().__init__(whole[start:end] for start, end in pairwise([0, *sizes.cumsum().tolist()]))
        self.whole = whole


def checked_owners(owners: np.ndarray | None, labels: np.ndarray) -> np.ndarray:
    """Return ``owners`` as an (n,) array, or raise a one-line error that says what is wrong with them."""
    if owners is None:
        raise ConfigError("owners: this partition needs the owner of each sample, which these data do not have")
    owners = np.asarray(owners)
    if owners.shape != labels.shape:
        raise DataError(f"owners: must be one for each of {len(labels)} samples, got shape {owners.shape}")
    if owners.dtype.kind not in "iufbU" or (owners.dtype.kind == "f" and not np.isfinite(owners).all()):
        raise DataError(f"owners: must be finite numbers or words, one for each sample, got {owners.dtype}")
    return owners


def checked_parts(partition: Partition, parts: object, num_clients: int, num_samples: int) -> list[np.ndarray]:
    """Return the indices from a partition's ``assign`` as sorted int64 arrays, or raise a one-line error."""
    whose = f"partition: {type(partition).__name__}.assign"
    found = parts if isinstance(parts, Parts) else list(parts) if isinstance(parts, Iterable) else []
    if len(found) != num_clients:
        raise ConfigError(f"{whose} must give a part for each of {num_clients} clients, got {len(found)}")
    if not isinstance(found, Parts):
        found = [np.asarray(part) for part in found]
        for client, part in enumerate(found):
            if part.ndim != 1 or (part.size and part.dtype.kind not in "iu"):
                raise ConfigError(
                    f"{whose} must give each client (n_i,) indices of samples, got {part.dtype} of shape {part.shape} "
                    f"for {client}{'; write np.flatnonzero(...)' * (part.dtype.kind == 'b')}"
                )
        found = Parts(np.concatenate(found, dtype=np.int64, casting="unsafe"), sizes_of(found))
    whole = found.whole
    if whole.size and not 0 <= whole.min() <= whole.max() < num_samples:
        first = int(((whole < 0) | (whole >= num_samples)).argmax())
        client = int(np.searchsorted(sizes_of(found).cumsum(), first, side="right"))
        raise ConfigError(
            f"{whose} must give indices from 0 to {num_samples - 1}, got {whole[first]} for client {client}"
        )
    for part in found:
        part.sort()
    times = np.bincount(whole, minlength=num_samples)
    if times.max() > 1 and not partition.shares_samples:
        place = int(times.argmax())
        holders = [client for client, part in enumerate(found) if place in part]
        raise ConfigError(
            f"{whose} must give no sample twice, got sample {place} for clients {', '.join(map(str, holders))}; a "
            "partition whose clients share samples says shares_samples = True"
        )
    if not times.any():
        raise ConfigError(f"{whose} must give samples to some client, got none for any")
    return found


def sizes_of(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return each client's number of samples, (N,) int64."""
    return np.fromiter(map(len, parts), np.int64, len(parts))


def by_client(client_of: np.ndarray, num_clients: int) -> list[np.ndarray]:
    """Return each client's sorted int64 sample indices, given the ``(n,)`` client of each sample (-1 for none)."""
    order = np.argsort(client_of, kind="stable").astype(np.int64)
    sizes = np.bincount(client_of.astype(np.int64) + 1, minlength=num_clients + 1)
    return Parts(order[sizes[0] :], sizes[1:])


def label_counts(labels: np.ndarray, parts: list[np.ndarray], num_classes: int) -> np.ndarray:
    """Return the number of samples per client and class, (N, num_classes) int64.

    Args:
        labels: (n,) class of each sample, 0 to ``num_classes`` - 1.
        parts: each client's indices into ``labels``, as ``Partition.split`` returns them.
        num_classes: number of columns.

    Raises:
        DataError: if a label is outside 0 to ``num_classes`` - 1.
    """
    labels = np.asarray(labels)
    if len(labels) and not 0 <= labels.min() <= labels.max() < num_classes:
        raise DataError(f"labels: must be 0 to {num_classes - 1}, got {labels.min()} to {labels.max()}")
    return np.array([np.bincount(labels[part], minlength=num_classes) for part in parts])


def total_variation(counts: np.ndarray) -> float:
    """Return the mean total variation distance between clients' label shares and the overall ones.

    The distance is 0 if every client has the same label shares, and at most 1. Clients without samples are
    left out.

    Args:
        counts: (N, C) numbers of samples of each class that each client holds.

    Raises:
        DataError: if no client holds a sample.
    """
    counts = counts[counts.sum(axis=1) > 0]
    if not len(counts):
        raise DataError("counts: no client holds a sample")
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(np.abs(shares - counts.sum(axis=0) / counts.sum()).sum(axis=1).mean() / 2)
