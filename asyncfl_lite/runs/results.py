"""Results of runs: a summary, tidy tables and the trained model, in memory and on disk."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch

from asyncfl_lite.base.claims import alone_at
from asyncfl_lite.base.devices import AUTO, actual
from asyncfl_lite.base.errors import ConfigError, ResultError
from asyncfl_lite.base.files import as_path, write_atomically
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.meaning import changed_versions, meaning, revised, versions
from asyncfl_lite.runs.records import (
    CHECKPOINT,
    FORMAT,
    TABLES,
    check_free,
    digest,
    read_folder,
    standing,
    write_record,
)
from asyncfl_lite.runs.summary import CLASSES, is_constant_answer
from asyncfl_lite.runs.trained import Trained, saved

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor, nn

    from asyncfl_lite.tasks import Task


@dataclass
class Result:
    """A finished run: its configuration, summary, tables and trained model.

    Attributes:
        config: the configuration that was run.
        summary: final accuracy and loss, virtual time, counts, staleness. It is the same whenever the run is repeated
            on one machine; for other machines, see :func:`asyncfl_lite.runs.run.run`.
        curve: one row per evaluation: version, time (virtual), updates, accuracy, loss.
        updates: one row per arrival: client, dispatched_at, arrived_at, start_version, staleness,
            num_samples, train_loss, train_accuracy, accepted, version, refused (the reason, empty if it was accepted),
            trouble (the kinds of trouble that affected the job).
        in_flight: one row per job that never arrived: client, dispatched_at, start_version, called_off_at (empty if it
            was still in flight at the end), why (called off, dropped out, left, given up).
        clients: one row per client: client, num_samples, category (of the delay law, empty if it has none).
        timing: wall-clock and processor seconds since the run was last started; they differ from repeat to repeat.
        x: ``(d,)`` final parameters, or None when the result was loaded from disk.
        own_task: name of the user's own data, which the configuration does not contain; None for a named task.
        meaning: revisions of the code with which it was run; see :func:`.meaning.meaning`.
        data: digests of the data that the run read but the configuration does not contain; see :func:`.data_of`.
        classes: one row per class: class, train_samples, seen (its samples in all accepted updates; a sample counts
            once for every accepted update of its client), test_samples, accuracy (of the final model on these),
            predicted (number of test samples, of any class, for which the model predicts this class); empty if a sample
            has more than one label.
        trained: the trained model, for :meth:`model`; None if it was not saved.
        versions: versions of the package, Python, torch and the :data:`.LIBRARIES` that were installed when the run
            began; see :func:`.versions`.
        continued_under: the versions under which the run was continued, if others were installed then, in order.

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
    continued_under: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.meaning is None:
            self.meaning = meaning(self.config)

    @property
    def time_unit(self) -> str:
        """Unit of virtual time, as the delay law states it."""
        return self.config.delay_settings.unit

    @property
    def is_constant_answer(self) -> bool:
        """Whether the final model predicts one class for every test sample; see :func:`.is_constant_answer`."""
        return is_constant_answer(self.summary)

    @property
    def stopped(self) -> str | None:
        """Message of the callback that stopped the run early (see :class:`.StopRun`); None if none did."""
        return self.summary.get("stopped")

    @property
    def outdated(self) -> dict[str, tuple[int, int]]:
        """Revisions of the code that changed since the run, as (then, now) by kind; empty if none changed."""
        return revised(self.meaning or {}, meaning(self.config))

    def model(self) -> nn.Module:
        """Return the trained module, a new copy each time, in evaluation mode on the CPU.

        Raises:
            ResultError: when the result was saved without weights.
            DataError: when the weights' file is missing, or has been changed since.

        Example: the final model's predictions for the first test images.

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
            folder: the result's folder, which is made if it is missing. Files of the same run in it are replaced.
            force: replace another run's finished result, too.
            weights: save the trained model, too, in ``weights.safetensors``.

        Raises:
            ResultError: when the folder holds another run's finished result or a file of the same name that this
                package did not write, when a run goes on in it, or when the result cannot be written. No partial file
                is left.
            ConfigError: when ``folder`` is not a path.
        """
        folder = as_path(folder, "folder")
        with nullcontext() if folder.is_file() else alone_at(folder.resolve() / CHECKPOINT):
            self.write(folder, force=force, weights=weights)
        return folder

    def write(self, folder: Path, *, force: bool, weights: bool) -> None:
        """Write the result as :meth:`save` does, into a folder that the caller has for itself."""
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
            **({"continued_under": self.continued_under} if self.continued_under else {}),
            "files": {name: digest(text) for name, text in contents.items()},
        }
        for name, text in contents.items():
            write_atomically(folder / name, text)
        if weights and self.trained is not None:
            record["weights"] = self.trained.save(folder)
        write_record(folder / "result.json", record)

    def plot(self) -> Figure:
        """Draw accuracy over virtual time, and the staleness of updates."""
        from asyncfl_lite.plots import plot_run  # not at the top, since importing the drawing libraries takes long

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
    record, texts = read_folder(as_path(folder, "folder"))
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
        meaning=record.get("meaning", {}),  # missing if recorded before there were revisions, when all were 1
        data=record.get("data", {}),
        trained=saved(config.model_settings, Path(folder), record.get("weights")),
        versions=record.get("versions", {}),
        continued_under=record.get("continued_under", []),
    )


def load_complete(folder: str | Path, config: Config, task: Task | None = None) -> Result | None:
    """Load the finished result in ``folder`` if it has exactly this configuration and data; else return None.

    A warning says if it was computed on another kind of device than the one that ``config`` names.
    """
    if standing(folder, config, task) != "complete":
        return None
    result = load_result(folder)
    asked, used = (torch.device(actual(one.device)).type for one in (config, result.config))
    if config.device != AUTO and asked != used:
        warnings.warn(f"{folder}: the finished result was computed on {used}, not on {asked}", stacklevel=2)
    return result


def mixed_versions(results: Iterable[Result]) -> str:
    """Return, as text, in which versions of libraries results differ, or parts of one result; empty if in none."""
    under = [one for result in results for one in (result.versions, *result.continued_under)]
    return "; ".join(dict.fromkeys(told for one in under[1:] if (told := changed_versions(under[0], one))))
