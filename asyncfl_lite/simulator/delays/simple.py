"""FedADT's delay law, and simple laws for teaching and tests."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from asyncfl_lite.simulator.delays.base import DELAYS, DelayLaw, ExponentialDelays, UniformDelays, same_for_all

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@DELAYS.register("fedadt")
class FedAdtLaw(DelayLaw):
    """Uniform between 0 and 5000 s for every job of every client (FedADT Section V-A).

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("fedadt")().prepare(np.arange(1, 4), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(3)]
    [3184.8, 1348.9, 204.9]
    """

    unit = "s"

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign every client the same bounds, without random numbers."""
        return same_for_all(0.0, 5000.0, len(num_samples))


@DELAYS.register("constant")
class ConstantLaw(DelayLaw):
    """The same duration for every job of every client: no spread, hence no stragglers.

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("constant")().prepare(np.arange(1, 4), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(3)]
    [1.0, 1.0, 1.0]
    """

    unit = "time units"

    duration: Positive = 1.0
    """Duration of a job, in time units."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign every client the same duration, without random numbers."""
        return same_for_all(self.duration, self.duration, len(num_samples))


@DELAYS.register("uniform")
class UniformLaw(DelayLaw):
    """Uniform between low and high for every job of every client.

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("uniform")(low=1.0, high=3.0).prepare(np.arange(1, 4), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(3)]
    [2.3, 1.5, 1.1]
    """

    unit = "time units"

    low: NotNegative
    """Shortest duration of a job, in time units."""
    high: Positive
    """Longest duration of a job, in time units; at least ``low``."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low: must be at most high ({self.high}), got {self.low}")
        return self

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign every client the same bounds, without random numbers."""
        return same_for_all(self.low, self.high, len(num_samples))


@DELAYS.register("exponential")
class ExponentialLaw(DelayLaw):
    """Exponential with the same mean for every job of every client: a memoryless long tail.

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("exponential")().prepare(np.arange(1, 4), rng)  # clients with 1, 2, … samples
    >>> [round(delays.draw(client, rng), 1) for client in range(3)]
    [1.0, 0.0, 1.6]
    """

    unit = "time units"

    mean: Positive = 1.0
    """Mean duration of a job, in time units."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> ExponentialDelays:
        """Assign every client the same mean, without random numbers."""
        nothing = np.zeros(len(num_samples))
        return ExponentialDelays(np.full(len(num_samples), self.mean), nothing, nothing)


@DELAYS.register("per_client")
class PerClientLaw(DelayLaw):
    """A fixed duration for each client, from a list that repeats if there are more clients.

    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> rng = np.random.default_rng(0)
    >>> delays = DELAYS.get("per_client")(durations=(1.0, 5.0)).prepare(np.arange(1, 5), rng)  # 4 clients
    >>> [round(delays.draw(client, rng), 1) for client in range(4)]
    [1.0, 5.0, 1.0, 5.0]
    """

    unit = "time units"

    durations: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Duration of each client's jobs, in time units; client i has ``durations[i % len(durations)]``."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> UniformDelays:
        """Assign client i ``durations[i % len(durations)]``, without random numbers."""
        return UniformDelays(np.resize(self.durations, len(num_samples)), np.zeros(len(num_samples)))
