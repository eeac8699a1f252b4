"""Given weights: reading and writing their files, and starting a model from them if they fit.

Files are in the safetensors format, or were written by ``torch.save(module.state_dict(), path)``; reading either kind
executes no code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from pydantic import Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from asyncfl_lite.base.errors import ConfigError, DataError, ResultError, reason
from asyncfl_lite.base.files import regular, write_atomically
from asyncfl_lite.models.base import INITIALISERS, Initialiser, ModelSpec, content_of, initial_model

WEIGHTS = "weights.safetensors"
"""File name of the weights in a result's folder."""
OURS = {"made_by": "asyncfl_lite"}
"""Metadata by which a file of weights is recognised as ours."""
BEGIN = b'{"__metadata__":{"made_by":"asyncfl_lite"'
"""First bytes of the header of a file of ours."""
COUNTERS = "num_batches_tracked"
"""Suffix of BatchNorm's counters, which older files lack and nothing here depends on."""
SHOWN = 3
"""Number of names that an error message lists."""


def write_weights(path: Path, state: Mapping[str, Tensor]) -> str:
    """Write a state dict to a file that is ours, and return the file's SHA-256 digest."""
    check_ours(path)
    plain = {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in state.items()}
    content = save(plain, OURS)
    write_atomically(path, lambda file: file.write(content))
    return hashlib.sha256(content).hexdigest()


def check_ours(path: Path) -> None:
    """Raise an error if there is a file at ``path`` that asyncfl_lite did not write; a cut-off or empty one is ours."""
    if not path.exists():
        return
    try:
        with safe_open(regular(path), "pt") as file:
            made_by = (file.metadata() or {}).get("made_by")
    except (OSError, SafetensorError):
        made_by = OURS["made_by"] if path.is_file() and _is_rest(path) else None
    if made_by != OURS["made_by"]:
        raise ResultError(f"{path}: was not written by asyncfl_lite; name another folder, or move it away")


def _is_rest(path: Path) -> bool:
    with path.open("rb") as file:
        length, begin = file.read(8), file.read(len(BEGIN))
    return not length or (bool(begin) and BEGIN.startswith(begin))


def read_weights(path: Path, digest: str | None = None) -> dict[str, Tensor]:
    """Read a state dict from a file or from a result's folder, onto the CPU.

    Args:
        path: a file in safetensors' or torch's format, or a folder that contains :data:`WEIGHTS`.
        digest: the SHA-256 digest that the file must have, or None to skip this check.

    Raises:
        DataError: when the file is missing, damaged or changed, or holds something else; the message names it.
    """
    path = path / WEIGHTS if path.is_dir() else path
    if digest is not None and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        raise DataError(f"{path}: cut off or changed since it was written")
    try:
        if path.suffix == ".safetensors":
            return load_file(regular(path))
        content = torch.load(regular(path), map_location="cpu", weights_only=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({reason(error)})") from None
    except UnpicklingError:  # torch's own message recommends executing the file's content
        raise DataError(
            f"{path}: holds more than weights, which is not loaded; write torch.save(module.state_dict(), path)"
        ) from None
    except (SafetensorError, RuntimeError, EOFError, ValueError, LookupError) as error:
        raise DataError(f"{path}: is not a file of weights ({reason(error)})") from None
    return as_state(content, str(path))


def as_state(content: object, where: str) -> dict[str, Tensor]:
    """Return the state dict of the given module, or the given state dict as a plain dict."""
    if isinstance(content, nn.Module):
        return content.state_dict()
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        found = f"a mapping of {_some(list(content))}" if isinstance(content, Mapping) else type(content).__name__
        raise DataError(f"{where}: must be a state dict, names and tensors, got {found}")
    return dict(content)


def fill(module: nn.Module, state: Mapping[str, Tensor], where: str, leave_out: Sequence[str] = ()) -> None:
    """Copy weights into a module of exactly the same structure, in place.

    Args:
        module: the module.
        state: the weights, by name.
        where: the source of the weights, for the message.
        leave_out: beginnings of names under which the module keeps its own values.

    Raises:
        ConfigError: when the weights do not fit, naming those that are missing, superfluous, of another shape or not
            finite.
    """

    def wanted(given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: value for name, value in given.items() if not name.startswith(tuple(leave_out))}

    own, state = wanted(module.state_dict(keep_vars=True)), wanted(state)
    given = {id(own[name]) for name in state if name in own}  # a tensor with two names may be given under either
    missing = [name for name in own if name not in state and id(own[name]) not in given and not name.endswith(COUNTERS)]
    faults = {
        "they lack {}": missing,
        "they have {}, which the model lacks": [name for name in state if name not in own],
        "other shapes: {}": [
            f"{name} is {tuple(value.shape)}, not {tuple(own[name].shape)}"
            for name, value in state.items()
            if name in own and value.shape != own[name].shape
        ],
        "NaN or infinity in {}": [name for name in state if name in own and _not_finite(state[name], own[name])],
    }
    if found := [line.format(_some(names)) for line, names in faults.items() if names]:
        raise ConfigError(f"weights: those of {where} do not fit the model; {'; '.join(found)}")
    module.load_state_dict(state, strict=False)


def _not_finite(value: Tensor, like: Tensor) -> bool:
    """Return whether a weight is NaN or infinite in the type of ``like``, the model's own, and is not so there, too."""
    found, own = value.to(like.dtype), like.to(value.device)
    return value.shape == like.shape and not (found.isfinite() | (found == own) | (found.isnan() & own.isnan())).all()


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
        self, spec: ModelSpec, task: Any, labelled: tuple[Tensor, Tensor] | None, seed: int, rng: np.random.Generator
    ) -> nn.Module:
        """Build the model with the weights from the file."""
        if self.file is None:
            raise ConfigError("file: must be given, such as file=run.pt; in Python run(config, weights=…) takes them")
        return self.filled(initial_model(spec, task.input_spec, seed), read_weights(self.file), str(self.file))

    def filled(self, module: nn.Module, state: Mapping[str, Tensor], where: str) -> nn.Module:
        """Copy the weights ``state`` into a module, except those that are left out, and return the module."""
        fill(module, state, where, self.leave_out)
        return module


def digest_of(values: Mapping[str, Tensor | np.ndarray], about: str = "") -> str:
    """Return 16 hexadecimal digits that identify tensors and arrays by names, shapes, types and values, and a text."""
    digest = hashlib.sha256(about.encode())
    for name, value in values.items():
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        digest.update(content_of(value))
    return digest.hexdigest()[:16]


def _some(names: Sequence[object]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(str, names[:SHOWN])) + more
