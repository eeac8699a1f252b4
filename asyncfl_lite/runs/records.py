"""The files in a result's folder: reading, writing, and checking that they belong to a given configuration.

A run's folder holds ``result.json`` (configuration, its hash, versions, summary), the tables ``curve.csv``,
``updates.csv``, ``in_flight.csv``, ``clients.csv`` and ``classes.csv``, and the final model in ``weights.safetensors``.
Every file appears whole or not at all. ``result.json`` is written last, with the digests of the others and of itself,
so a folder with a sound ``result.json`` holds a finished run. Another run's finished result is replaced only if the
user asks for it, and a file that this package did not write is never replaced.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from asyncfl_lite.base.errors import ConfigError, ResultError, reason
from asyncfl_lite.base.files import regular, write_atomically
from asyncfl_lite.models.weights import WEIGHTS, check_ours
from asyncfl_lite.runs.config import NOT_IN_HASH, Config
from asyncfl_lite.runs.meaning import meaning, revised
from asyncfl_lite.runs.sources import changed_data, data_of

if TYPE_CHECKING:
    from asyncfl_lite.tasks import Task

FORMAT = 1
CHECKPOINT = "checkpoint.pt"
"""Name of the checkpoint that a run saves in its folder; who has claimed this path has the folder."""
TABLES = ("curve", "updates", "in_flight", "clients", "classes")
NEWER = ("classes",)
"""Tables that results of earlier code do not have."""
BEGINS = {
    "result.json": '{\n "format": ',
    "curve.csv": "version,time,",
    "updates.csv": "client,dispatched_at,",
    "in_flight.csv": "client,dispatched_at,",
    "clients.csv": "client,num_samples,",
    "classes.csv": "class,train_samples,",
}
"""First bytes of a result's files, by which foreign files of the same name are recognised. An empty file, or one that
is cut off within these bytes, holds nothing that could be lost, and is replaced."""
NOT_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
"""Spelling in ``result.json`` of numbers that JSON cannot express."""

Standing = Literal["complete", "stale", "changed", "missing"]
"""State of a recorded result: ``complete`` if it belongs to exactly this configuration; ``stale`` if the code's
revision (:data:`.MEANING`) has changed since; ``changed`` if it belongs to another configuration or other data, or was
stopped by a callback; ``missing`` if it is absent or damaged."""


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the record in a run's ``result.json``, and the run's tables as text, exactly as written."""
    record, texts = read_record(folder / "result.json"), {}
    if not all(isinstance(record.get(part), dict) for part in ("config", "summary", "timing", "files")):
        raise ResultError(f"{folder / 'result.json'}: must have config, summary, timing and files; run the cell again")
    for name in TABLES:
        path = folder / f"{name}.csv"
        if path.name not in record["files"]:
            if name in NEWER:  # recorded before there was such a table
                continue
            raise ResultError(f"{folder / 'result.json'}: has no digest of {path.name}; run the cell again")
        try:
            texts[name] = regular(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ResultError(f"{path}: cannot be read ({reason(error)}); run the cell again") from None
        if digest(texts[name]) != record["files"][path.name]:
            raise ResultError(f"{path}: cut off or changed since it was written; run the cell again")
    return record, texts


def read_record(path: str | Path) -> dict[str, Any]:
    """Read the content of a ``result.json``.

    Raises:
        ResultError: when the file is missing, cut off, or of another format.
    """
    path = Path(path)
    try:
        record = json.loads(regular(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise ResultError(f"{path}: cut off or not JSON; run the cell again") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ResultError(f"{path}: not a result of format {FORMAT}; run the cell again")
    for part in ("meaning", "data", "versions"):
        if not isinstance(record.get(part, {}), dict):
            raise ResultError(f"{path}: {part} must be a mapping; run the cell again")
    under = record.get("continued_under", [])
    if not isinstance(under, list) or not all(isinstance(one, dict) for one in under):
        raise ResultError(f"{path}: continued_under must be a list of mappings; run the cell again")
    if record.get("digest") != _digest_of_record(record):
        raise ResultError(f"{path}: changed since it was written; run the cell again")
    return {**record, **{part: _with_numbers(record[part]) for part in ("summary", "timing") if part in record}}


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a ``result.json`` with a digest of itself, which :func:`read_record` checks."""
    record = _as_json_has_it(record)
    record = {**record, "digest": _digest_of_record(record)}
    write_atomically(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def _as_json_has_it(value: Any) -> Any:
    """Replace numbers that are not finite with words, since JSON cannot express them."""
    if isinstance(value, Mapping):
        return {name: _as_json_has_it(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json_has_it(held) for held in value]
    if isinstance(value, float) and not math.isfinite(value):
        return next(word for word, number in NOT_FINITE.items() if value == number or number != number)
    return value


def _with_numbers(value: Any) -> Any:
    """Turn the words for infinities and NaN back into numbers; the inverse of :func:`_as_json_has_it`."""
    if isinstance(value, Mapping):
        return {name: _with_numbers(held) for name, held in value.items()}
    return NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _digest_of_record(record: Mapping[str, Any]) -> str:
    """Return the digest of a record without its entry ``digest``; the file's layout does not affect it."""
    return digest(json.dumps({name: value for name, value in record.items() if name != "digest"}, sort_keys=True))


def check_writable(folder: str | Path) -> None:
    """Create ``folder`` and check, before hours of work, that results can be written into it.

    Raises:
        ResultError: if they cannot; the message gives the reason.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ResultError(f"{folder}: cannot be written ({reason(error)})") from None


def check_free(
    folder: str | Path,
    config: Config,
    own_task: str | None = None,
    data: Mapping[str, str] | None = None,
    then: Mapping[str, int] | None = None,
    *,
    force: bool = False,
) -> None:
    """Check that a result can be written into ``folder`` without overwriting anything else.

    Args:
        folder: the folder, which need not exist.
        config, own_task, data, then: the result's configuration, own task, data and meaning; by default those of a
            run of ``config`` now.
        force: whether another run's finished result may be replaced.

    Raises:
        ResultError: if something would be overwritten; the message names it.
    """
    folder = Path(folder)
    begins = BEGINS if not (folder / "result.json").exists() else {"result.json": BEGINS["result.json"]}
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
    data, then = data_of(config) if data is None else data, meaning(config) if then is None else then
    if not force and (other := _other_run(record, config, own_task, data) or _other_meaning(record, then)):
        raise ResultError(
            f"{folder}: holds the finished result of {other}; name another folder, or replace it with --force or "
            "force=True"
        )


def _other_run(record: Mapping[str, Any], config: Config, own_task: str | None, data: Mapping[str, str]) -> str:
    """Return, as text, which other run a record belongs to; empty if it belongs to this run."""
    try:
        recorded = Config.from_mapping(record["config"])
    except ConfigError:
        return "a configuration of other code"
    if recorded.hash != config.hash:
        left, right = recorded.as_dict(), config.as_dict()
        names = [name for name in left if left[name] != right[name] and name not in NOT_IN_HASH]
        return f"another configuration (in {', '.join(names[:4])}{' …' * (len(names) > 4)})"
    if record.get("own_task") != own_task:
        return f"a run on other data ({record.get('own_task') or recorded.task})"
    changed = changed_data(record.get("data", {}), data)
    return f"a run on other data ({', '.join(changed)} changed since)" if changed else ""


def _other_meaning(record: Mapping[str, Any], now: Mapping[str, int]) -> str:
    kinds = ", ".join(revised(record.get("meaning", {}), now))
    return f"this configuration by code of another revision ({kinds})" if kinds else ""


def standing(folder: str | Path, config: Config, task: Task | None = None) -> Standing:
    """Return the state of the result recorded in ``folder``, given ``config``, the data, and today's code."""
    try:
        record, _ = read_folder(Path(folder))
    except ResultError:
        return "missing"
    own_task = None if task is None else task.name
    if _other_run(record, config, own_task, data_of(config, task)) or record["summary"].get("stopped"):
        return "changed"
    return "stale" if revised(record.get("meaning", {}), meaning(config)) else "complete"


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
