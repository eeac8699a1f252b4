"""The file that an interrupted run goes on from, on the same machine and build bit for bit.

It holds what time has changed of a run (:meth:`asyncfl_lite.runs.run.Run.state`), and which configuration and revision
of the code it belongs to. Reading it executes no code from the file.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch

from asyncfl_lite.base.files import write_atomically
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.results import meaning

FORMAT = 8
DIGEST = hashlib.sha256().digest_size
"""A file's last bytes: the digest of those before them, as torch reads damaged numbers without a word."""


def previous(path: str | Path) -> Path:
    """Return where the checkpoint goes that a newer one takes the place of: ``run.pt`` to ``run.previous.pt``."""
    path = Path(path)
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def save_checkpoint(path: str | Path, config: Config, state: Mapping[str, Any]) -> None:
    """Write the state of a run of ``config`` so that ``path`` holds all of it, or what it held before.

    What it held before is kept as the previous one.

    Raises:
        ResultError: naming the path and the reason (full disk, no permission).
    """
    content = {**_belongs_to(config), **state}

    def write(file: BinaryIO) -> None:
        hashed = _Hashed(file)
        try:
            torch.save(content, hashed)
        except RuntimeError as error:  # torch's own, of where it stands in a file that is full
            raise hashed.failed or error from None
        file.write(hashed.sha256.digest())

    write_atomically(path, write, keep=previous(path))


def _belongs_to(config: Config) -> dict[str, Any]:
    """Return what must be equal for a run to go on from a checkpoint."""
    return {"format": FORMAT, "config_hash": config.hash, "meaning": meaning(config)}


class _Hashed:
    """A file that notes the digest of what is written into it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.sha256 = file, hashlib.sha256()
        self.failed: OSError | None = None

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        try:
            return self.file.write(data)
        except OSError as error:
            self.failed = error
            raise

    def flush(self) -> None:
        self.file.flush()


def load_checkpoint(path: str | Path, config: Config) -> dict[str, Any] | None:
    """Return the state that ``path`` holds, or that of the one before it; None if neither can be used.

    A file that is cut off or damaged, of another format, of code with another meaning or of another configuration is
    not used: a warning names it and why, and says from where the run goes on.
    """
    refused = []
    for candidate in (Path(path), previous(path)):
        if not candidate.exists():
            continue
        try:
            content = _read(candidate, config)
        except Exception as error:  # torch raises many kinds for a damaged file
            refused.append(f"{candidate}: checkpoint not used ({str(error).splitlines()[0]})")
            continue
        if refused:
            warnings.warn(f"{refused[0]}; the run goes on from the one before it", stacklevel=3)
        return content
    if refused:
        warnings.warn(f"{'; '.join(refused)}; the run starts over", stacklevel=3)
    return None


def _read(path: Path, config: Config) -> dict[str, Any]:
    """Return the content of a checkpoint that a run of ``config`` can go on from; no code in the file is executed.

    Raises:
        ValueError: why it can't.
    """
    with path.open("rb") as file:
        content = file.read()
    if hashlib.sha256(memoryview(content)[:-DIGEST]).digest() != content[-DIGEST:]:
        raise ValueError("cut off, damaged, or of another format")
    content = torch.load(io.BytesIO(content), map_location=config.device, weights_only=True)
    named = {"format": "format", "meaning": "revision of the code", "config_hash": "configuration"}
    wanted = _belongs_to(config)
    for name, what in named.items():
        if content[name] != wanted[name]:
            raise ValueError(f"of another {what}: {content[name]}, not {wanted[name]}")
    return content
