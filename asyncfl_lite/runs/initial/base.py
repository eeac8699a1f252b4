"""The base class of initialisers, which make a run's first model, and the initialiser ``random``."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from torch import Tensor, nn

from asyncfl_lite.base.registry import Registry, Settings
from asyncfl_lite.models.base import ModelSpec, initial_model
from asyncfl_lite.tasks import Task

INITIALISERS: Registry[Initialiser] = Registry("initial")


class Initialiser(Settings):
    """A source of initial weights, with its settings."""

    revision: ClassVar[int] = 1
    """Revision of the numbers; increase it when their meaning changes, to mark older results as outdated."""

    costly: ClassVar[bool] = False
    """Whether ``build`` trains a model, which is kept for other runs (:mod:`asyncfl_lite.runs.initial.remembered`)."""

    @property
    def held_out(self) -> float:
        """Fraction of the training samples that the server needs as its labelled set."""
        return 0.0

    @abstractmethod
    def build(
        self, spec: ModelSpec, task: Task, labelled: tuple[Tensor, Tensor] | None, seed: int, rng: np.random.Generator
    ) -> nn.Module:
        """Build the initial model.

        Args:
            spec: the clients' model.
            task: the task, for shapes, classes and the loss.
            labelled: inputs and labels that only the server has, or None.
            seed: seed of the random weights.
            rng: a random stream for this work alone.
        """


@INITIALISERS.register("random")
class RandomInitial(Initialiser):
    """The model's own random weights."""

    def build(
        self, spec: ModelSpec, task: Task, labelled: tuple[Tensor, Tensor] | None, seed: int, rng: np.random.Generator
    ) -> nn.Module:
        """Return the model with its random weights."""
        return initial_model(spec, task.input_spec, seed)
