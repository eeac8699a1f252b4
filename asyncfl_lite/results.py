"""What a run leaves behind: a summary and tidy tables, in memory and on disk.

A run's folder holds ``result.json`` (configuration, its hash, versions, summary) and the tables ``curve.csv``,
``updates.csv``, ``in_flight.csv`` and ``clients.csv``. Every file appears whole or not at all, ``result.json``
last and with the digests of the others, so a folder with a sound ``result.json`` is a finished run.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from asyncfl_lite.atomic import write_atomically
from asyncfl_lite.config import Config
from asyncfl_lite.errors import ResultError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

FORMAT = 1
TABLES = ("curve", "updates", "in_flight", "clients")


@dataclass
class Result:
    """A finished run.

    Attributes:
        config: what was run.
        summary: final accuracy and loss, virtual time, counts, staleness; the same on every repeat.
        curve: a row an evaluation: version, time (virtual), updates, accuracy, loss.
        updates: a row an arrival: client, dispatched_at, arrived_at, start_version, staleness,
            num_samples, train_loss, train_accuracy, accepted, version.
        in_flight: a row a job that had not arrived at the end: client, dispatched_at, start_version,
            called_off_at (empty unless its round ended without it).
        clients: a row a client: client, num_samples, category (of the delay law, empty where it has none).
        timing: seconds and processor seconds since it was last started; differ from repeat to repeat.
        x: ``(d,)`` final parameters, or None when it was loaded from disk.
        own_task: name of the user's own data, which the configuration knows nothing of; None for a named task.
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
        from asyncfl_lite.plots import plot_result

        return plot_result(self)

    def __repr__(self) -> str:
        c, s = self.config, self.summary
        return (
            f"Result({c.algorithm} on {self.own_task or c.task}, seed {c.seed}: accuracy {s['final_accuracy']:.4f} "
            f"at version {s['versions']}, virtual time {s['virtual_time']:.1f})"
        )


def load_result(folder: str | Path) -> Result:
    """Read what :meth:`Result.save` wrote.

    Raises:
        ResultError: when a file is missing, cut off, changed, or of another format.
    """
    folder = Path(folder)
    record = read_record(folder / "result.json")
    tables = {}
    for name in TABLES:
        path = folder / f"{name}.csv"
        try:
            text = path.read_text()
        except OSError as error:
            raise ResultError(f"{path}: cannot be read ({error.strerror})") from None
        if _digest(text) != record["files"][path.name]:
            raise ResultError(f"{path}: cut off or changed since it was written; run the cell again")
        tables[name] = pd.read_csv(path, keep_default_na=False, na_values=["nan", ""] if name != "clients" else [])
    return Result(
        Config(**record["config"]),
        record["summary"],
        **tables,
        timing=record["timing"],
        own_task=record.get("own_task"),
    )


def read_record(path: str | Path) -> dict[str, Any]:
    """Return the content of a ``result.json``.

    Raises:
        ResultError: when it is missing, cut off, or of another format.
    """
    path = Path(path)
    try:
        record = json.loads(path.read_text())
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise ResultError(f"{path}: cut off or no JSON; run the cell again") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ResultError(f"{path}: not a result of format {FORMAT}; run the cell again")
    return record


def load_complete(folder: str | Path, config: Config) -> Result | None:
    """Return the finished result of just this configuration in ``folder``, or None if it has to be run."""
    try:
        result = load_result(folder)
    except (ResultError, ValueError, KeyError):  # missing, damaged, or of a configuration that no longer exists
        return None
    return result if result.config.hash == config.hash and result.own_task is None else None


def versions() -> dict[str, str]:
    """Return the versions of this package, of Python and of the libraries that numbers depend on."""
    from asyncfl_lite import __version__

    libraries = {name: metadata.version(name) for name in ("torch", "torchvision", "numpy", "pandas")}
    return {"asyncfl_lite": __version__, "python": platform.python_version(), **libraries}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
