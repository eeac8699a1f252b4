"""What is kept of runs on disk, and whose it is: the identity of a run, its checkpoints, and the record of its result.

A run's **identity** consists of its configuration, the digests of the data that it reads from outside, and the
revisions of the code. :func:`what_differs` compares two identities, for results and for checkpoints.

A **checkpoint** begins with a line that holds the run's identity; the state that changes over time and a digest of the
whole follow. Reading it executes no code from the file. A file that is not this run's checkpoint is never replaced or
removed, unless ``force`` removes another run's. One that is empty, cut off or damaged counts as a damaged checkpoint
of this run: a warning names it, and the run continues from the previous one or starts over.

A **result's folder** holds ``result.json`` (configuration, its hash, versions, summary), tables and the final model.
Every file appears whole or not at all, and ``result.json`` last, with the digests of the others and of itself, so a
folder with a sound one holds a finished run.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import platform
import tempfile
import warnings
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, reduce
from importlib import metadata
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO, Literal, cast

import torch
from pydantic import ConfigDict, TypeAdapter

from asyncfl_lite.base import __version__
from asyncfl_lite.base.errors import ConfigError, ResultError, reason, shown
from asyncfl_lite.base.files import clear_parts, fingerprint, regular, unsealed, write_atomically
from asyncfl_lite.models.base import content_of
from asyncfl_lite.models.weights import WEIGHTS, check_ours, digest_of
from asyncfl_lite.runs.config import GROUPS, NOT_IN_HASH, Config, registries
from asyncfl_lite.tasks import Task
from asyncfl_lite.tasks.task import stored

MEANING = 2
"""Revision of the package's numbers as a whole, whatever the method or the task.

Raise it by one when the same configuration now gives other numbers on purpose, so that old results must not be compared
with new ones; for example, when the clock, local training, a metric or a number of the summary was corrected. If only
one method, task, model, delay law, partition, selection or initialisation is affected, raise its class's ``revision``
(1 if it has none) instead. Leave both unchanged for changes of speed, rounding or wording, and for new settings, which
the configuration's hash covers.
"""
OWN = "own data"
"""Name of the kind of data in a user's own task; other kinds are named after groups of settings."""
OWN_WEIGHTS = "own weights"
"""Name of the kind of data in a state dict from which a run starts."""

Identity = Mapping[str, Any]
"""What makes a run this run: ``config``, ``config_hash``, ``own_task``, ``data`` and ``meaning``."""

Standing = Literal["complete", "stale", "changed", "missing"]
"""State of a recorded result: ``complete`` if it belongs to exactly this configuration; ``stale`` if the code's
revision (:data:`MEANING`) has changed since; ``changed`` if it belongs to another configuration or other data, or was
stopped by a callback; ``missing`` if it is absent or damaged."""


def identity_of(
    config: Config, data: Mapping[str, str] | None = None, then: Mapping[str, int] | None = None
) -> Identity:
    """Return the identity of a run; by default, its data and the revisions of its code are those of a run now."""
    return {
        "config": config.as_dict(),
        "config_hash": config.hash,
        "own_task": config.own_task,
        "data": data_of(config) if data is None else dict(data),
        "meaning": meaning(config) if then is None else then,
    }


def what_differs(found: Identity, wanted: Identity) -> tuple[Standing, str]:
    """Return whether something on disk belongs to a run, and, if it does not, whose it is.

    Data that only one of the two know are not compared: they may be missing on a machine to which results were copied.
    """
    if found["config_hash"] != wanted["config_hash"]:
        return "changed", f"another configuration{_settings_that_differ(found.get('config'), wanted['config'])}"
    if (own := found.get("own_task")) != wanted["own_task"]:
        return "changed", f"a run on other data ({own or wanted['config']['task']})"
    data = found.get("data", {})
    if changed := [kind for kind, digest in data.items() if wanted["data"].get(kind, digest) != digest]:
        return "changed", f"a run on other data ({', '.join(changed)} changed since)"
    if kinds := ", ".join(revised(found.get("meaning", {}), wanted["meaning"])):
        return "stale", f"this configuration by code of another revision ({kinds})"
    return "complete", ""


def _settings_that_differ(found: Any, wanted: Mapping[str, Any]) -> str:
    if not isinstance(found, Mapping):  # too long for a checkpoint's first line
        return ""
    names = [name for name in wanted if found.get(name) != wanted[name] and NOT_IN_HASH.get(name) is not True]
    told = [
        f"{name} differ"
        if isinstance(wanted[name], dict)
        else f"{name} is {shown(found.get(name))}, not {shown(wanted[name])}"
        for name in names[:3]
    ]
    return f" ({', '.join(told)}{', …' * (len(names) > 3)})" if told else ""


def meaning(config: Config) -> dict[str, int]:
    """Return the revisions on which a run's numbers depend: the package's, and those of every class it uses."""
    named = {kind: registries()[kind].get(getattr(config, kind)) for kind in GROUPS.values()}
    return {"package": MEANING, **{kind: getattr(entry, "revision", 1) for kind, entry in named.items()}}


def revised(then: Mapping[str, int], now: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the revisions that changed between two results of :func:`meaning`, as (then, now) by kind."""
    return {kind: (then.get(kind, 1), revision) for kind, revision in now.items() if then.get(kind, 1) != revision}


def data_of(
    config: Config, task: Task | None = None, weights: Mapping[str, torch.Tensor] | None = None
) -> dict[str, str]:
    """Return digests (16 hexadecimal digits), by kind, of the data that a run reads and its configuration only names.

    A configuration names a trace or a data set, and the content of the file decides the run, too. Kinds are the groups
    of settings that read existing files, the user's own ``task``, and ``weights`` to start from.
    """
    groups = [group for group in GROUPS if task is None or group != "task_settings"]
    found = {group: fingerprint(files) for group in groups if (files := getattr(config, group).files())}
    if task is not None:
        tensors = dict(zip(("inputs", "labels"), task.samples, strict=True))  # without other seeds' samples
        arrays = {name: getattr(task, name) for name in ("test_inputs", "test_labels", "owners", "kinds")}
        tensors |= {name: values for name, values in arrays.items() if values is not None}
        found[OWN] = digest_of(tensors, f"{type(task).__name__} {task.num_classes} {task.vocabulary}")
    if weights is not None:
        found[OWN_WEIGHTS] = digest_of(weights)
    return {kind: digest for kind, digest in found.items() if digest is not None}


def checksum(task: Task) -> int:
    """Return a number that changes if a task's samples are changed; much faster to compute than a digest."""
    parts = (*task.samples, task.test_inputs, task.test_labels, *(task.validation or ()))
    return reduce(lambda found, values: zlib.crc32(content_of(stored(values)), found), parts, 0)


LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "mlxtend", "torchvision", "av", "transformers", "tokenizers")
"""Libraries, besides torch, that may influence a run's numbers or data; some may not be installed."""
VARIABLES = (
    *("MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "NVIDIA_TF32_OVERRIDE"),
    *("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"),
)
"""Environment variables that change how torch's own libraries round."""


def versions() -> dict[str, str]:
    """Return the version of everything on which numbers depend: package, Python, CPU instructions, libraries.

    Torch's version includes its build. The rounding of its operations depends on the CPU instructions that it finds,
    and on the :data:`VARIABLES` that are set. A library that is not installed is left out.
    """
    machine = {"torch": str(torch.__version__), "instructions": torch.backends.cpu.get_cpu_capability()}
    machine |= {name: os.environ[name] for name in VARIABLES if name in os.environ}
    return {"asyncfl_lite": __version__, "python": platform.python_version(), **machine, **_libraries()}


@cache
def _libraries() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def changed_versions(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return, as text, in which of their :func:`versions` numbers may differ; empty if in none.

    The versions of this package, whose revisions count instead, and of Python are not compared, and neither are those
    of libraries that only one of the two names. If one of the two is empty, nothing is known, and nothing is compared.
    """
    optional = ("gpu", *VARIABLES)  # absent means none
    names = [name for name in {**then, **now} if then and now and (name in optional or (name in then and name in now))]
    pairs = {name: (then.get(name, "none"), now.get(name, "none")) for name in names}
    left_out = ("asyncfl_lite", "python")
    return ", ".join(f"{name} {a} and {b}" for name, (a, b) in pairs.items() if a != b and name not in left_out)


# Checkpoints

CHECKPOINT = "checkpoint.pt"
"""Name of the checkpoint that a run saves in its folder; who has claimed this path has the folder."""
CHECKPOINT_FORMAT = 12
HEAD = b"asyncfl_lite checkpoint "
"""First bytes of a checkpoint; its identity follows on the same line, as JSON."""
LONGEST_HEAD = 2**14


def previous(path: str | Path) -> Path:
    """Return the path of the previous checkpoint: ``run.previous.pt`` for ``run.pt``."""
    path = Path(path)
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def check_place(path: str | Path, identity: Identity) -> None:
    """Raise an error if the file at ``path`` or at its ``.previous`` path is not a checkpoint of this run."""
    for candidate in (Path(path), previous(path)):
        found = _identity_in(candidate)
        if found and (other := _other_run(found, identity)):
            raise ResultError(f"{candidate}: is the checkpoint of {other}; name another file, or remove it")


def _other_run(found: Identity, identity: Identity) -> str:
    if found.get("format") != CHECKPOINT_FORMAT:
        return f"a run of another format ({found.get('format')}, not {CHECKPOINT_FORMAT})"
    return what_differs(found, identity)[1]


def _identity_in(path: Path) -> Identity | None:
    """Return the identity of a checkpoint file; None if there is no file, and nothing if it is damaged there."""
    if path.is_dir():
        raise ResultError(f"{path}: is a folder; a checkpoint is a file, such as {path / 'run.pt'}")
    if not path.exists():
        return None
    try:
        if not path.is_file():  # reading from a pipe could wait for ever
            raise ValueError("no file")
        with path.open("rb") as file:
            line = file.readline(LONGEST_HEAD)
        if line[: len(HEAD)] != HEAD[: len(line)]:
            raise ValueError("no checkpoint")
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({reason(error)})") from None
    except ValueError:
        raise ResultError(
            f"{path}: is not a checkpoint that this version wrote; name another file, or remove it"
        ) from None
    try:
        found = json.loads(line.removeprefix(HEAD))
        return found if all(isinstance(found[part], dict) for part in ("data", "meaning")) else {}
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}


def save_checkpoint(path: str | Path, identity: Identity, state: Mapping[str, Any]) -> None:
    """Save a run's state to ``path`` completely or not at all; the earlier file becomes the previous checkpoint."""
    check_place(path, identity)
    head = {"format": CHECKPOINT_FORMAT, **identity}
    if len(json.dumps(head["config"])) > LONGEST_HEAD // 2:
        del head["config"]  # which only names the settings that differ

    def write(file: BinaryIO) -> None:
        hashed = _Hashed(file)
        try:
            hashed.write(HEAD + json.dumps(head).encode() + b"\n")
            torch.save(dict(state), cast(BinaryIO, hashed))  # torch needs only a file's ``write`` and ``flush``
        except RuntimeError as error:  # torch's own error when the disk is full
            raise hashed.failed or error from None
        file.write(hashed.sha256.digest())

    write_atomically(path, write, keep=previous(path))


class _Hashed:
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

    A warning names a file that is damaged, and says whether the run continues from the previous one or starts over.

    Raises:
        ResultError: when one of the two files is not this run's checkpoint.
    """
    check_place(path, identity)
    refused = []
    for candidate in (Path(path), previous(path)):
        if not candidate.exists():
            continue
        try:
            state = _read_state(candidate, device)
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


def _read_state(path: Path, device: str) -> dict[str, Any]:
    content = unsealed(path.read_bytes())
    begin = bytes(content[:LONGEST_HEAD]).index(b"\n") + 1
    try:
        return torch.load(io.BytesIO(content[begin:]), map_location=device, weights_only=True)
    except UnpicklingError:  # torch's message explains how to read the file anyway, which would execute its code
        raise ValueError("contains something that is neither a tensor nor a plain value") from None


def remove_checkpoints(path: str | Path, identity: Identity, *, others: bool = False) -> None:
    """Delete a run's current and previous checkpoint, or those of ``others`` there, with partial files.

    Files that are no checkpoints always stay.
    """
    for candidate in (Path(path), previous(path)):
        with suppress(ResultError):
            found = _identity_in(candidate)
            if bool(found and _other_run(found, identity)) == others:
                candidate.unlink(missing_ok=True)
                clear_parts(candidate)


# Records of results

FORMAT = 1
TABLES = {
    "curve": "version,time,",
    "updates": "client,dispatched_at,",
    "in_flight": "client,dispatched_at,",
    "clients": "client,num_samples,",
    "classes": "class,train_samples,",
}
"""Tables of a result -> how their files begin, by which foreign files of the same name are recognised. An empty file,
or one that is cut off within these bytes, holds nothing that could be lost, and is replaced."""
PARTS = dict.fromkeys(("meaning", "data", "versions"), (dict, "mapping")) | {"continued_under": (list, "list")}
"""Parts of a ``result.json`` that it need not have -> their type, and its name."""
_WORDS = TypeAdapter(Any, config=ConfigDict(ser_json_inf_nan="strings"))
NOT_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
"""Spelling in ``result.json`` of numbers that JSON cannot express."""


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the record in a run's ``result.json``, and the run's tables as text, exactly as written."""
    record, texts = read_record(folder / "result.json"), {}
    if not all(isinstance(record.get(part), dict) for part in ("config", "summary", "timing", "files")):
        raise ResultError(f"{folder / 'result.json'}: must have config, summary, timing and files; run the cell again")
    for name in TABLES:
        path = folder / f"{name}.csv"
        if path.name not in record["files"]:
            raise ResultError(f"{folder / 'result.json'}: has no digest of {path.name}; run the cell again")
        try:
            texts[name] = regular(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ResultError(f"{path}: cannot be read ({reason(error)}); run the cell again") from None
        if digest(texts[name]) != record["files"][path.name]:
            raise ResultError(f"{path}: cut off or changed since it was written; run the cell again")
    return record, texts


def read_record(path: str | Path) -> dict[str, Any]:
    """Read the content of a ``result.json``, which must be whole and of this format."""
    path = Path(path)
    try:
        record = json.loads(regular(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise ResultError(f"{path}: cut off or not JSON; run the cell again") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ResultError(f"{path}: not a result of format {FORMAT}; run the cell again")
    for part, (kind, words) in PARTS.items():
        if not isinstance(record.get(part, kind()), kind):
            raise ResultError(f"{path}: {part} must be a {words}; run the cell again")
    if record.get("digest") != _digest_of_record(record):
        raise ResultError(f"{path}: changed since it was written; run the cell again")
    return {**record, **{part: _with_numbers(record[part]) for part in ("summary", "timing") if part in record}}


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a ``result.json`` with a digest of itself, which :func:`read_record` checks."""
    record = as_json_has_it(record)
    record = {**record, "digest": _digest_of_record(record)}
    write_atomically(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def as_json_has_it(value: Any) -> Any:
    """Replace numbers that are not finite with words, since JSON cannot express them."""
    return json.loads(_WORDS.dump_json(value))


def _with_numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _with_numbers(held) for name, held in value.items()}
    return NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _digest_of_record(record: Mapping[str, Any]) -> str:
    return digest(json.dumps({name: value for name, value in record.items() if name != "digest"}, sort_keys=True))


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def check_writable(folder: str | Path) -> None:
    """Create ``folder`` and check, before hours of work, that results can be written into it."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ResultError(f"{folder}: cannot be written ({reason(error)})") from None


def check_free(folder: str | Path, identity: Identity, *, force: bool = False) -> None:
    """Check that the run's result can be written into ``folder``; ``force`` lets it replace another run's result."""
    folder = Path(folder)
    begins = {"result.json": '{\n "format": '}
    if not (folder / "result.json").exists():
        begins |= {f"{name}.csv": begin for name, begin in TABLES.items()}
    for name, begin in begins.items():
        path = folder / name
        content = path.read_bytes()[: len(begin)] if path.is_file() else b""
        if content != begin.encode()[: len(content)]:
            raise ResultError(f"{path}: was not written by asyncfl_lite; name another folder, or move it away")
    check_ours(folder / WEIGHTS)
    try:
        record, _ = read_folder(folder)
    except ResultError:  # there is no finished result
        return
    if not force and (other := _compared(record, identity)[1]):
        raise ResultError(
            f"{folder}: holds the finished result of {other}; name another folder, or replace it with --force or "
            "force=True"
        )


def standing(folder: str | Path, config: Config, task: Task | None = None) -> Standing:
    """Return the state of the result recorded in ``folder``, given ``config``, the data, and today's code."""
    try:
        record, _ = read_folder(Path(folder))
    except ResultError:
        return "missing"
    found, _ = _compared(
        record, identity_of(config.on_own_task(None if task is None else task.name), data_of(config, task))
    )
    return "changed" if record["summary"].get("stopped") else found


def _compared(record: Mapping[str, Any], wanted: Identity) -> tuple[Standing, str]:
    """Compare a record with a run's identity as :func:`what_differs` does, by the hash that its settings have today."""
    try:
        config = Config.from_mapping(record["config"])
    except ConfigError:
        return "changed", "a configuration of other code"
    return what_differs({**record, "config": config.as_dict(), "config_hash": config.hash}, wanted)
