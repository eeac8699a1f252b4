"""The initialiser that starts from given weights (file, state dict or module)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import Field
from torch import Tensor, nn

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.base import ModelSpec, initial_model
from asyncfl_lite.models.weights import WEIGHTS, fill, read_weights
from asyncfl_lite.runs.initial.base import INITIALISERS, Initialiser
from asyncfl_lite.tasks import Task


@INITIALISERS.register("weights")
class WeightsInitial(Initialiser):
    """Weights from a file, or those passed as ``run(config, weights=…)``."""

    file: Path | None = None
    """Safetensors file, file written by ``torch.save(module.state_dict(), path)``, or folder of a saved result."""
    leave_out: tuple[str, ...] = Field(())
    """Prefixes of parameters that keep their random values, such as ``fc.`` for another task's classes."""

    def files(self) -> list[Path]:
        """Return a list with the path of the weights' file; an empty list if no file is named."""
        if self.file is None:
            return []
        return [self.file / WEIGHTS if self.file.is_dir() else self.file]

    def build(
        self, spec: ModelSpec, task: Task, labelled: tuple[Tensor, Tensor] | None, seed: int, rng: np.random.Generator
    ) -> nn.Module:
        """Build the model with the weights from the file.

        Raises:
            ConfigError: when no file is named, or its weights do not fit the model.
            DataError: when the file cannot be read.
        """
        if self.file is None:
            raise ConfigError("file: must be given, such as file=run.pt; in Python run(config, weights=…) takes them")
        return self.filled(initial_model(spec, task.input_spec, seed), read_weights(self.file), str(self.file))

    def filled(self, module: nn.Module, state: Mapping[str, Tensor], where: str) -> nn.Module:
        """Copy the weights ``state`` into a module, except those that are left out, and return the module.

        Raises:
            ConfigError: when the weights do not fit the module.
        """
        fill(module, state, where, self.leave_out)
        return module
