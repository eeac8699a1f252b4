"""Independent and identical samples, and samples by owner."""

from __future__ import annotations

import numpy as np

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.tasks.partitions.base import PARTITIONS, Partition, by_client


@PARTITIONS.register("iid")
class Iid(Partition):
    """Samples at random, in equal numbers (give or take one)."""

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return each client's indices."""
        return by_client(rng.permutation(len(kinds)) % num_clients, num_clients)


@PARTITIONS.register("natural")
class Natural(Partition):
    """All samples of one random owner (such as a FEMNIST writer) for each client (FedRevive)."""

    needs_owners = True

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the indices of each chosen owner; samples of other owners are left out."""
        num_owners = kinds.max() + 1
        if num_clients > num_owners:
            raise ConfigError(f"num_clients: must be at most the {num_owners} owners, got {num_clients}")
        client_of_owner = np.full(num_owners, -1)
        client_of_owner[rng.choice(num_owners, num_clients, replace=False)] = np.arange(num_clients)
        return by_client(client_of_owner[kinds], num_clients)
