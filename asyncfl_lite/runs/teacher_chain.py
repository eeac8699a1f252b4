"""KUIPER's chain of teachers, which trains a run's initial weights on the server."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from asyncfl_lite.base.devices import seeded
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.registry import nested
from asyncfl_lite.models.base import INITIALISERS, Initialiser, ModelSpec, initial_model
from asyncfl_lite.models.steps import Momentum
from asyncfl_lite.models.vectors import frozen_parts
from asyncfl_lite.tasks import TASKS, Task, TaskSource


def logit_error(student: Tensor, teacher: Tensor, over_classes: Literal["mean", "sum"] = "mean") -> Tensor:
    """Return L_KD, squared errors of ``(n, …, C)`` logits, summed or averaged over classes and averaged over the rest.

    With ``sum``, it is ``‖z_t - z_s‖²`` as KUIPER prints it. With ``mean``, it is the mean squared error, as the paper
    calls it, and C times smaller.
    """
    square = (student - teacher).square()
    return (square.sum(-1) if over_classes == "sum" else square.mean(-1)).mean()


@INITIALISERS.register("teacher_chain")
class TeacherChain(Initialiser):
    """Each model teaches a smaller one by its logits, down to the clients' model (KUIPER §3.1).

    Also Appendix H: ResNet-34 teaches ResNet-26, which teaches the clients' ResNet-18, on the server's own data set,
    Kinetics; then the last layer is drawn anew for the clients' classes. Here, the server's data set is another task's
    training set, or a part of the task's own training samples that no client gets.
    """

    costly = True

    fraction: float = Field(0.1, gt=0, lt=1)
    """Fraction of the training samples that the server keeps for the chain, if ``task`` names no data set."""
    task: str | None = None
    """Task whose training set belongs to the server, such as ``kinetics`` for ``hmdb51``; clients keep all samples of
    their own task, and the last linear layer is drawn anew for their classes unless ``reinitialise_last`` is False."""
    task_settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the server's task."""
    teachers: tuple[dict[str, Any], ...] = ()
    """For each model before the clients' model, largest first, the settings that differ from ``model_settings``. If
    empty, these models are larger versions of the clients' model: the first is twice as large (ResNet-34 for
    ResNet-18), and the others lie in between."""
    teaching_assistants: int = Field(1, ge=0)
    """Number of models between the first and the clients' model; Table 3 compares 0 to 3. If ``teachers`` are given, it
    follows from them."""
    epochs: int = Field(200, ge=1)
    """Number of passes over the server's samples for each model (Table 3)."""
    batch_size: int = Field(128, ge=1)
    """Number of samples in a minibatch (Appendix H)."""
    class_weight: float = Field(0.5, ge=0, le=1)
    """Weight α of the loss on labels; the squared error, averaged over classes so that α has the same meaning for any
    number of them, has the weight 1 - α. The paper prints no value."""
    reinitialise_last: bool = False
    """Whether to draw the last linear layer anew, as the paper does if clients and server have different classes."""

    lr: ClassVar[float] = 0.1
    momentum: ClassVar[float] = 0.9
    weight_decay: ClassVar[float] = 1e-3
    """Learning rate, momentum and weight decay of SGD (Appendix H)."""
    clip: ClassVar[float] = 1.0
    """Largest global L2 norm of a gradient. Clipping is ours: without it, the paper's learning rate makes models
    without normalisation diverge."""

    @model_validator(mode="before")
    @classmethod
    def _follow(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Derive the number of assistants from given teachers, and ``reinitialise_last`` from a given task."""
        if given.get("task") is not None:
            given = {"reinitialise_last": True, **given}
        teachers = given.get("teachers")
        if not teachers or not isinstance(teachers, (list, tuple)):
            return given
        return {"teaching_assistants": len(teachers) - 1, **given}

    @model_validator(mode="after")
    def _agree(self) -> TeacherChain:
        if self.teachers and self.teaching_assistants != len(self.teachers) - 1:
            raise ValueError(
                f"teaching_assistants: must be {len(self.teachers) - 1} with {len(self.teachers)} teachers, "
                f"got {self.teaching_assistants}"
            )
        if self.task is None and self.task_settings:
            raise ValueError("task_settings: must be empty without a task")
        if self.task is not None:
            source = TASKS.get(self.task)
            try:
                source(**self.task_settings)
            except ConfigError as error:
                raise ConfigError(nested("task_settings", str(error))) from None
        return self

    @property
    def held_out(self) -> float:
        """Fraction of the training samples that the server needs as its labelled set."""
        return self.fraction if self.task is None else 0.0

    def build(
        self, spec: ModelSpec, task: Task, labelled: tuple[Tensor, Tensor] | None, seed: int, rng: np.random.Generator
    ) -> nn.Module:
        """Train the chain and return its last model; ``seed`` gives the weights with which that model begins."""
        own = self._servers_task(task)
        if self.task is not None:
            labelled = own.samples
        if labelled is None:
            raise ConfigError("fraction: a chain of teachers needs labelled samples of the server's own, got none")
        inputs, _ = labelled
        *teachers, last = self.chain(spec)
        with seeded(int(rng.integers(2**63)), inputs.device):  # dropout draws from torch's generators
            teacher = None
            for one in teachers:
                module = _fresh(one, own, int(rng.integers(2**31)), inputs)
                self._train(module, own, labelled, teacher, rng)
                teacher = _logits(module, inputs)
            # so that a redrawn last layer really is new
            begin = seed if self.task is None else int(rng.integers(2**31))
            student = _fresh(getattr(last, "whole", last), own, begin, inputs)
            self._train(student, own, labelled, teacher, rng)
        return self._handed_over(student, _fresh(spec, task, seed, inputs))

    def _servers_task(self, task: Task) -> Task:
        """Return the task on which the chain is trained, on the device of the clients' task."""
        if self.task is None:
            return task
        own = cast(TaskSource, TASKS.get(self.task)(**self.task_settings)).load()
        if own.input_shape != task.input_shape:
            raise ConfigError(
                f"task: {self.task!r} has inputs of {own.input_shape}, clients have {task.input_shape}; must agree"
            )
        return own.to(task.inputs.device)

    def _handed_over(self, student: nn.Module, fresh: nn.Module) -> nn.Module:
        """Return ``fresh``, a new clients' model, with the student's weights except those that are to be drawn anew."""
        learned = student.state_dict()
        if self.reinitialise_last:
            anew = _last_linear(fresh)
            learned = {name: value for name, value in learned.items() if name.rpartition(".")[0] != anew}
        try:
            fresh.load_state_dict(learned, strict=not self.reinitialise_last)
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1].strip()
            raise ConfigError(f"task: {self.task!r} teaches a model that does not fit the clients': {reason}") from None
        return fresh

    def chain(self, spec: ModelSpec) -> list[ModelSpec]:
        """Return the models in the order of training; the last is ``spec`` itself."""
        larger: Any = getattr(spec, "larger", None)
        if not self.teachers and larger is None:
            raise ConfigError(f"teachers: must be given for {type(spec).__name__}, which has no larger versions")
        steps = self.teaching_assistants + 1
        try:
            if self.teachers:
                return [*(type(spec)(**{**spec.model_dump(), **differing}) for differing in self.teachers), spec]
            return [*(larger(1 + (steps - done) / steps) for done in range(steps)), spec]
        except ConfigError as error:
            raise ConfigError(nested("teachers", str(error))) from None

    def _train(
        self,
        module: nn.Module,
        task: Task,
        labelled: tuple[Tensor, Tensor],
        teacher: Tensor | None,
        rng: np.random.Generator,
    ) -> None:
        """Train ``module`` in place on labels and, if it has a teacher, on the teacher's ``(n, …, C)`` logits."""
        inputs, labels = labelled
        trained = [part for part in module.parameters() if part.requires_grad]
        moves = [Momentum(part.detach()[None], self.lr, self.weight_decay, self.momentum, False) for part in trained]
        module.train()
        for part in frozen_parts(module):
            part.eval()
        for _ in range(self.epochs):
            order = torch.from_numpy(rng.permutation(len(inputs))).to(inputs.device)
            for batch in order.tensor_split(math.ceil(len(order) / self.batch_size)):  # of nearly equal sizes
                outputs = module(inputs[batch])
                loss = task.losses(outputs, labels[batch]).mean()
                if teacher is not None:
                    error = logit_error(outputs, teacher[batch])
                    loss = self.class_weight * loss + (1 - self.class_weight) * error
                loss.backward()
                nn.utils.clip_grad_norm_(module.parameters(), self.clip)
                for weights, move in zip(trained, moves, strict=True):
                    if weights.grad is not None:
                        move(weights.detach()[None], weights.grad[None])
                module.zero_grad()


def _fresh(spec: ModelSpec, task: Task, seed: int, like: Tensor) -> nn.Module:
    return initial_model(spec, task.input_spec, seed).to(like.device)


@torch.no_grad()
def _logits(module: nn.Module, inputs: Tensor) -> Tensor:
    module.eval()
    return torch.cat([module(batch) for batch in inputs.split(500)])


def _last_linear(module: nn.Module) -> str:
    layers = [name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise ConfigError("reinitialise_last: must be False for a model without a linear layer, got True")
    return layers[-1]
