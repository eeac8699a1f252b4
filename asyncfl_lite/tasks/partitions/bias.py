"""Partitions with KUIPER's non-IID bias, in two readings."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from pydantic import Field

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.tasks.partitions.base import PARTITIONS, Partition, by_client


class BiasPartition(Partition):
    """Base class of partitions in which ``bias`` decides how many samples of a label go to its group of clients.

    Labels are dealt to the groups at random, as evenly as possible. Clients are dealt to the groups in the
    order of their indices, also as evenly as possible. There are as many groups as clients, unless ``groups``
    is smaller, but never more groups than labels. If a group has several clients, they share its labels.
    """

    bias: float = Field(0.5, ge=0, le=1)
    """Non-IID bias, from 0 (IID) to 1 (each group has only its own labels); KUIPER's figures vary it."""
    groups: int | None = Field(None, ge=1)
    """Number of groups of clients and labels, at most the number of clients; None for one group per client."""

    @abstractmethod
    def group_probabilities(self, group_sizes: np.ndarray) -> np.ndarray:
        """Return the (G, G) probabilities that samples with labels of the row's group go to the column's group.

        Args:
            group_sizes: (G,) number of clients in each group.
        """

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

    If G groups are equal, a label's own group gets ``bias + (1 - bias) / G`` of its samples: a bias of 0 is
    IID, and with a bias of 1 the groups have disjoint labels. KUIPER (Section 5) varies such a bias and prints
    no formula; this reading is ours.

    >>> import numpy as np
    >>> from asyncfl_lite.tasks.partitions import PARTITIONS
    >>> labels = np.arange(60) % 3
    >>> parts = PARTITIONS.get("noniid_bias")(bias=0.8).split(labels, 3, np.random.default_rng(0))
    >>> [np.bincount(labels[part], minlength=3).tolist() for part in parts]  # one row per client, one number per class
    [[2, 18, 0], [1, 1, 17], [17, 1, 3]]
    """

    def group_probabilities(self, group_sizes: np.ndarray) -> np.ndarray:
        """Return (G, G) probabilities: ``bias`` for the label's own group, and the rest spread over all clients."""
        anywhere = group_sizes / group_sizes.sum()
        return self.bias * np.eye(len(group_sizes)) + (1 - self.bias) * anywhere


@PARTITIONS.register("noniid_bias_fang")
class NoniidBiasFang(BiasPartition):
    """A sample goes to its label's group with probability bias, else to others (FLTrust style).

    Each of the other G - 1 groups gets ``(1 - bias) / (G - 1)``, so that a bias of 1 / G is IID. A bias of 0
    is IID too, as in published code of this family.

    >>> import numpy as np
    >>> from asyncfl_lite.tasks.partitions import PARTITIONS
    >>> labels = np.arange(60) % 3
    >>> parts = PARTITIONS.get("noniid_bias_fang")(bias=0.8).split(labels, 3, np.random.default_rng(0))
    >>> [np.bincount(labels[part], minlength=3).tolist() for part in parts]  # one row per client, one number per class
    [[3, 14, 0], [2, 4, 17], [15, 2, 3]]
    """

    def group_probabilities(self, group_sizes: np.ndarray) -> np.ndarray:
        """Return (G, G) probabilities, with ``bias`` on the diagonal and the rest spread evenly; a bias of 0 is IID."""
        num_groups = len(group_sizes)
        if self.bias == 0 or num_groups == 1:
            return np.tile(group_sizes / group_sizes.sum(), (num_groups, 1))
        other = (1 - self.bias) / (num_groups - 1)
        return np.full((num_groups, num_groups), other) + (self.bias - other) * np.eye(num_groups)
