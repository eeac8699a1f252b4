"""FedEcho: uncertainty-aware distillation.

"Stragglers Can Contribute More: Uncertainty-Aware Distillation for Asynchronous Federated Learning",
Algorithm 1 and Eqs. 2 to 4. What the paper leaves open (Q, the distillation batch, logits or
probabilities, Adam's state) is a switch, whose default is our reading.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, ServerContext
from asyncfl_lite.algorithms.fedbuff import FedBuff
from asyncfl_lite.algorithms.losses import uncertainty_aware_loss, uncertainty_weight
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.steps import Adam, Step, clipped_to, sgd
from asyncfl_lite.simulator.update import Update


@ALGORITHMS.register("fedecho")
class FedEcho(FedBuff):
    """FedBuff, then distillation from every client's latest predictions (FedEcho Alg. 1).

    Each update rebuilds its client's model, whose logits on a small unlabelled set replace those stored
    for that client. After each aggregation the global model takes a few steps towards the mean of all
    stored logits, so that what a straggler predicted still counts long after its parameters are out of date.

    Attributes:
        logits: client -> ``(m, C)`` its latest logits, one row per prediction (per sample, or per token that
            counts); absent until its first report.
        last_weight: the mixing weight α of the latest distillation step.
    """

    title = "FedEcho"
    paper = "FedEcho, Alg. 1, Eqs. 2-4"
    colour = "#029e73"
    family = "distilling"
    models_stored = "2"
    keeps_versions = True
    logits_stored = "N * U"  # times the tokens that count, where samples are sequences
    state_names = (*FedBuff.state_names, "logits", "last_weight", "_adam")

    class Settings(FedBuff.Settings):
        """Switches of FedEcho."""

        distill_set: str = "cross"
        """Which unlabelled set of the task: cross, natural or synthetic."""
        distill_samples: int = Field(2000, ge=1)
        """|U|, how many unlabelled samples the server holds."""
        distill_lr: float = Field(3e-6, ge=0)
        """η_d; 0 gives FedBuff."""
        distill_unit: Literal["epochs", "steps"] = "epochs"
        distill_q: int = Field(5, ge=0)
        """Q after each aggregation: passes over the set (epochs) or minibatches (steps)."""
        distill_batch_size: int = Field(50, ge=1)
        distill_opt: Literal["adam", "sgd"] = "adam"
        """The experiments' Adam (0.9, 0.999, 1e-8) or Algorithm 1's plain step."""
        adam_state: Literal["reset", "persist"] = "reset"
        distill_bn: Literal["frozen", "train"] = "frozen"
        teacher_avg: Literal["logits", "probs"] = "logits"
        alpha_scope: Literal["batch", "sample"] = "batch"
        alpha_min: float = Field(0.2, ge=0, le=1)
        alpha_max: float = Field(0.8, ge=0, le=1)
        clip: float | None = Field(5.0, gt=0)
        """ν, the largest global L2 norm of a distillation gradient; none for no clipping."""

    @property
    def moves_by_itself(self) -> bool:
        """Distillation moves the model though every update is zero."""
        return self.settings.distill_lr > 0 and self.settings.distill_q > 0

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: object) -> None:
        """Begin at version 0 with no logits stored."""
        super().start(x0, context, **options)
        self.logits: dict[int, Tensor] = {}
        self.last_weight = float("nan")
        self._adam: tuple[Tensor, Tensor, int] | None = None
        self._inputs = self.context.unlabelled(self.settings.distill_set, self.settings.distill_samples)
        self._counts = self.context.prediction_counts(self._inputs)
        self._ends = self._counts.cumsum(0)
        self._num_predictions = int(self._counts.sum())
        self._one_each = bool((self._counts == 1).all())

    def on_receive(self, update: Update) -> bool:
        """Store what this client predicts, then go on as FedBuff.

        Predictions that are not finite (the client's model overflows) are dropped: the client has none until its next
        report.
        """
        logits = self._predictions(self.start_of(update) + update.delta, update.buffers)
        others = {client: stored for client, stored in self.logits.items() if client != update.client}
        heard = {update.client: logits} if torch.isfinite(logits).all() else {}
        self.logits = {**others, **heard}  # a new mapping, so that a saved state stays as it was
        return super().on_receive(update)

    def _predictions(self, x: Tensor, buffers: Tensor | None) -> Tensor:
        """Return a model's ``(m, C)`` predictions on the unlabelled set; all other outputs are dropped at once."""
        model, context = self.context.model, self.context
        batches = self._inputs.split(len(self._inputs) if self._one_each else self.settings.distill_batch_size)
        rows = torch.cat([context.predictions(model.outputs(x, batch, buffers), batch) for batch in batches])
        if len(rows) != (count := self._num_predictions):
            raise ConfigError(f"prediction_counts: must count the rows of predictions, {len(rows)}, got {count} in all")
        return rows

    def _rows(self, batch: Tensor) -> Tensor:
        """Return the places of a minibatch's predictions among those of the whole set, given its ``(b,)`` samples."""
        if self._one_each:
            return batch
        counts = self._counts[batch]
        before = self._ends[batch] - counts.cumsum(0)  # a sample's first place, less its rows' first in the batch
        return before.repeat_interleave(counts) + torch.arange(int(counts.sum()), device=batch.device)

    def _teacher(self) -> Tensor:
        """Return the ``(m, C)`` probabilities of all clients together (Alg. 1, line 13; see :func:`mean_teacher`).

        The sum is computed anew each time, in double precision and in the order of clients: a running sum would never
        lose what a single overflowing or huge prediction left in it.
        """
        as_logits = self.settings.teacher_avg == "logits"
        stored = (self.logits[client].double() for client in sorted(self.logits))
        mean = sum(logits if as_logits else logits.softmax(-1) for logits in stored) / len(self.logits)
        return (mean.softmax(-1) if as_logits else mean).to(self.x)

    def after_step(self, x: Tensor) -> Tensor:
        """Distil every client's latest logits into the aggregated model (Alg. 1, lines 12 to 17)."""
        chosen = self.settings
        if not (self.moves_by_itself and self.logits):
            return x
        teacher = self._teacher()
        student, weight = x.clone(), None
        frozen = self.bn_mode == "freeze" and self.buffers is not None
        buffers = self.buffers.clone() if frozen else self.buffers  # training mode writes into what it is given
        step = self._optimiser(student)
        for batch in self._batches():
            gradient, weight = self._gradient(student, buffers, batch, teacher[self._rows(batch)])
            step(student, gradient)
        self.last_weight = float(weight.mean())  # only of the last minibatch: float() waits for the device
        if isinstance(step, Adam) and chosen.adam_state == "persist":
            self._adam = step.state()
        return student if torch.isfinite(student).all() else x  # a model that overflows must not be lost for good

    def _gradient(
        self, student: Tensor, buffers: Tensor | None, batch: Tensor, teacher: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the clipped gradient of Eq. 3 on one minibatch, and the mixing weight α."""
        chosen, inputs, rows = self.settings, self._inputs[batch], self.context.predictions
        weight = uncertainty_weight(teacher, chosen.alpha_min, chosen.alpha_max, chosen.alpha_scope)
        _, gradient = self.context.model.gradient(
            student,
            inputs,
            lambda outputs: uncertainty_aware_loss(rows(outputs, inputs), teacher, weight),
            buffers,
            train=chosen.distill_bn == "train",
        )
        return gradient if chosen.clip is None else clipped_to(gradient, chosen.clip), weight

    def _batches(self) -> Iterator[Tensor]:
        """Yield the minibatches of one distillation: Q passes over the shuffled set, or Q batches."""
        chosen, count = self.settings, len(self._inputs)
        a_pass = 1 if chosen.distill_unit == "steps" else math.ceil(count / chosen.distill_batch_size)
        return itertools.islice(self._shuffled(count), chosen.distill_q * a_pass)

    def _shuffled(self, count: int) -> Iterator[Tensor]:
        while True:
            order = torch.from_numpy(self.context.rng.permutation(count)).to(self._inputs.device)
            yield from order.split(self.settings.distill_batch_size)

    def _optimiser(self, student: Tensor) -> Step:
        if self.settings.distill_opt == "sgd":
            return sgd(self.settings.distill_lr)
        adam = Adam(student, self.settings.distill_lr)
        if self._adam is not None:
            adam.restore(self._adam)
        return adam
