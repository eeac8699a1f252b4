"""FedADT: stale client models learn from the global model by distillation before they are mixed in.

"FedADT", Section IV, Eqs. 7 and 8, and its algorithm. The paper leaves the distillation's optimiser and learning
rate open: it is SGD at the clients' rate, our reading, or at another one (``kd_lr``).
"""

from __future__ import annotations

from functools import partial

from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, About
from asyncfl_lite.algorithms.losses import labelled_distillation_loss
from asyncfl_lite.algorithms.mixing import MixingMethod, poly
from asyncfl_lite.models.compute import Optimiser
from asyncfl_lite.simulator.jobs import Update

TEMPERATURE = 3.0
"""Temperature T of both softmax functions in the KL term (Eq. 7, §V-A)."""
PASSES = 1
"""Passes of a distillation over the labelled set (§IV)."""


@ALGORITHMS.register("fedadt")
class FedADT(MixingMethod):
    """FedAsync whose stale client models first learn from the global model (FedADT, Eqs. 7-8).

    They learn by distillation on labelled data.

    A client model of staleness above 1 takes a pass over the server's labelled set with the loss
    ``α̃ KL(σ(z_S/T) ‖ σ(z_C/T)) + (1 - α̃) CE(z_C, y)``, where z_S are the server's logits (the teacher's), z_C the
    client model's (the student's), and α̃ grows with the version. Then
    ``x ← (1 - β) x + β x_i`` with ``β = (1 + τ)^-1/2``: a fresh model replaces the global one.
    """

    about = About(
        title="FedADT",
        paper="FedADT, §IV, Eqs. 7-8",
        family="distilling",
        also_stored="the labelled set",
        colour="#5b3fa0",
    )
    moves_by_itself = True

    class Settings(MixingMethod.Settings):
        """Options of FedADT."""

        kd_fraction: float = Field(0.005, gt=0, lt=1)
        """Share of the training samples that the server keeps as its labelled set; no client has them."""
        alpha_min: float = Field(0.2, ge=0, le=1)
        """α̃_min, the weight α̃ of the KL term at version 0 (Eq. 8, §V-A)."""
        alpha_max: float = Field(0.6, ge=0, le=1)
        """α̃_max, the weight α̃ of the KL term from version ``alpha_versions`` on (Eq. 8, §V-A)."""
        alpha_versions: int = Field(1000, ge=1)
        """T_g, the version at which α̃ reaches ``alpha_max``."""
        kd_batch_size: int = Field(32, ge=1)
        """Number of labelled samples in a minibatch of distillation; the only batch size that the paper prints is 32
        (§V-A)."""
        kd_lr: float | None = Field(None, ge=0)
        """Learning rate of distillation by SGD; none means the clients' rate at the current version. 0 gives FedAsync
        with mixing 1."""
        tau_kd: int = Field(1, ge=0)
        """Staleness up to which models are mixed in without distillation."""

    settings: Settings

    @property
    def held_out(self) -> float:
        """Share of the training samples that the server keeps as its labelled set."""
        return self.settings.kd_fraction

    def weight_of(self, update: Update) -> float:
        """Return the mixing weight β for an update, from its staleness."""
        return poly(update.staleness)

    def kl_weight(self, version: int) -> float:
        """Return α̃, the weight of the KL term at a version (Eq. 8)."""
        chosen = self.settings
        return chosen.alpha_min + (chosen.alpha_max - chosen.alpha_min) * min(1.0, version / chosen.alpha_versions)

    def client_model(self, update: Update) -> Tensor:
        """Return the client's model; if its staleness exceeds ``tau_kd``, it first learns from the global model."""
        model = super().client_model(update)
        if update.staleness <= self.settings.tau_kd or self.distill_lr == 0:
            return model
        return self.distilled(model, update.buffers)

    @property
    def distill_lr(self) -> float:
        """Learning rate of distillation at the current version."""
        return self.context.client_lr(self.version) if self.settings.kd_lr is None else self.settings.kd_lr

    def distilled(self, student: Tensor, buffers: Tensor | None) -> Tensor:
        """Return the ``(d,)`` client model after distillation on the labelled set, with the global model as teacher."""
        chosen, context = self.settings, self.context
        inputs, labels = self.labelled
        (outputs,) = context.outputs([(self.x, self.buffers)], inputs)
        batches = context.samples(inputs).minibatches(context.rng, size=chosen.kd_batch_size, passes=PASSES)
        return context.distil(
            student,
            batches,
            loss=partial(labelled_distillation_loss, temperature=TEMPERATURE),  # Eq. 7
            against=[context.predictions(outputs, inputs), context.answers(labels)],
            weight=self.kl_weight(self.version),
            optimiser=Optimiser("sgd", self.distill_lr),
            buffers=buffers,
        )
