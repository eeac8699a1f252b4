"""FedAvg and FedProx: synchronous rounds, each of which averages the updates of its clients.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017, Algorithm 1,
with a server learning rate, as in FedRevive Table 4 (η = 1.4, so the new model is not simply the mean of the clients'
models). FedProx: Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, Algorithm 2 and Eq. 2.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from asyncfl_lite.algorithms.base import ALGORITHMS, About
from asyncfl_lite.algorithms.fedbuff import FedBuff


@ALGORITHMS.register("fedavg")
class FedAvg(FedBuff):
    """Synchronous rounds; updates are averaged, weighted by sample count (McMahan et al. 2017).

    ``x ← x + η Σ n_i Δ_i / Σ n_j``. It is FedBuff with a buffer of a whole round, in which every update is
    fresh.
    """

    about = About(
        title="FedAvg",
        paper="McMahan et al. 2017, Alg. 1",
        family="synchronous",
        models_stored="2",
        colour="#949494",
    )
    scheduling = "rounds"

    class Settings(FedBuff.Settings):
        """Options of FedAvg."""

        buffer_weight: Literal["samples", "uniform"] = "samples"
        """Weights of clients: by sample count (``samples``), or all equal (``uniform``)."""

    settings: Settings


@ALGORITHMS.register("fedprox")
class FedProx(FedAvg):
    """FedAvg whose clients add μ/2 ‖w - x_t‖² to their loss (Li et al. 2020, Alg. 2)."""

    about = About(
        title="FedProx",
        paper="Li et al. 2020, Alg. 2, Eq. 2",
        family="synchronous",
        models_stored="2",
        client_work="a proximal term in the loss",
        colour="#7a7a7a",
    )

    class Settings(FedAvg.Settings):
        """Options of FedProx."""

        mu: float = Field(0.1, ge=0)
        """Weight μ of the proximal term; 0 gives FedAvg. The paper tries 0.001, 0.01, 0.1 and 1; FLGo's default is 0.1.
        """

    settings: Settings

    @property
    def proximal(self) -> float:
        """Weight μ of the proximal term in the clients' loss."""
        return self.settings.mu
