"""A run's whole state in a file, so that an interrupted run goes on, on the same machine and build bit for bit.

What the configuration decides (data, partition, delays, initial weights) is made anew; what time has changed
is saved: the method's state, jobs in flight with what is trained of them, the clock, every random stream,
history. Loading executes no code from the file.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import torch

from asyncfl_lite.base.files import write_atomically
from asyncfl_lite.runs.results import meaning

if TYPE_CHECKING:
    from asyncfl_lite.runs.run import Run

FORMAT = 8
DIGEST = hashlib.sha256().digest_size
"""A file's last bytes: the digest of those before them, as torch reads damaged numbers without a word."""


def previous(path: str | Path) -> Path:
    """Return where the checkpoint goes that a newer one takes the place of: ``run.pt`` to ``run.previous.pt``."""
    path = Path(path)
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def save_checkpoint(run: Run, path: str | Path) -> None:
    """Write the state of ``run`` so that ``path`` holds all of it; what it held before is kept as the previous one.

    Raises:
        ResultError: naming the path and the reason (full disk, no permission).
    """
    content = {
        "format": FORMAT,
        "config_hash": run.config.hash,
        "meaning": meaning(run.config),
        "algorithm": run.algorithm.state(),
        "simulation": run.simulation.state(),
        "server_rng": run.server_rng.bit_generator.state,
        "curve": run.curve_rows,
    }

    def write(file: BinaryIO) -> None:
        hashed = _Hashed(file)
        try:
            torch.save(content, hashed)
        except RuntimeError as error:  # torch's own, of where it stands in a file that is full
            raise hashed.failed or error from None
        file.write(hashed.sha256.digest())

    write_atomically(path, write, keep=previous(path))


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


def load_checkpoint(run: Run, path: str | Path) -> bool:
    """Put ``run`` into the state that ``path`` holds, or the one before it; return whether there was a usable one.

    A file that is cut off or damaged, of another format, of code with another meaning or of another configuration is
    not used: a warning names it and why, and says from where the run goes on.
    """
    refused = []
    for candidate in (Path(path), previous(path)):
        if not candidate.exists():
            continue
        try:
            content = _read(candidate, run)
        except Exception as error:  # torch raises many kinds for a damaged file
            refused.append(f"{candidate}: checkpoint not used ({str(error).splitlines()[0]})")
            continue
        if refused:
            warnings.warn(f"{refused[0]}; the run goes on from the one before it", stacklevel=2)
        run.algorithm.restore(content["algorithm"])
        run.simulation.restore(content["simulation"])
        run.server_rng.bit_generator.state = content["server_rng"]
        run.curve_rows = content["curve"]
        return True
    if refused:
        warnings.warn(f"{'; '.join(refused)}; the run starts over", stacklevel=2)
    return False


def _read(path: Path, run: Run) -> dict[str, Any]:
    """Return the content of a checkpoint that ``run`` can go on from; no code in the file is executed.

    Raises:
        ValueError: why it can't.
    """
    with path.open("rb") as file:
        content = file.read()
    if hashlib.sha256(memoryview(content)[:-DIGEST]).digest() != content[-DIGEST:]:
        raise ValueError("cut off, damaged, or of another format")
    content = torch.load(io.BytesIO(content), map_location=run.config.device, weights_only=True)
    wanted = {"format": FORMAT, "meaning": meaning(run.config), "config_hash": run.config.hash}
    named = {"format": "format", "meaning": "revision of the code", "config_hash": "configuration"}
    for name, value in wanted.items():
        if content[name] != value:
            raise ValueError(f"of another {named[name]}: {content[name]}, not {value}")
    return content
