"""The trained model of a finished run: the module itself, in memory or in the result's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from asyncfl_lite.base.devices import usual_torch
from asyncfl_lite.base.errors import DataError, ResultError
from asyncfl_lite.models.base import InputSpec, ModelSpec, initial_model
from asyncfl_lite.models.vectors import copied
from asyncfl_lite.models.weights import WEIGHTS, fill, read_weights, write_weights


@dataclass
class Trained:
    """A trained model, in memory or in the folder of a result.

    Attributes:
        spec: settings from which its module is built.
        inputs: shape of the inputs and number of classes for which the module is built.
        module: the module, or None if it is in a folder.
        folder: folder of the result with which the model was saved.
        digest: digest of the weights' file in that folder.
    """

    spec: ModelSpec
    inputs: InputSpec
    module: nn.Module | None = field(default=None, repr=False)
    folder: Path | None = None
    digest: str | None = None

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """The state dict, which is read from disk at each use if the model is in a folder.

        Raises:
            DataError: when the file is missing, or has been changed.
        """
        if self.module is not None:
            return self.module.state_dict()
        if self.folder is None:
            raise DataError("weights: neither a module nor a folder holds them")
        return read_weights(self.folder / WEIGHTS, self.digest)

    @usual_torch()
    def make(self) -> nn.Module:
        """Return the module, a new copy each time, in evaluation mode on the CPU."""
        if self.module is not None:
            return copied(self.module)
        module = initial_model(self.spec, self.inputs, seed=0)
        fill(module, self.weights, str(self.folder))
        return module.eval()

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the weights into a folder; return the record that :func:`saved` needs to find them again."""
        inputs = {"shape": list(self.inputs.shape), "num_classes": self.inputs.num_classes}
        digest = write_weights(folder / WEIGHTS, self.weights)
        return {"digest": digest, "inputs": {**inputs, "vocabulary": self.inputs.vocabulary}}


def saved(spec: ModelSpec, folder: Path, record: Any) -> Trained | None:
    """Return the model saved in a folder, given the record that :meth:`Trained.save` returned; None if there is none.

    Raises:
        ResultError: when the record is not in the form that :meth:`Trained.save` returns.
    """
    if record is None:
        return None
    try:
        given = record["inputs"]
        inputs = InputSpec(tuple(given["shape"]), given["num_classes"], vocabulary=given["vocabulary"])
        return Trained(spec, inputs, folder=folder, digest=str(record["digest"]))
    except (TypeError, LookupError):
        where = folder / "result.json"
        raise ResultError(f"{where}: weights must have a digest and inputs; run the cell again") from None
