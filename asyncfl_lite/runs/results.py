"""What a run leaves behind: a summary and tidy tables, in memory and on disk.

A run's folder holds ``result.json`` (configuration, its hash, versions, summary) and the tables ``curve.csv``,
``updates.csv``, ``in_flight.csv``, ``clients.csv`` and ``classes.csv``. Every file appears whole or not at all,
``result.json`` last and with the digests of the others, so a folder with a sound ``result.json`` is a finished run.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import dataclass, field
from importlib import metadata
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from asyncfl_lite.base.errors import ConfigError, ResultError, reason
from asyncfl_lite.base.files import write_atomically
from asyncfl_lite.base.version import __version__
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.groups import GROUPS
from asyncfl_lite.runs.summary import CLASSES, is_constant_answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

FORMAT = 1
TABLES = ("curve", "updates", "in_flight", "clients", "classes")
NEWER = ("classes",)
"""Tables that results of earlier code lack."""
MEANING = 1
"""Revision of what the package's numbers mean, whatever the method or the task.

Raise it by one when the same configuration now gives other numbers on purpose and old ones must not stand beside new
ones: the clock, local training, a metric or a summary's number was corrected. Where only one method, task, model, delay
law, partition, selection or initialisation is concerned, raise its class's ``revision`` (1 where it has none) and leave
this. Leave both for changes of speed, rounding or wording, and for new settings, which the configuration's hash covers.
"""

Standing = Literal["complete", "stale", "changed", "missing"]
"""Of what is recorded: a finished result of just this configuration; one whose meaning has changed since
(:data:`MEANING`); one of another configuration; none, or a damaged one."""


@dataclass
class Result:
    """A finished run.

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
        classes: one row per class: class, train_samples, seen (samples of it in all accepted updates, a sample as often
            as its client reported), test_samples, accuracy of the final model on them, predicted (test samples of any
            class that it takes for this one); empty where a sample has more than one label.
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
    classes: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=CLASSES))

    def __post_init__(self) -> None:
        if self.meaning is None:
            self.meaning = meaning(self.config)

    @property
    def time_unit(self) -> str:
        """What a unit of virtual time means, as the delay law says."""
        return self.config.delay_settings.unit

    @property
    def is_constant_answer(self) -> bool:
        """Whether the final model answers one class for everything, see :func:`.is_constant_answer`."""
        return is_constant_answer(self.summary)

    @property
    def outdated(self) -> dict[str, tuple[int, int]]:
        """What has changed in meaning since it was run: kind -> revision then and now; empty if nothing has."""
        return revised(self.meaning, self.config)

    def save(self, folder: str | Path) -> Path:
        """Write the result into ``folder`` and return that.

        Raises:
            ResultError: when it cannot be written; no half of a file is left.
        """
        folder = Path(folder)
        contents = {f"{name}.csv": getattr(self, name).to_csv(index=False) for name in TABLES}
        record = {
            "format": FORMAT,
            "status": "complete",
            "config": self.config.as_dict(),
            "config_hash": self.config.hash,
            "own_task": self.own_task,
            "meaning": self.meaning,
            "summary": self.summary,
            "timing": self.timing,
            "versions": versions(),
            "files": {name: _digest(text) for name, text in contents.items()},
        }
        for name, text in contents.items():
            write_atomically(folder / name, text)
        write_atomically(folder / "result.json", json.dumps(record, indent=1) + "\n")
        return folder

    def plot(self) -> Figure:
        """Draw accuracy over virtual time, and the staleness of what arrived."""
        from asyncfl_lite.plots import plot_run  # here, as drawing takes longer to import than most runs need

        return plot_run(self.config.algorithm, self.config.task, self.curve, self.updates, self.time_unit)

    def __repr__(self) -> str:
        c, s = self.config, self.summary
        accuracy = f"{s['final_accuracy']:.4f}{' (constant answer)' * self.is_constant_answer}"
        return (
            f"Result({c.algorithm} on {self.own_task or c.task}, seed {c.seed}: accuracy {accuracy} "
            f"at version {s['versions']}, virtual time {s['virtual_time']:.1f})"
        )


def load_result(folder: str | Path) -> Result:
    """Read what :meth:`Result.save` wrote.

    Raises:
        ResultError: when a file is missing, cut off, changed, or of another format.
    """
    record, texts = _read(Path(folder))
    try:
        config = Config.from_mapping(record["config"])
    except ConfigError as error:
        raise ResultError(f"{Path(folder) / 'result.json'}: its configuration is of other code ({error})") from None
    return Result(
        config,
        record["summary"],
        **{
            name: pd.read_csv(StringIO(text), keep_default_na=False, na_values=["nan", ""] if name != "clients" else [])
            for name, text in texts.items()
        },
        timing=record["timing"],
        own_task=record.get("own_task"),
        meaning=record.get("meaning", {}),  # recorded before there were revisions: all were 1
    )


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a run's record, and its tables' texts, which are as they were written."""
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
    """Return the content of a ``result.json``.

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
    if not isinstance(record.get("meaning", {}), dict):
        raise ResultError(f"{path}: meaning must be a mapping; run the cell again")
    return record


def check_writable(folder: str | Path) -> None:
    """Find out before hours of work whether results can be written into ``folder``, which is made.

    Raises:
        ResultError: naming what is in the way.
    """
    probe = Path(folder) / f".probe.{os.getpid()}"
    write_atomically(probe, "")
    probe.unlink()


def load_complete(folder: str | Path, config: Config) -> Result | None:
    """Return the finished result of just this configuration in ``folder``, or None if it has to be run."""
    return load_result(folder) if standing(folder, config) == "complete" else None


def standing(folder: str | Path, config: Config) -> Standing:
    """Return how what is recorded in ``folder`` stands to ``config`` and to the code of today."""
    try:
        record, _ = _read(Path(folder))
    except ResultError:
        return "missing"
    try:
        recorded = Config.from_mapping(record["config"])
    except ConfigError:  # of settings that no longer exist
        return "changed"
    if recorded.hash != config.hash or record.get("own_task") is not None:
        return "changed"
    return "stale" if revised(record.get("meaning", {}), config) else "complete"


def revised(then: dict[str, int], config: Config) -> dict[str, tuple[int, int]]:
    """Return what has changed in meaning since ``then``, the :func:`meaning` of a run of ``config``: (then, now)."""
    return {kind: (then.get(kind, 1), now) for kind, now in meaning(config).items() if then.get(kind, 1) != now}


def meaning(config: Config) -> dict[str, int]:
    """Return the revisions that a run's numbers depend on: the package's, and that of every class it names."""
    named = {kind: registry.get(getattr(config, kind)) for kind, registry in GROUPS.values()}
    return {"package": MEANING, **{kind: getattr(entry, "revision", 1) for kind, entry in named.items()}}


def versions() -> dict[str, str]:
    """Return the versions of this package, of Python and of the libraries that numbers depend on."""
    libraries = {name: metadata.version(name) for name in ("torch", "torchvision", "numpy", "pandas")}
    return {"asyncfl_lite": __version__, "python": platform.python_version(), **libraries}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
