"""Results of runs: a summary, tidy tables and the trained model, in memory and on disk."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from asyncfl_lite.base.devices import AUTO, actual, usual_torch
from asyncfl_lite.base.errors import ConfigError, DataError, ResultError, shown
from asyncfl_lite.base.files import as_path, clear_parts, write_atomically
from asyncfl_lite.base.locks import alone_at
from asyncfl_lite.base.registry import on_copies
from asyncfl_lite.models.base import InputSpec, ModelSpec, initial_model
from asyncfl_lite.models.vectors import batch_sizes, copied
from asyncfl_lite.models.weights import WEIGHTS, fill, read_weights, write_weights
from asyncfl_lite.runs import store
from asyncfl_lite.runs.config import Config, as_config, flat
from asyncfl_lite.simulator.faults import DUPLICATE, LOST
from asyncfl_lite.simulator.jobs import Schedule
from asyncfl_lite.tasks import Task
from asyncfl_lite.tasks.partitions import by_client

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from asyncfl_lite.models.own_models import OwnModel

CLASSES = ["class", "train_samples", "seen", "test_samples", "accuracy", "predicted"]
"""Columns of the table of classes."""
IN_EACH_TABLE = ("algorithm", "task", "seed")
"""Settings that have a column in a table of results even if they are the same in all of them."""


@dataclass
class Trained:
    """A trained model: its settings and inputs, from which a module is built, and its weights.

    The weights are in ``module``, or in the folder of a result, where their file has a digest.
    """

    spec: ModelSpec
    inputs: InputSpec
    module: nn.Module | None = field(default=None, repr=False)
    folder: Path | None = None
    digest: str | None = None

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """The state dict, which is read from disk at each use if the model is in a folder."""
        if self.module is not None:
            return self.module.state_dict()
        if self.folder is None:
            raise DataError("weights: neither a module nor a folder holds them")
        return read_weights(self.folder / WEIGHTS, self.digest)

    @usual_torch()
    def make(self) -> nn.Module:
        """Return the module, a new copy each time, in evaluation mode on the CPU."""
        if self.module is not None:
            return copied(self.module)
        module = initial_model(self.spec, self.inputs, seed=0)
        fill(module, self.weights, str(self.folder))
        return module.eval()

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the weights into a folder; return the record that :meth:`saved` needs to find them again."""
        inputs = {"shape": list(self.inputs.shape), "num_classes": self.inputs.num_classes}
        digest = write_weights(folder / WEIGHTS, self.weights)
        return {"digest": digest, "inputs": {**inputs, "vocabulary": self.inputs.vocabulary}}

    @classmethod
    def saved(cls, spec: ModelSpec, folder: Path, record: Any) -> Trained | None:
        """Return the model saved in a folder, given the record that :meth:`save` returned; None if there is none."""
        if record is None:
            return None
        try:
            given = record["inputs"]
            inputs = InputSpec(tuple(given["shape"]), given["num_classes"], vocabulary=given["vocabulary"])
            return cls(spec, inputs, folder=folder, digest=str(record["digest"]))
        except (TypeError, LookupError):
            where = folder / "result.json"
            raise ResultError(f"{where}: weights must have a digest and inputs; run the cell again") from None


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
            faults (the kinds of faults that affected the job).
        in_flight: one row per job that never arrived: client, dispatched_at, start_version, called_off_at (empty if it
            was still in flight at the end), why (called off, dropped out, left, given up).
        clients: one row per client: client, num_samples, category (of the delay law, empty if it has none).
        timing: wall-clock and processor seconds since the run was last started; they differ from repeat to repeat.
        x: ``(d,)`` final parameters, or None when the result was loaded from disk.
        meaning: revisions of the code with which it was run; see :func:`.store.meaning`.
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
    meaning: dict[str, int] | None = None
    data: dict[str, str] = field(default_factory=dict)
    classes: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=CLASSES))
    trained: Trained | None = field(default=None, repr=False)
    versions: dict[str, str] = field(default_factory=lambda: store.versions())
    continued_under: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.meaning is None:
            self.meaning = store.meaning(self.config)

    @property
    def identity(self) -> store.Identity:
        """What makes the run this run, by which its folder is recognised; see :func:`.identity_of`."""
        return store.identity_of(self.config, self.data, self.meaning)

    @property
    def own_task(self) -> str | None:
        """Name of the user's own data, which the configuration does not contain; None for a named task."""
        return self.config.own_task

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
        return store.revised(self.meaning or {}, store.meaning(self.config))

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
        with nullcontext() if folder.is_file() else alone_at(folder.resolve() / store.CHECKPOINT):
            self.write(folder, force=force, weights=weights)
        return folder

    def write(self, folder: Path, *, force: bool, weights: bool) -> None:
        """Write the result as :meth:`save` does, into a folder that the caller has for itself."""
        store.check_free(folder, self.identity, force=force)
        contents = {f"{name}.csv": getattr(self, name).to_csv(index=False) for name in store.TABLES}
        record = {
            "format": store.FORMAT,
            "status": "complete",
            **self._about(),
            "files": {name: store.digest(text) for name, text in contents.items()},
        }
        for name in (*contents, WEIGHTS, "result.json"):
            clear_parts(folder / name)  # of an earlier try that was killed while it wrote them
        for name, text in contents.items():
            write_atomically(folder / name, text)
        if weights and self.trained is not None:
            record["weights"] = self.trained.save(folder)
        store.write_record(folder / "result.json", record)

    def _about(self) -> dict[str, Any]:
        return {
            **self.identity,
            "summary": self.summary,
            "timing": self.timing,
            "versions": self.versions,
            **({"continued_under": self.continued_under} if self.continued_under else {}),
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration, the summary and the rows of the curve as plain values for JSON.

        Numbers that are not finite are words, such as ``"nan"``, as in ``result.json``.
        """
        return store.as_json_has_it({**self._about(), "curve": self.curve.to_dict("records")})

    def plot(self) -> Figure:
        """Draw accuracy over virtual time, and the staleness of updates."""
        from asyncfl_lite.plots import plot_run  # not at the top, since importing the drawing libraries takes long

        return plot_run(self.config.algorithm, self.config.task, self.curve, self.updates, self.time_unit)

    def _repr_html_(self) -> str:
        """Return the summary as a table, which notebooks show."""
        rows = "".join(
            f"<tr><th>{name}</th><td>{escape(f'{value:.4g}' if isinstance(value, float) else str(value))}</td></tr>"
            for name, value in self.summary.items()
            if not name.endswith("_sha256")
        )
        return f"<table><caption>{escape(repr(self))}</caption><tbody>{rows}</tbody></table>"

    def __repr__(self) -> str:
        c, s = self.config, self.summary
        accuracy = f"{s['final_accuracy']:.4f}{' (constant answer)' * self.is_constant_answer}"
        return (
            f"Result({c.algorithm} on {self.own_task or c.task}, seed {c.seed}: accuracy {accuracy} "
            f"at version {s['versions']}, virtual time {s['virtual_time']:.1f}"
            f"{f', stopped: {self.stopped}' if self.stopped else ''})"
        )


def load_result(folder: str | Path, *, model: OwnModel | None = None) -> Result:
    """Read a result that :meth:`Result.save` wrote.

    Args:
        folder: the result's folder.
        model: your own module, or a function that returns one, if the run had one; :meth:`Result.model` returns it with
            the weights of the result.

    Raises:
        ResultError: when a file is missing, cut off, changed, or of another format.
        ConfigError: when ``model`` is no module, or the run's model is not your own.

    >>> import tempfile
    >>> from asyncfl_lite import Config, load_result, run
    >>> folder = run(Config(task="digits", rounds=2)).save(tempfile.mkdtemp() + "/mine")
    >>> load_result(folder).summary["versions"]
    2
    """
    record, texts = store.read_folder(as_path(folder, "folder"))
    try:
        config = Config.from_mapping(record["config"])
    except ConfigError as error:
        place = Path(folder) / "result.json"
        needed = "its configuration needs other code; a module of your own must be imported first"
        raise ResultError(f"{place}: {needed} ({error})") from None
    if model is not None and config.model != "given":
        raise ConfigError(f"model: the run in {folder} has the model {config.model!r}, which needs no module")
    spec = config.model_settings if model is None else as_config(config, model).model_settings
    tables: dict[str, Any] = {
        name: pd.read_csv(StringIO(text), keep_default_na=False, na_values=["nan", ""] if name != "clients" else [])
        for name, text in texts.items()
    }
    return Result(
        config.on_own_task(record.get("own_task")),
        record["summary"],
        **tables,
        timing=record["timing"],
        meaning=record.get("meaning", {}),
        data=record.get("data", {}),
        trained=Trained.saved(spec, Path(folder), record.get("weights")),
        versions=record.get("versions", {}),
        continued_under=record.get("continued_under", []),
    )


def load_complete(folder: str | Path, config: Config, task: Task | None = None) -> Result | None:
    """Load the finished result in ``folder`` if it has exactly this configuration and data; else return None.

    A warning says if it was computed on another kind of device than the one that ``config`` names.
    """
    if store.standing(folder, config, task) != "complete":
        return None
    result = load_result(folder)
    asked, used = (torch.device(actual(one.device)).type for one in (config, result.config))
    if config.device != AUTO and asked != used:
        warnings.warn(f"{folder}: the finished result was computed on {used}, not on {asked}", stacklevel=2)
    return result


def mixed_versions(results: Iterable[Result]) -> str:
    """Return, as text, in which versions of libraries results differ, or parts of one result; empty if in none."""
    under = [one for result in results for one in (result.versions, *result.continued_under)]
    return "; ".join(dict.fromkeys(told for one in under[1:] if (told := store.changed_versions(under[0], one))))


def summary_of(
    curve: pd.DataFrame, who: Schedule, classes: pd.DataFrame, ended: Mapping[str, Any], *, faulty: bool
) -> dict[str, Any]:
    """Return a run's summary: final scores, what ``ended`` says of its end, and counts of updates and their staleness.

    If clients fail, lost jobs, and late, cut-short, duplicated and damaged updates are counted, too.
    """
    scores, updates = curve.columns[list(curve.columns).index("accuracy") :], who.updates
    tested = who.clients["accuracy"].dropna() if "accuracy" in who.clients else who.clients[:0]
    return {
        **{f"final_{score}": float(curve[score].iloc[-1]) for score in scores},
        "last5_accuracy": float(curve["accuracy"].iloc[-5:].mean()),
        "best_accuracy": float(curve["accuracy"].max()),
        "client_updates": len(updates),
        "refused_updates": len(updates) - int(updates["accepted"].sum()),
        "mean_staleness": float(updates["staleness"].mean()) if len(updates) else 0.0,
        "max_staleness": int(updates["staleness"].max()) if len(updates) else 0,
        **ended,
        **class_summary(classes),
        **({"worst_client_accuracy": float(tested.min())} if len(tested) else {}),
        **(_fault_summary(who) if faulty else {}),
    }


def _fault_summary(who: Schedule) -> dict[str, int]:
    updates, lost = who.updates, who.in_flight["why"].value_counts()
    struck, again = updates["faults"].astype(str), updates["refused"] == DUPLICATE
    kinds = {"late": "crash", "partial": "partial", "damaged": "damage"}
    return {
        "dispatched_jobs": int((~again).sum() + len(who.in_flight)),
        "lost_jobs": int(sum(lost.get(why, 0) for why in LOST)),
        **{f"{why.replace(' ', '_')}_jobs": int(lost.get(why, 0)) for why in LOST},
        **{f"{name}_updates": int((struck.str.contains(kind) & ~again).sum()) for name, kind in kinds.items()},
        "duplicate_updates": int(again.sum()),
    }


def classes_of(
    task: Task, predict: Callable[[Tensor], Tensor], parts: Sequence[np.ndarray], updates: pd.DataFrame
) -> pd.DataFrame:
    """Return a run's table of classes (see :func:`class_table`), which is empty if samples have no class."""
    answers: list[Tensor] = []

    def noted(inputs: Tensor) -> Tensor:
        outputs = predict(inputs)
        answers.append(on_copies(task.class_logits)(outputs).argmax(-1))
        return outputs

    scored = task.evaluate_classes(noted)
    if scored is None:
        return pd.DataFrame(columns=CLASSES)
    predicted = np.bincount(torch.cat(answers).cpu().numpy(), minlength=task.num_classes)
    return class_table(task.labels.cpu().numpy(), parts, updates, *scored, predicted)


def class_table(
    labels: np.ndarray,
    parts: Sequence[np.ndarray],
    updates: pd.DataFrame,
    tested: np.ndarray,
    right: np.ndarray,
    predicted: np.ndarray,
) -> pd.DataFrame:
    """Return one row per class, with the columns :data:`CLASSES`.

    ``labels`` are those of all training samples, and ``parts`` each client's indices. ``tested``, ``right`` and
    ``predicted`` are ``(C,)`` numbers of test samples: of a class, of those answered correctly, and of all answers.
    """
    held = np.array([np.bincount(labels[part], minlength=len(tested)) for part in parts])
    reports = np.bincount(updates["client"][updates["accepted"]].astype(int), minlength=len(parts))
    accuracy = np.divide(right, tested, out=np.full(len(tested), math.nan), where=tested > 0)
    columns = (range(len(tested)), held.sum(0), reports @ held, tested, accuracy, predicted)
    return pd.DataFrame(dict(zip(CLASSES, columns, strict=True)))


def score_clients(
    clients: pd.DataFrame, task: Task, predict: Callable[[Tensor], Tensor], parts: Sequence[np.ndarray]
) -> pd.DataFrame:
    """Add each client's name and its accuracy on its own samples to the table of the clients with which a task came."""

    def hits(inputs: Tensor, labels: Tensor) -> np.ndarray:
        sizes = batch_sizes(inputs, 500)
        batches = zip(inputs.split(sizes), labels.split(sizes), strict=True)
        found = [on_copies(task.hits)(predict(batch), wanted).float() for batch, wanted in batches]
        return torch.cat(found).cpu().numpy()

    tested = np.full(len(task.test_labels), -1) if task.test_owners is None else task.test_owners
    right, trained = hits(task.test_inputs, task.test_labels), hits(task.inputs, task.labels)
    of = by_client(tested, len(parts))
    return clients.assign(
        name=list(task.clients),
        test_samples=[len(indices) for indices in of],
        accuracy=[_mean(right[indices]) for indices in of],
        train_accuracy=[_mean(trained[part]) for part in parts],
    )


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else math.nan


def class_summary(classes: pd.DataFrame) -> dict[str, float]:
    """Return a table of classes in three numbers; nothing if there are no classes.

    They are the lowest accuracy of a class, the mean accuracy over the fifth of the classes that were seen least, and
    the share of the test samples for which the final model predicts its most frequent answer.
    """
    tested = classes[classes["test_samples"] > 0]
    if tested.empty:
        return {}
    least_seen = tested.sort_values("seen", kind="stable").head(max(1, len(tested) // 5))
    return {
        "worst_class_accuracy": float(tested["accuracy"].min()),
        "least_seen_accuracy": float(least_seen["accuracy"].mean()),
        "largest_prediction_share": float(classes["predicted"].max() / classes["predicted"].sum()),
    }


def is_constant_answer(summary: Mapping[str, Any]) -> bool:
    """Return whether a run's final model predicts one class for all test samples of several classes.

    Its accuracy is that class's share of the test set, and says nothing about its training. False if
    ``largest_prediction_share`` was not recorded, as in runs whose samples have no class.
    """
    return summary.get("largest_prediction_share") == 1 and summary["worst_class_accuracy"] == 0


def results_table(results: Iterable[Result]) -> pd.DataFrame:
    """Return one row per result: its settings, then its summary.

    Args:
        results: any number of results, from :func:`run`, :func:`run_many` or :func:`load_result`.

    Returns:
        Columns: ``algorithm``, ``task`` (or the name of your own data), ``seed``, every other setting in which the
        results differ (a setting in a group is called, for example, ``settings.clip``), and ``result.summary`` without
        its digests. A value that a result does not have is empty.

    Raises:
        ConfigError: when anything other than results is given.

    Example: the number of updates that four versions take, for two buffer sizes with three seeds each.

    >>> from asyncfl_lite import Config, results_table, run_many
    >>> configs = [Config(task="digits", algorithm="fedbuff", buffer_size=size, rounds=4) for size in (2, 10)]
    >>> table = results_table(run_many([config.with_seed(seed) for config in configs for seed in range(3)]))
    >>> list(table.columns[:5])
    ['algorithm', 'task', 'seed', 'buffer_size', 'final_accuracy']
    >>> table.groupby("buffer_size")["client_updates"].mean().to_dict()
    {2: 8.0, 10: 40.0}
    """
    if isinstance(results, Result) or not isinstance(results, Iterable):
        raise ConfigError(f"results: must be a list of results, got {shown(results)}")
    results = list(results)
    if odd := [one for one in results if not isinstance(one, Result)]:
        raise ConfigError(f"results: must be a list of results, got {shown(odd[0])} in it")
    if not results:
        return pd.DataFrame(columns=list(IN_EACH_TABLE))
    settings = pd.DataFrame([flat(one.config.as_dict()) for one in results], dtype=object)
    settings["task"] = [one.own_task or one.config.task for one in results]
    differ = [name for name in settings if name not in IN_EACH_TABLE and settings[name].map(repr).nunique() > 1]
    summary = pd.DataFrame([one.summary for one in results]).filter(regex="^(?!.*_sha256$)")
    return pd.concat([settings[[*IN_EACH_TABLE, *differ]].infer_objects(), summary], axis=1)
