"""A part of a larger federation, such as one client alone, all but the stragglers, or a growing number of clients."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.tasks.partitions.base import PARTITIONS
from asyncfl_lite.tasks.partitions.bias import NoniidBias


@PARTITIONS.register("noniid_bias_part")
class NoniidBiasPart(NoniidBias):
    """The data of some clients of a larger `noniid_bias` federation (KUIPER Figs. 2, 4, 7, 13).

    KUIPER trains single clients of a federation alone (Fig. 2), drops its slowest devices (Figs. 7 and 13), and lets
    the federation grow, with one of 50 slices of the data for each client (Fig. 4, setup 2). With the same seed, every
    client that is left has exactly the samples that ``noniid_bias`` gives it among ``of`` clients.

    >>> import numpy as np
    >>> from asyncfl_lite.tasks.partitions import PARTITIONS
    >>> labels = np.arange(60) % 3
    >>> parts = PARTITIONS.get("noniid_bias_part")(bias=0.8, of=6).split(labels, 3, np.random.default_rng(0))
    >>> [np.bincount(labels[part], minlength=3).tolist() for part in parts]  # one row per client, one number per class
    [[0, 7, 0], [2, 11, 0], [0, 0, 7]]
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
