"""Simple partitions: IID samples, samples by owner, and samples that came with their clients."""

from __future__ import annotations

import numpy as np

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.tasks.partitions.base import PARTITIONS, Partition, by_client, checked_owners


@PARTITIONS.register("iid")
class Iid(Partition):
    """Random samples for each client; client sizes differ by at most one.

    >>> import numpy as np
    >>> from asyncfl_lite.tasks.partitions import PARTITIONS
    >>> labels = np.arange(60) % 3
    >>> parts = PARTITIONS.get("iid")().split(labels, 3, np.random.default_rng(0))
    >>> [np.bincount(labels[part], minlength=3).tolist() for part in parts]  # one row per client, one number per class
    [[7, 9, 4], [5, 6, 9], [8, 5, 7]]
    """

    def assign(self, kinds: np.ndarray, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the indices of each client's samples."""
        return by_client(rng.permutation(len(kinds)) % num_clients, num_clients)


@PARTITIONS.register("natural")
class Natural(Partition):
    """All samples of one random owner (such as a FEMNIST writer) for each client (FedRevive).

    >>> import numpy as np
    >>> from asyncfl_lite.tasks.partitions import PARTITIONS
    >>> labels = np.arange(60) % 3
    >>> parts = PARTITIONS.get("natural")().split(labels, 3, np.random.default_rng(0), np.arange(60) // 20)
    >>> [np.bincount(labels[part], minlength=3).tolist() for part in parts]  # one row per client, one number per class
    [[6, 7, 7], [7, 7, 6], [7, 6, 7]]
    """

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
    """Each client's own samples, as given to Task.from_clients.

    >>> import numpy as np
    >>> from asyncfl_lite.tasks.partitions import PARTITIONS
    >>> labels = np.arange(60) % 3
    >>> parts = PARTITIONS.get("given")().split(labels, 3, np.random.default_rng(0), np.arange(60) // 20)
    >>> [np.bincount(labels[part], minlength=3).tolist() for part in parts]  # one row per client, one number per class
    [[7, 7, 6], [7, 6, 7], [6, 7, 7]]
    """

    needs_owners = True

    def split(
        self, labels: np.ndarray, num_clients: int, rng: np.random.Generator, owners: np.ndarray | None = None
    ) -> list[np.ndarray]:
        """Return each client's sorted indices; ``owners`` holds the number of each sample's client."""
        owners = checked_owners(owners, np.asarray(labels))
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
