"""Checkpoints: files from which an interrupted run continues, bit for bit on the same machine and build.

A checkpoint holds the state of a run that changes over time (:meth:`asyncfl_lite.runs.run.Run.state`). Its first line
identifies the run: its configuration, its data and the revision of the code. Reading a checkpoint executes no code from
the file. If the file is not this run's checkpoint, it is not replaced or removed, and the run does not begin; only
``force`` removes another run's checkpoint. A file that is empty, or whose first line is a checkpoint's but cut off or
damaged, holds nothing that could be continued or lost. It counts as a damaged checkpoint of this run: a warning names
it, and the run continues from the previous checkpoint or starts over.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO, cast

import torch

from asyncfl_lite.base.errors import ResultError, reason, shown
from asyncfl_lite.base.files import clear_parts, unsealed, write_atomically
from asyncfl_lite.runs.config import NOT_IN_HASH, Config
from asyncfl_lite.runs.meaning import meaning

FORMAT = 11
HEAD = b"asyncfl_lite checkpoint "
"""First bytes of a checkpoint; its identity follows on the same line, as JSON."""
LONGEST_HEAD = 2**14

Identity = Mapping[str, Any]
"""Identity of a checkpoint: its format, the code's revisions, the configuration's hash and the data's digests."""


def previous(path: str | Path) -> Path:
    """Return the path of the previous checkpoint: ``run.previous.pt`` for ``run.pt``."""
    path = Path(path)
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def identity_of(config: Config, data: Mapping[str, str] | None = None) -> Identity:
    """Return the identity that a checkpoint must have for a run of ``config`` to continue from it.

    Args:
        config: the run's configuration.
        data: digests of the data that the run reads from outside; see :func:`asyncfl_lite.runs.sources.data_of`.
    """
    whole = {"format": FORMAT, "meaning": meaning(config), "config_hash": config.hash, "data": dict(data or {})}
    settings = config.as_dict()  # not compared, but used to name the settings that differ
    return {**whole, "config": settings} if len(json.dumps(settings)) < LONGEST_HEAD // 2 else whole


def check_place(path: str | Path, identity: Identity) -> None:
    """Raise an error if the file at ``path`` or at its ``.previous`` path is not a checkpoint of this run.

    Raises:
        ResultError: if one is not; the message names the file and says what is wrong with it.
    """
    for candidate in (Path(path), previous(path)):
        found = _identity_in(candidate)
        if found and (others := _what_differs(found, identity)):
            raise ResultError(f"{candidate}: is the checkpoint of another {others}; name another file, or remove it")


def _identity_in(path: Path) -> Identity | None:
    """Return the identity of a checkpoint file; None if there is no file, and nothing if it is empty or damaged there.

    Raises:
        ResultError: if the file is not a checkpoint.
    """
    if path.is_dir():
        raise ResultError(f"{path}: is a folder; a checkpoint is a file, such as {path / 'run.pt'}")
    if not path.exists():
        return None
    try:
        return _read_identity(path)
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({reason(error)})") from None
    except (ValueError, RecursionError):
        raise ResultError(
            f"{path}: is not a checkpoint that this version wrote; name another file, or remove it"
        ) from None


def _read_identity(path: Path) -> Identity:
    """Return the identity in a checkpoint's first line, empty if it is cut off; raise ValueError for any other file."""
    if not path.is_file():  # reading from a pipe could wait for ever
        raise ValueError("no file")
    with path.open("rb") as file:
        line = file.readline(LONGEST_HEAD)
    if line[: len(HEAD)] != HEAD[: len(line)]:
        raise ValueError("no checkpoint")
    try:
        identity = json.loads(line.removeprefix(HEAD))
    except (ValueError, RecursionError):
        identity = None
    return identity if isinstance(identity, dict) else {}


def _settings_that_differ(found: Any, wanted: Mapping[str, Any]) -> str:
    """Return, as text, the recorded settings that differ from the wanted ones; empty if none were recorded."""
    if not isinstance(found, Mapping):
        return ""
    names = [name for name in wanted if found.get(name) != wanted[name] and name not in NOT_IN_HASH]
    told = [
        f"{name} is {shown(found.get(name))}, not {shown(wanted[name])}"
        if not isinstance(wanted[name], dict)
        else f"{name} differ"
        for name in names[:3]
    ]
    return ", ".join(told) + ", …" * (len(names) > 3)


def _what_differs(found: Identity, identity: Identity) -> str:
    """Return the reason why a checkpoint does not belong to this run; empty if it does belong to it."""
    other = found.get("config_hash") != identity["config_hash"]
    if other and (told := _settings_that_differ(found.get("config"), identity.get("config", {}))):
        return f"configuration ({told})"
    named = {"format": "format", "meaning": "revision of the code", "config_hash": "configuration", "data": "data"}
    differ = (
        f"{what}: {found.get(name)}, not {identity[name]}"
        for name, what in named.items()
        if found.get(name) != identity[name]
    )
    return next(differ, "")


def save_checkpoint(path: str | Path, identity: Identity, state: Mapping[str, Any]) -> None:
    """Save a run's state to ``path`` completely or not at all, and keep the previous checkpoint.

    The earlier content is kept as the previous checkpoint.

    Raises:
        ResultError: if the state cannot be saved; the message names the path and the reason (full disk, no permission,
            another run's file).
    """
    check_place(path, identity)

    def write(file: BinaryIO) -> None:
        hashed = _Hashed(file)
        try:
            hashed.write(HEAD + json.dumps(identity).encode() + b"\n")
            torch.save(dict(state), cast(BinaryIO, hashed))  # torch needs only a file's ``write`` and ``flush``
        except RuntimeError as error:  # torch's own error when the disk is full
            raise hashed.failed or error from None
        file.write(hashed.sha256.digest())

    write_atomically(path, write, keep=previous(path))


class _Hashed:
    """A file that computes the digest of everything written to it."""

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


def load_checkpoint(path: str | Path, identity: Identity, device: str = "cpu") -> dict[str, Any] | None:
    """Return the state saved at ``path`` or in the previous checkpoint; None if neither is usable.

    A checkpoint of this run that is cut off or damaged is not used. A warning then names the file and the reason, and
    says whether the run continues from the previous checkpoint or starts over.

    Raises:
        ResultError: when one of the two files is not this run's checkpoint; see :func:`check_place`.
    """
    check_place(path, identity)
    refused = []
    for candidate in (Path(path), previous(path)):
        if not candidate.exists():
            continue
        try:
            state = _read(candidate, device)
        except Exception as error:  # torch raises many kinds for a damaged file
            refused.append(f"{candidate}: checkpoint not used ({reason(error)})")
            damaged = not isinstance(error, OSError)
            continue
        if refused:
            warnings.warn(f"{refused[0]}; the run continues from the previous one", stacklevel=3)
            if damaged:  # or the next checkpoint would put it in the place of the one that is used now
                Path(path).unlink()
        return state
    if refused:
        warnings.warn(f"{'; '.join(refused)}; the run starts over", stacklevel=3)
    return None


def _read(path: Path, device: str) -> dict[str, Any]:
    """Read the state from a checkpoint; no code in the file is executed.

    Raises:
        ValueError: when the file is cut off or damaged, or contains more than tensors and plain values.
    """
    content = unsealed(path.read_bytes())
    begin = bytes(content[:LONGEST_HEAD]).index(b"\n") + 1
    try:
        return torch.load(io.BytesIO(content[begin:]), map_location=device, weights_only=True)
    except UnpicklingError:  # torch's message explains how to read the file anyway, which would execute its code
        raise ValueError("contains something that is neither a tensor nor a plain value") from None


def remove_checkpoints(path: str | Path, identity: Identity) -> None:
    """Delete a run's checkpoint, the previous one, and the partial files of killed processes."""
    for candidate, found in _checkpoints_at(path):
        if not found or not _what_differs(found, identity):
            candidate.unlink(missing_ok=True)
            clear_parts(candidate)


def remove_others(path: str | Path, identity: Identity) -> None:
    """Delete the checkpoints of other runs at ``path`` and its ``.previous`` path; all other files stay."""
    for candidate, found in _checkpoints_at(path):
        if found and _what_differs(found, identity):
            candidate.unlink(missing_ok=True)


def _checkpoints_at(path: str | Path) -> Iterator[tuple[Path, Identity | None]]:
    """Yield (path, identity) for the current and previous checkpoint; see :func:`_identity_in`."""
    for candidate in (Path(path), previous(path)):
        with suppress(ResultError):
            yield candidate, _identity_in(candidate)
