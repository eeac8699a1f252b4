"""Results of runs: a summary and tidy tables, in memory and on disk.

A run's folder holds ``result.json`` (configuration, its hash, versions, summary) and the tables ``curve.csv``,
``updates.csv``, ``in_flight.csv``, ``clients.csv`` and ``classes.csv``, and in ``weights.safetensors`` the final model.
Every file appears whole or not at all, ``result.json`` last and with the digests of the others and of itself, so a
folder with a sound ``result.json`` is a finished run. Another run's finished result is replaced only if that is asked
for, and a file of other origin never.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import torch

from asyncfl_lite.base.errors import ConfigError, ResultError, reason
from asyncfl_lite.base.files import as_path, write_atomically
from asyncfl_lite.base.version import __version__
from asyncfl_lite.models.weights import WEIGHTS, check_ours
from asyncfl_lite.runs.config import NOT_IN_HASH, Config
from asyncfl_lite.runs.groups import GROUPS
from asyncfl_lite.runs.sources import changed_data, data_of
from asyncfl_lite.runs.summary import CLASSES, is_constant_answer
from asyncfl_lite.runs.trained import Trained, saved

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor, nn

    from asyncfl_lite.tasks import Task

FORMAT = 1
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
"""First bytes of a result's files, by which foreign files of the same name are recognised."""
LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "mlxtend", "torchvision", "av", "transformers", "tokenizers")
"""Libraries, besides torch, that may influence a run's numbers or data; some may not be installed."""
MEANING = 1
"""Revision of the package's numbers as a whole, whatever the method or the task.

Raise it by one when the same configuration now gives other numbers on purpose and old ones must not stand beside new
ones: the clock, local training, a metric or a summary's number was corrected. Where only one method, task, model, delay
law, partition, selection or initialisation is concerned, raise its class's ``revision`` (1 where it has none) and leave
this. Leave both for changes of speed, rounding or wording, and for new settings, which the configuration's hash covers.
"""

NOT_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
"""Spelling in ``result.json`` of numbers that JSON cannot express."""

Standing = Literal["complete", "stale", "changed", "missing"]
"""State of a recorded result: complete for exactly this configuration; outdated, as its meaning has changed since
(:data:`MEANING`); of another configuration or other data, or stopped by a callback; absent or damaged."""


@dataclass
class Result:
    """A finished run: its configuration, summary, tables and trained model.

    Attributes:
        config: what was run.
        summary: final accuracy and loss, virtual time, counts, staleness; the same on every repeat on one machine, and
            elsewhere as :func:`asyncfl_lite.runs.run.run` says.
        curve: one row per evaluation: version, time (virtual), updates, accuracy, loss.
        updates: one row per arrival: client, dispatched_at, arrived_at, start_version, staleness,
            num_samples, train_loss, train_accuracy, accepted, version, refused (why it was, empty if it was not),
            trouble (what had struck it).
        in_flight: one row per job that never arrived: client, dispatched_at, start_version, called_off_at (empty if it
            was still in flight at the end), why (called off, dropped out, left, given up).
        clients: one row per client: client, num_samples, category (of the delay law, empty where it has none).
        timing: seconds and processor seconds since it was last started; differ from repeat to repeat.
        x: ``(d,)`` final parameters, or None when it was loaded from disk.
        own_task: name of the user's own data, which the configuration knows nothing of; None for a named task.
        meaning: revisions of the code that it was run with; see :func:`meaning`.
        data: digests of what it read that is not in the configuration; see :func:`.data_of`.
        classes: one row per class: class, train_samples, seen (samples of it in all accepted updates, a sample as often
            as its client reported), test_samples, accuracy of the final model on them, predicted (test samples of any
            class that it takes for this one); empty where a sample has more than one label.
        trained: the trained model, for :meth:`model`; None where it was not saved.
        versions: of the package, Python, torch and the :data:`LIBRARIES` that were installed when the run began; see
            :func:`versions`.

    >>> from asyncfl_lite import Config, run
    >>> result = run(Config(task="digits", algorithm="fedbuff", buffer_size=5, rounds=4, eval_every=2))
    >>> result.summary["client_updates"], result.curve["version"].tolist()
    (20, [0, 2, 4])
    >>> list(result.updates.columns[:5])
    ['client', 'dispatched_at', 'arrived_at', 'start_version', 'staleness']
    """

    config: Config
    summary: dict[str, Any]
    curve: pd.DataFrame
    updates: pd.DataFrame
    in_flight: pd.DataFrame
    clients: pd.DataFrame
    timing: dict[str, float] = field(default_factory=dict)
    x: Tensor | None = None
    own_task: str | None = None
    meaning: dict[str, int] | None = None
    data: dict[str, str] = field(default_factory=dict)
    classes: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=CLASSES))
    trained: Trained | None = field(default=None, repr=False)
    versions: dict[str, str] = field(default_factory=lambda: versions())

    def __post_init__(self) -> None:
        if self.meaning is None:
            self.meaning = meaning(self.config)

    @property
    def time_unit(self) -> str:
        """Unit of virtual time, as the delay law states it."""
        return self.config.delay_law.unit

    @property
    def is_constant_answer(self) -> bool:
        """Whether the final model predicts one class for every sample, see :func:`.is_constant_answer`."""
        return is_constant_answer(self.summary)

    @property
    def stopped(self) -> str | None:
        """Why a callback stopped the run before its end, or None; see :class:`.StopRun`."""
        return self.summary.get("stopped")

    @property
    def outdated(self) -> dict[str, tuple[int, int]]:
        """Revisions that changed since the run: kind -> revision then and now; empty if none did."""
        return revised(self.meaning or {}, meaning(self.config))

    def model(self) -> nn.Module:
        """Return the trained module, a new copy each time, in evaluation mode on the CPU.

        Raises:
            ResultError: when the result was saved without weights.
            DataError: when the file of weights is gone, or was changed since.

        Example: what the final model takes the first test images for.

        >>> from asyncfl_lite import Config, run
        >>> from asyncfl_lite.runs.assembly import load_task
        >>> result = run(Config(task="digits", rounds=2))
        >>> images = load_task(result.config.task_settings).test_inputs[:5]
        >>> result.model()(images).argmax(1).shape
        torch.Size([5])
        """
        if self.trained is None:
            raise ResultError("model: the result was saved without weights; run it again, then save it with weights")
        return self.trained.make()

    def save(self, folder: str | Path, *, force: bool = False, weights: bool = True) -> Path:
        """Write the result into ``folder`` and return the folder.

        Args:
            folder: is made. What it holds of the same run is replaced.
            force: replace another run's finished result too.
            weights: keep the trained model too, in ``weights.safetensors``.

        Raises:
            ResultError: when the folder holds another run's finished result, or a file of the same name that is no
                result's; when it cannot be written. No half of a file is left.
            ConfigError: when ``folder`` is no path.
        """
        folder = as_path(folder, "folder")
        check_free(folder, self.config, self.own_task, self.data, self.meaning, force=force)
        contents = {f"{name}.csv": getattr(self, name).to_csv(index=False) for name in TABLES}
        record = {
            "format": FORMAT,
            "status": "complete",
            "config": self.config.as_dict(),
            "config_hash": self.config.hash,
            "own_task": self.own_task,
            "data": self.data,
            "meaning": self.meaning,
            "summary": self.summary,
            "timing": self.timing,
            "versions": self.versions,
            "files": {name: _digest(text) for name, text in contents.items()},
        }
        for name, text in contents.items():
            write_atomically(folder / name, text)
        if weights and self.trained is not None:
            record["weights"] = self.trained.save(folder)
        write_record(folder / "result.json", record)
        return folder

    def plot(self) -> Figure:
        """Draw accuracy over virtual time, and the staleness of updates."""
        from asyncfl_lite.plots import plot_run  # here, as drawing takes longer to import than most runs need

        return plot_run(self.config.algorithm, self.config.task, self.curve, self.updates, self.time_unit)

    def __repr__(self) -> str:
        c, s = self.config, self.summary
        accuracy = f"{s['final_accuracy']:.4f}{' (constant answer)' * self.is_constant_answer}"
        return (
            f"Result({c.algorithm} on {self.own_task or c.task}, seed {c.seed}: accuracy {accuracy} "
            f"at version {s['versions']}, virtual time {s['virtual_time']:.1f}"
            f"{f', stopped: {self.stopped}' if self.stopped else ''})"
        )


def load_result(folder: str | Path) -> Result:
    """Read a result that :meth:`Result.save` wrote.

    Raises:
        ResultError: when a file is missing, cut off, changed, or of another format.

    >>> import tempfile
    >>> from asyncfl_lite import Config, load_result, run
    >>> folder = run(Config(task="digits", rounds=2)).save(tempfile.mkdtemp() + "/mine")
    >>> load_result(folder).summary["versions"]
    2
    """
    record, texts = _read(as_path(folder, "folder"))
    try:
        config = Config.from_mapping(record["config"])
    except ConfigError as error:
        place = Path(folder) / "result.json"
        needed = "its configuration needs other code; a module of your own must be imported first"
        raise ResultError(f"{place}: {needed} ({error})") from None
    tables: dict[str, Any] = {
        name: pd.read_csv(StringIO(text), keep_default_na=False, na_values=["nan", ""] if name != "clients" else [])
        for name, text in texts.items()
    }
    return Result(
        config.on_own_task(record.get("own_task")),
        record["summary"],
        **tables,
        timing=record["timing"],
        own_task=record.get("own_task"),
        meaning=record.get("meaning", {}),  # recorded before there were revisions: all were 1
        data=record.get("data", {}),
        trained=saved(config.model_spec, Path(folder), record.get("weights")),
        versions=record.get("versions", {}),
    )


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a run's record and its tables as text, exactly as written."""
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
            texts[name] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ResultError(f"{path}: cannot be read ({reason(error)}); run the cell again") from None
        if _digest(texts[name]) != record["files"][path.name]:
            raise ResultError(f"{path}: cut off or changed since it was written; run the cell again")
    return record, texts


def read_record(path: str | Path) -> dict[str, Any]:
    """Read the content of a ``result.json``.

    Raises:
        ResultError: when it is missing, cut off, or of another format.
    """
    path = Path(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise ResultError(f"{path}: cut off or no JSON; run the cell again") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ResultError(f"{path}: not a result of format {FORMAT}; run the cell again")
    for part in ("meaning", "data", "versions"):
        if not isinstance(record.get(part, {}), dict):
            raise ResultError(f"{path}: {part} must be a mapping; run the cell again")
    if record.get("digest") != _digest_of_record(record):
        raise ResultError(f"{path}: changed since it was written; run the cell again")
    return {**record, **{part: _with_numbers(record[part]) for part in ("summary", "timing") if part in record}}


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a ``result.json`` with a digest of itself, which :func:`read_record` checks."""
    record = _as_json_has_it(record)
    record = {**record, "digest": _digest_of_record(record)}
    write_atomically(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def _as_json_has_it(value: Any) -> Any:
    """Replace numbers that are not finite by words, since JSON cannot express them."""
    if isinstance(value, Mapping):
        return {name: _as_json_has_it(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json_has_it(held) for held in value]
    if isinstance(value, float) and not math.isfinite(value):
        return next(word for word, number in NOT_FINITE.items() if value == number or number != number)
    return value


def _with_numbers(value: Any) -> Any:
    """Undo :func:`_as_json_has_it`."""
    if isinstance(value, Mapping):
        return {name: _with_numbers(held) for name, held in value.items()}
    return NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _digest_of_record(record: Mapping[str, Any]) -> str:
    """Return the digest of a record without its digest, independent of the file's layout."""
    return _digest(json.dumps({name: value for name, value in record.items() if name != "digest"}, sort_keys=True))


def check_writable(folder: str | Path) -> None:
    """Check, before hours of work, that results can be written into ``folder``; it is created.

    Raises:
        ResultError: naming what is in the way.
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
        folder: need not be there.
        config, own_task, data, then: the result's configuration, own task, data and meaning; by default those of a
            run of ``config`` now.
        force: whether another run's finished result may be replaced.

    Raises:
        ResultError: naming what would be lost.
    """
    folder = Path(folder)
    begins = BEGINS if not (folder / "result.json").exists() else {"result.json": BEGINS["result.json"]}
    for name, begin in begins.items():
        path = folder / name
        if path.is_file() and path.read_bytes()[: len(begin)] != begin.encode():
            raise ResultError(f"{path}: was not written by asyncfl_lite; name another folder, or move it away")
    check_ours(folder / WEIGHTS)
    try:
        record, _ = _read(folder)
    except ResultError:  # nothing that is finished
        return
    data, then = data_of(config) if data is None else data, meaning(config) if then is None else then
    if not force and (other := _other_run(record, config, own_task, data) or _other_meaning(record, then)):
        raise ResultError(
            f"{folder}: holds the finished result of {other}; name another folder, or replace it with --force or "
            "force=True"
        )


def _other_run(record: Mapping[str, Any], config: Config, own_task: str | None, data: Mapping[str, str]) -> str:
    """Describe the other run that a record belongs to; empty if it belongs to this run."""
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


def load_complete(folder: str | Path, config: Config, task: Task | None = None) -> Result | None:
    """Load the finished result in ``folder`` if it has exactly this configuration and data; else return None."""
    return load_result(folder) if standing(folder, config, task) == "complete" else None


def standing(folder: str | Path, config: Config, task: Task | None = None) -> Standing:
    """Return the state of the result recorded in ``folder``, given ``config``, the data, and today's code."""
    try:
        record, _ = _read(Path(folder))
    except ResultError:
        return "missing"
    own_task = None if task is None else task.name
    if _other_run(record, config, own_task, data_of(config, task)) or record["summary"].get("stopped"):
        return "changed"
    return "stale" if revised(record.get("meaning", {}), meaning(config)) else "complete"


def revised(then: Mapping[str, int], now: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the differences between two results of :func:`meaning` for one configuration, as (then, now)."""
    return {kind: (then.get(kind, 1), revision) for kind, revision in now.items() if then.get(kind, 1) != revision}


def meaning(config: Config) -> dict[str, int]:
    """Return the revisions on which a run's numbers depend: the package's, and those of every class it uses."""
    named = {kind: registry.get(getattr(config, kind)) for kind, registry in GROUPS.values()}
    return {"package": MEANING, **{kind: getattr(entry, "revision", 1) for kind, entry in named.items()}}


def versions() -> dict[str, str]:
    """Return name -> version of everything that numbers depend on: package, Python, CPU instructions, libraries.

    Torch's is the full one, with its build; its operations round by the instructions that it finds. A library that is
    not installed is left out.
    """
    machine = {"torch": str(torch.__version__), "instructions": torch.backends.cpu.get_cpu_capability()}
    return {"asyncfl_lite": __version__, "python": platform.python_version(), **machine, **_libraries()}


@cache
def _libraries() -> dict[str, str]:
    """Return the versions of all installed :data:`LIBRARIES`."""
    found = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
