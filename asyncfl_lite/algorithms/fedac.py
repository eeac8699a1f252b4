"""FedAC: updates weighted by how well they agree with the global model's recent movement.

Zang et al., "Efficient Asynchronous Federated Learning with Prospective Momentum Aggregation and Fine-Grained
Correction", AAAI 2024. Neither the paper nor the official code was available. This is a re-implementation from
third-party code and the abstract, and its numbers are those of a re-implementation.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, About, ServerContext
from asyncfl_lite.algorithms.fedopt import AdaptiveStep
from asyncfl_lite.simulator.jobs import Update

FLOOR = 0.1
"""Smallest weight r of an update (third-party code)."""


@ALGORITHMS.register("fedac")
class FedAC(AdaptiveStep):
    """Cosine weights, prospective momentum, control variates (Zang et al. 2024; reimplemented).

    ``r_i = max(cos(x_t - x_{t_i}, Δ_i), 0.1)``, ``Δ = Σ r_i Δ_i / Σ r_j``, ``m̂ = β₁ m + (1 - β₁) Δ``,
    ``x ← x + η m̂ / (√v + ε)``. Clients add ``C - C_i`` to their gradients, as in SCAFFOLD (option II); their new
    ``C_i`` is the mean of the gradients that their optimiser was given, minus ``C - C_i``. With plain SGD, this mean is
    ``(x_{t_i} - x) / (E η_l)``; the steps of Adam and AdamW are normalised and do not reveal a gradient's length, so
    clients then report the mean.

    Attributes:
        control: ``(d,)`` C, the server's control variate.
        controls: client -> ``(d,)`` C_i, the clients' own; absent while zero.
    """

    about = About(
        title="FedAC",
        paper="Zang et al. 2024 (re-implemented from third-party code)",
        secondary=True,
        models_stored="6",
        keeps_versions=True,
        on_clients=("controls",),
        client_work="a control variate: one more vector kept, sent and added",
        colour="#56b4e9",
    )
    state_names = (*AdaptiveStep.state_names, "control", "controls", "_control_sum")
    beta2 = 0.9

    class Settings(AdaptiveStep.Settings):
        """Options of FedAC."""

        beta1: float = Field(0.6, ge=0, lt=1)
        """β₁, the fraction of m that an aggregation keeps; it also weighs m against the newest mean in m̂."""
        correction: Literal["per_step", "once", "off"] = "per_step"
        """Clients apply C - C_i at every step, once after training, or never. With AdamW on digits, corrections at
        every step end 9 points above no corrections at a client learning rate of 0.01, and 6 points below at 0.002
        (cells methods/adamw of tier compare, ten seeds). At 0.1, far too large for AdamW, they end 48 points below."""

    settings: Settings

    @property
    def client_reports(self) -> frozenset[str]:
        """Extra report that clients must send: their mean gradient, or none if corrections are off."""
        return frozenset() if self.settings.correction == "off" else frozenset({"mean_gradient"})

    @property
    def correction_once(self) -> bool:
        """Whether clients apply their correction once, after training."""
        return self.settings.correction == "once"

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Begin at version 0 with all control variates at zero."""
        super().start(x0, context, **options)
        self.control = torch.zeros_like(self.x)
        self.controls: dict[int, Tensor] = {}
        self._control_sum = torch.zeros_like(self.x)

    def control_sent(self) -> Tensor | None:
        """Return the server's ``(d,)`` control variate C; None if corrections are off."""
        return None if self.settings.correction == "off" else self.control

    def correction_for(self, client: int, control: Tensor) -> Tensor:
        """Return the client's ``(d,)`` correction C - C_i."""
        return control - self.controls[client] if client in self.controls else control

    def agreement(self, update: Update) -> float:
        """Return r_i: the cosine between the update and the model's movement during the job, at least ``FLOOR``.

        It is 1 for a fresh update, since the model has not moved.
        """
        movement = self.x - self.start_of(update)
        if not movement.any():
            return 1.0
        size = torch.linalg.vector_norm(movement) * torch.linalg.vector_norm(update.delta)
        cosine = float(movement @ update.delta / size) if size > 0 else FLOOR
        return min(max(cosine, FLOOR), 1.0)  # tiny vectors' lengths are rounded

    def weights(self, update: Update) -> tuple[float, float]:
        """Return r_i twice: as the entry's weight in the sum, and as the number that it adds to the divisor."""
        agreement = self.agreement(update)
        return agreement, agreement

    def entry(self, update: Update) -> Tensor:
        """Return the delta, and update the client's control variate."""
        if self.settings.correction != "off":
            self._renew_control(update)
        return super().entry(update)

    def _renew_control(self, update: Update) -> None:
        mean_gradient = update.mean_gradient
        if mean_gradient is None:  # clients train by plain SGD
            lr = self.context.client_lr(update.start_version)
            if lr == 0:
                return
            mean_gradient = update.delta / (-update.num_steps * lr)
        renewed = mean_gradient if update.correction is None else mean_gradient - update.correction
        old = self.controls.get(update.client)
        change = renewed if old is None else renewed - old
        self._control_sum = self._control_sum + self.agreement(update) * change
        self.controls = {**self.controls, update.client: renewed}

    def step(self, mean: Tensor) -> Tensor:
        """Update the control variate C, and return the model after a step along the prospective momentum.

        In this momentum the newest mean counts twice.
        """
        chosen = self.settings
        self.average(mean)
        self.control = self.control + self._control_sum / self._divisor
        self._control_sum = torch.zeros_like(self.x)
        ahead = chosen.beta1 * self.mean + (1 - chosen.beta1) * mean
        return self.x + self.step_size() * ahead / (self.square.sqrt() + chosen.eps)
