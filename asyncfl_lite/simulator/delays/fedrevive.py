"""FedRevive's delay laws (App. D): exponential training, constant download, uniform upload."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from asyncfl_lite.simulator.delays.base import DELAYS, DelayLaw, ExponentialDelays


class FedReviveLaw(DelayLaw):
    """Exponential training times, constant download times and uniform upload times; each client keeps its means."""

    unit = "time units"
    train_means: ClassVar[tuple[float, ...]]
    train_shares: ClassVar[tuple[float, ...]]
    download: ClassVar[float]
    upload_means: ClassVar[tuple[float, ...]]
    upload_half_width: ClassVar[float]

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> ExponentialDelays:
        """Draw each client's mean training and upload times, independently."""
        train = rng.choice(self.train_means, len(num_samples), p=self.train_shares)
        upload = rng.choice(self.upload_means, len(num_samples))
        low = np.maximum(upload - self.upload_half_width, 0)
        return ExponentialDelays(train, self.download + low, upload + self.upload_half_width - low)


@DELAYS.register("fedrevive")
class FedReviveDefault(FedReviveLaw):
    """Train Exp(mean 1.0 to 1.6), download 0.1, upload 0.15 or 0.25 ± 0.02 (FedRevive App. D).

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("fedrevive")().prepare(np.arange(1, 6), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(5)]
    [8.2, 0.4, 0.4, 1.2, 0.9]
    """

    train_means = (1.0, 1.3, 1.6)
    train_shares = (0.25, 0.5, 0.25)
    download = 0.1
    upload_means = (0.15, 0.25)
    upload_half_width = 0.02


@DELAYS.register("fedrevive_shift")
class FedReviveShift(FedReviveLaw):
    """Train Exp(mean 0.1), download 0.02, upload 0.05 or 0.10 ± 0.01 (FedRevive App. D.1).

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("fedrevive_shift")().prepare(np.arange(1, 6), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(5)]
    [0.7, 0.1, 0.1, 0.2, 0.2]
    """

    train_means = (0.1,)
    train_shares = (1.0,)
    download = 0.02
    upload_means = (0.05, 0.10)
    upload_half_width = 0.01
