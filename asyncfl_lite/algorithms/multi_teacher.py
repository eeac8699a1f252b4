"""Distillation from several teacher models, shared by FedRevive and DD-FedRevive.

FedRevive (see :mod:`asyncfl_lite.algorithms.fedrevive`), §2.2, steps 1 and 4, and Eq. 3.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.afl_dw import AFLDW
from asyncfl_lite.algorithms.base import ServerContext
from asyncfl_lite.algorithms.losses import multi_teacher_loss
from asyncfl_lite.algorithms.synthesis import ClassProxies, Pool, cropped_and_mirrored
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.streams import stream
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.descent import Optimiser
from asyncfl_lite.models.minibatches import Minibatches
from asyncfl_lite.simulator.jobs import Update

SPIKE_FACTOR, SPIKE_WINDOW, LOSSES_BEFORE_SPIKES = 3.0, 20, 10
"""A distillation loss above 3 times the mean of the last 20 is a spike, if there are at least 10 (the authors' code).
"""


class Teacher(NamedTuple):
    """One of the latest client models, used as a teacher.

    Attributes:
        client: the client that trained it.
        x: ``(d,)`` parameters.
        buffers: ``(b,)`` running statistics, or None.
        features: ``(2, F)`` feature statistics φ̄ on the client's data, or None.
    """

    client: int
    x: Tensor
    buffers: Tensor | None
    features: Tensor | None


class MultiTeacher(AFLDW):
    """AFL-DW that replaces the damped part by distillation from the latest client models (FedRevive Eq. 3).

    ``x ← x + η ((1 - β) Δ + β Δ^KD)``. A subclass provides the inputs for distillation.

    Attributes:
        teachers: the latest client models, oldest first.
        proxies: clients' class proportions, estimated or true.
        pool: the labelled inputs for distillation.
        kd_losses: the latest distillation losses, for ``spike_guard``.
    """

    moves_by_itself = True
    state_names = (*AFLDW.state_names, "teachers", "kd_losses")
    state_parts: ClassVar[tuple[str, ...]] = ("proxies",)
    """Names of attributes that are saved by their own ``state()`` method."""

    class Settings(AFLDW.Settings):
        """Options of distillation from several teachers."""

        num_teachers: int = Field(8, ge=1)
        """c, the number of latest client models that are kept as teachers."""
        k_kd: int = Field(10, ge=0)
        """Number of steps of one distillation; 0 gives AFL-DW."""
        kd_batch_size: int = Field(32, ge=1)
        """Number of inputs per teacher in each step."""
        kd_lr: float = Field(1e-4, ge=0)
        """Learning rate of distillation. Table 6 has 1e-4 for CIFAR-10 and FEMNIST, 3e-5 for CIFAR-100, 3e-4 for
        20NewsGroups. 0 switches distillation off."""
        kd_opt: Literal["adam", "sgd"] = "adam"
        """Optimiser of distillation: the authors' code's Adam, or the paper's plain step."""
        kd_weight_decay: float = Field(1e-5, ge=0)
        """Adam's weight decay."""
        kd_temperature: float = Field(1.0, gt=0)
        """Temperature T of the softmax of teachers and student; 1 for every data set of Table 6."""
        kd_bn: Literal["train", "frozen"] = "train"
        """Whether the student's BatchNorm uses its batches' statistics or the global model's running statistics."""
        augment: bool = False
        """Crop and mirror images before models on the server see them, as the authors' code does on CIFAR; the paper
        names no augmentation. Clients' images are augmented by the task's own setting."""
        spike_guard: bool = False
        """Skip the gradient of a loss above 3 times the mean of the latest losses."""

    settings: Settings

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Begin at version 0 without teachers.

        Raises:
            ConfigError: when the context lacks something that the method needs, or when ``augment`` is on but inputs
                are not images.
        """
        super().start(x0, context, **options)
        self.teachers: list[Teacher] = []
        self.kd_losses: list[float] = []
        self._crop_seed = 0
        if self.settings.augment:
            if self.spec.vocabulary is not None or len(self.spec.shape) != 3:
                raise ConfigError(f"augment: only images can be cropped and mirrored, not inputs of {self.spec.shape}")
            self._crop_seed = int(self.context.rng.spawn(1)[0].integers(2**63))  # takes nothing from the stream itself
        self.proxies, self.pool = self.begin()

    @abstractmethod
    def begin(self) -> tuple[ClassProxies, Pool]:
        """Return the store of clients' class proportions, and the pool of inputs, with which a run begins."""

    @property
    def spec(self) -> InputSpec:
        """Shape and kind of the task's inputs.

        Raises:
            ConfigError: if the context does not contain them.
        """
        if self.context.inputs is None:
            raise ConfigError(
                f"inputs: {type(self).__name__} needs the shape and range of inputs; put them in the context"
            )
        return self.context.inputs

    def seen_as(self, purpose: str) -> Callable[[Tensor], Tensor]:
        """Return the transform of inputs for models on the server: random crops and mirroring if ``augment`` is on."""
        if not self.settings.augment:
            return lambda inputs: inputs
        seed = int(stream(self._crop_seed, purpose, self.version).integers(2**63))
        return partial(cropped_and_mirrored, generator=torch.Generator().manual_seed(seed))

    def on_receive(self, update: Update) -> bool:
        """Add the client's model to the teachers, then process its update."""
        teacher = Teacher(update.client, self.start_of(update) + update.delta, update.buffers, self.features_of(update))
        self.teachers = [*self.teachers, teacher][-self.settings.num_teachers :]
        self.learn_proportions(update, teacher)
        self.renew_pool()
        return super().on_receive(update)

    def features_of(self, update: Update) -> Tensor | None:
        """Return the ``(2, F)`` feature statistics φ̄ to keep for a client's model; None if they are not used."""
        return None

    def learn_proportions(self, update: Update, teacher: Teacher) -> None:
        """Record the client's true class proportions."""
        if update.label_counts is None:
            raise ConfigError("label_counts: true class proportions need every update to bring its class counts")
        self.proxies.add(update.client, update.label_counts.double().cpu() / update.label_counts.sum().cpu())

    def renew_pool(self) -> None:
        """Add new inputs to the pool when they are due; the default does nothing, since real data stay the same."""

    def proportions(self) -> Tensor:
        """Return the ``(K, C)`` class proportions of the teachers' clients."""
        return self.proxies.of([teacher.client for teacher in self.teachers])

    def distilled_update(self) -> Tensor | None:
        """Return Δ^KD, the change of the model in K_KD steps of distillation, or None.

        It is None if distillation is switched off, if the pool is empty, or if the change is not finite.
        """
        chosen, pool = self.settings, self.pool
        if pool.inputs is None or not (len(pool) and chosen.k_kd and chosen.kd_lr):
            return None
        context, size, steps = self.context, chosen.kd_batch_size, chosen.k_kd
        drawn = pool.draw(self.proportions(), steps * size, context.rng).to(self.x.device)
        inputs = self.seen_as("distillation")(pool.inputs[drawn.flatten()])
        models = [(teacher.x, teacher.buffers) for teacher in self.teachers]
        outputs = context.outputs(models, inputs.unflatten(0, drawn.shape), one_for_all=False)
        by_step = torch.arange(len(inputs), device=self.x.device).view(len(models), steps, size).transpose(0, 1)
        adam = chosen.kd_opt == "adam"
        student = context.distil(
            self.x,
            Minibatches(inputs, by_step.flatten(), [len(models) * size] * steps),
            loss=partial(multi_teacher_loss, temperature=chosen.kd_temperature),
            against=[torch.cat([context.class_logits(rows) for rows in outputs])],
            optimiser=Optimiser(chosen.kd_opt, chosen.kd_lr, chosen.kd_weight_decay if adam else 0.0),
            predictions=lambda outputs, inputs: context.class_logits(outputs),
            buffers=None if self.buffers is None else self.buffers.clone(),
            train=chosen.kd_bn == "train",
            skips=self._spikes if chosen.spike_guard else None,
        ).x
        delta = student - self.x
        return delta if torch.isfinite(delta).all() else None  # a teacher that overflows must not break the model

    def _spikes(self, loss: float) -> bool:
        """Return whether a loss is far above the mean of the latest losses; if not, record it as one of them."""
        latest = self.kd_losses
        if len(latest) >= LOSSES_BEFORE_SPIKES and loss > SPIKE_FACTOR * sum(latest) / len(latest):
            return True
        self.kd_losses = [*latest, loss][-SPIKE_WINDOW:]
        return False

    def state(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` loads."""
        parts = {name: getattr(self, name).state() for name in self.state_parts}
        return {**super().state(), "teachers": [tuple(teacher) for teacher in self.teachers], **parts}

    def restore(self, state: dict[str, Any]) -> None:
        """Load a saved state."""
        super().restore(state)
        self.teachers = [Teacher(*teacher) for teacher in state["teachers"]]
        for name in self.state_parts:
            getattr(self, name).restore(state[name])
