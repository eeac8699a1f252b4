"""FedEcho: FedBuff plus distillation from all clients' latest predictions, weighted by their uncertainty.

"Stragglers Can Contribute More: Uncertainty-Aware Distillation for Asynchronous Federated Learning", Algorithm 1 and
Eqs. 2 to 4; line numbers are Algorithm 1's, as printed. The loop (2, 19) and sending work (1, 6, 7) are the
simulator's, the buffer (1, 4, 9 to 11, 17) is FedBuff's. Details that the paper leaves open (Q, the distillation batch,
logits or probabilities) are options, whose defaults are our reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, About, ServerContext
from asyncfl_lite.algorithms.fedbuff import FedBuff
from asyncfl_lite.algorithms.losses import between, uncertainty, uncertainty_aware_loss
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.compute import Optimiser
from asyncfl_lite.models.vectors import all_finite
from asyncfl_lite.simulator.jobs import Update


@ALGORITHMS.register("fedecho")
class FedEcho(FedBuff):
    """FedBuff, then distillation from every client's latest predictions (FedEcho Alg. 1).

    From each update, the server rebuilds the client's model; by the time that the buffer is full, this model's logits
    on a small unlabelled set have replaced those stored for the client. After each aggregation the global model takes a
    few steps towards the mean of all stored logits, so that a straggler's predictions still count long after its
    parameters are out of date.

    Attributes:
        logits: client -> its latest ``(m, C)`` logits, one row per prediction (per sample, or per token that counts);
            absent until its first report.
        last_weight: the mixing weight α of the latest distillation step.
    """

    about = About(
        title="FedEcho",
        paper="FedEcho, Alg. 1, Eqs. 2-4",
        family="distilling",
        models_stored="2",
        keeps_versions=True,
        logits_stored="N * U",  # times the tokens that count, where samples are sequences
        also_stored="the buffer's models until they predict",
        colour="#029e73",
    )
    state_names = (*FedBuff.state_names, "logits", "last_weight")

    class Settings(FedBuff.Settings):
        """Options of FedEcho."""

        distill_set: str = "cross"
        """Name of the task's unlabelled set on which the server distils, such as cross, natural or synthetic."""
        distill_samples: int = Field(2000, ge=1)
        """``|U|``, the number of unlabelled samples on the server."""
        distill_lr: float = Field(3e-6, ge=0)
        """η_d, the learning rate of distillation; 0 gives FedBuff."""
        distill_unit: Literal["epochs", "steps"] = "epochs"
        """Unit of ``distill_q``: passes over the unlabelled set, or minibatches, as in the loop of Alg. 1."""
        distill_q: int = Field(5, ge=0)
        """Q, the length of distillation after each aggregation: passes over the set (epochs) or minibatches (steps)."""
        distill_batch_size: int = Field(50, ge=1)
        """Number of unlabelled samples in a minibatch of distillation; the paper prints none."""
        distill_opt: Literal["adam", "sgd"] = "adam"
        """Optimiser: the experiments' Adam (0.9, 0.999, 1e-8) or Algorithm 1's plain step. The paper does not say
        whether Adam's averages persist; here they start anew at each aggregation."""
        teacher_avg: Literal["logits", "probs"] = "logits"
        """Outputs averaged over clients: logits (Alg. 1, line 14), or probabilities (the paper's Appendix B)."""
        alpha_min: float = Field(0.2, ge=0, le=1)
        """α_min, the weight of the KL term where the teacher is certain (Eqs. 3 and 4, §5.1)."""
        alpha_max: float = Field(0.8, ge=0, le=1)
        """α_max, the weight of the KL term where all classes are equally likely (Eqs. 3 and 4, §5.1)."""
        clip: float | None = Field(5.0, gt=0)
        """ν, the largest global L2 norm of a distillation gradient; none for no clipping."""

    settings: Settings

    @property
    def moves_by_itself(self) -> bool:
        """Whether distillation is on, which moves the model even if every update is zero."""
        return self.settings.distill_lr > 0 and self.settings.distill_q > 0

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Start at version 0 with no stored logits, and draw the unlabelled samples (line 1)."""
        super().start(x0, context, **options)
        self.logits: dict[int, Tensor] = {}
        self.last_weight = float("nan")
        self._reported: dict[int, tuple[Tensor, Tensor | None]] = {}
        inputs = self.context.unlabelled(self.settings.distill_set, self.settings.distill_samples)
        self.unlabelled = self.context.samples(inputs)

    def on_receive(self, update: Update) -> bool:
        """Keep the client's model, which predicts (line 5) when the buffer is full; then do as FedBuff does (4, 9)."""
        self._reported = {**self._reported, update.client: (self.start_of(update) + update.delta, update.buffers)}
        return super().on_receive(update)

    def flush(self) -> bool:
        """Store what the buffer's clients predict (line 5), aggregate (10, 11), distil (12 to 16), start anew (17)."""
        self.infer()
        return super().flush()  # FedBuff's, which calls after_step to distil

    def infer(self) -> None:
        """Store the logits y_i on U of every client that has reported (line 5), all together because this is faster.

        Predictions that are not finite, because the client's model overflows, are dropped; the client then has none
        until its next report.
        """
        if self._reported:
            found = dict(zip(self._reported, self._predictions(list(self._reported.values())), strict=True))
            kept = {client: rows for client, rows in self.logits.items() if client not in found}
            finite = {client: rows for client, rows in found.items() if all_finite(rows)}
            self.logits = {**kept, **finite}  # a new mapping, so that a saved state stays as it was
            self._reported = {}

    def _predictions(self, models: Sequence[tuple[Tensor, Tensor | None]]) -> list[Tensor]:
        """Return several models' ``(m, C)`` predictions on the unlabelled set, dropping all other outputs."""
        samples, predictions = self.unlabelled, self.context.predictions
        if samples.one_each:
            found = [predictions(own, samples.inputs) for own in self.context.outputs(models, samples.inputs)]
        else:  # one model and minibatch at a time, since far more of a sequence's outputs is dropped than kept
            found = [torch.cat(list(self._by_minibatch(model))) for model in models]
        if any(len(rows) != samples.num_rows for rows in found):
            raise ConfigError(
                f"prediction_counts: must count the rows of predictions, {len(found[0])}, got {samples.num_rows} in all"
            )
        return found

    def _by_minibatch(self, model: tuple[Tensor, Tensor | None]) -> Iterator[Tensor]:
        for inputs in self.unlabelled.inputs.split(self.settings.distill_batch_size):
            (outputs,) = self.context.outputs([model], inputs)
            yield self.context.predictions(outputs, inputs)

    def after_step(self, x: Tensor) -> Tensor:
        """Distil every client's latest logits into the ``(d,)`` aggregated model (lines 12 to 16)."""
        if not (self.logits and self.moves_by_itself):
            return x
        chosen = self.settings
        # 12, 13: minibatches of U, in Q passes, or Q of them with distill_unit=steps
        batches = self.unlabelled.minibatches(
            self.context.rng,
            size=chosen.distill_batch_size,
            passes=chosen.distill_q,
            steps=chosen.distill_q if chosen.distill_unit == "steps" else None,
        )
        # 14: the teacher's probabilities p, which no step changes, on all of U; α for each minibatch (Eq. 4)
        teacher = self._teacher()
        weight = between(chosen.alpha_min, chosen.alpha_max, batches.means(uncertainty(teacher)))
        # 14, 15: for B in batches: x ← x - η_d Clip(∇ f_d(p[B], Logits_x(B)), ν)
        student = self.context.distil(
            x,
            batches,
            loss=uncertainty_aware_loss,  # f_d (Eq. 3)
            against=[teacher],
            weight=weight,
            optimiser=Optimiser(chosen.distill_opt, chosen.distill_lr, clip=chosen.clip),
            buffers=self.buffers,  # BatchNorm keeps the aggregated statistics; the paper does not say
        )
        self.last_weight = float(weight[-batches.row_sizes[-1] :].mean())
        return student if all_finite(student) else x  # an overflow must not ruin the model for good

    def _teacher(self) -> Tensor:
        """Return the ``(m, C)`` class probabilities of all clients combined (line 14).

        The sum is computed anew each time, in double precision and in the order of clients: a running sum would never
        lose the effect of a single overflowing or huge prediction.
        """
        as_logits = self.settings.teacher_avg == "logits"
        stored = (self.logits[client].double() for client in sorted(self.logits))
        zero = torch.zeros((), dtype=torch.float64, device=self.x.device)
        mean = sum((logits if as_logits else logits.softmax(-1) for logits in stored), zero) / len(self.logits)
        return (mean.softmax(-1) if as_logits else mean).to(self.x)

    def state(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` loads; models that have not predicted yet do so first."""
        self.infer()
        return super().state()

    def restore(self, state: dict[str, Any]) -> None:
        """Load a saved state."""
        super().restore(state)
        self._reported = {}
