"""Tasks: data as tensors, a loss, a metric, and unlabelled sets for the server."""

from __future__ import annotations

import copy
import pickle
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from asyncfl_lite.base.data_folders import data_folder, data_places
from asyncfl_lite.base.errors import ConfigError, DataError, needs, reason, shown, unknown_name
from asyncfl_lite.base.registry import Registry, Settings, on_copies
from asyncfl_lite.base.streams import no_global_draws
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.handwritten_gradients import cross_entropy_gradient, has_gradient
from asyncfl_lite.models.vectors import batch_sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from asyncfl_lite.tasks.own_tables import Named

TASKS: Registry[Settings] = Registry("task")
"""Name -> the settings of a task, which load it (:class:`TaskSource`)."""

UnlabelledSet = Callable[[int, np.random.Generator], Tensor]
"""A function ``(count, rng) -> (count, …)`` that draws inputs like the task's own."""
OWN = "own"
"""Name of the server's unlabelled inputs that come with users' own data."""
AUGMENTED = 6
"""Number of tries of an augmentation on the same inputs, since it may draw only sometimes."""
USUAL_SETS = ("cross", "natural", "synthetic")
"""Names of unlabelled sets that methods use by default on tasks with several kinds."""


def stored(values: Tensor | np.ndarray) -> Tensor | np.ndarray:
    """Return what is in memory of a tensor whose numbers are repeated, as by ``expand``; others as they are."""
    if not isinstance(values, Tensor) or 0 not in values.stride():
        return values
    return values[tuple(slice(0, 1 if stride == 0 else None) for stride in values.stride())]


@dataclass(frozen=True)
class Task:
    """A task in which each sample has one class; subclasses score other kinds of labels.

    Regression and several labels per sample are not supported. The losses and the scores of a user's own subclass are
    tried when a run starts.

    Attributes:
        name: the task's name in configurations.
        inputs, labels: ``(n, …)`` float, or int64 for token ids, and ``(n,)`` int64, all clients' training
            samples.
        test_inputs, test_labels: the same for testing.
        num_classes: number of classes C.
        source: the source of the data.
        unlabelled: the server's unlabelled sets by name.
        owners: ``(n,)`` int64 the natural owner of each sample, such as its writer, or None.
        kinds: ``(n,)`` int64 kind of each sample; partitions distribute the kinds unequally. None if that is the label.
        vocabulary: number of tokens if inputs are token ids, else None.
        class_names: C names, or none.
        licence: the terms on which the data may be used, as far as their authors state them.
        stands_in_for: the data set that the task replaces; empty for a real benchmark.
        metric: name of the task's metric, for example ``accuracy`` or ``perplexity``.
        augment: function ``(inputs, torch.Generator) -> inputs`` for training batches, or None.
        clients: names of the clients that the data came with (see :meth:`from_clients`); client i is owner i.
            Empty if a partition deals the samples out.
        test_owners: ``(m,)`` int64 the client of each test sample, or None.
        places: ``(k,)`` int64 indices of the training samples that are dealt out, if ``inputs`` hold other runs'
            samples, too (see :meth:`of_run`); None for all.
        validation: inputs and labels for choosing settings, none of which is a client's, a test or an unlabelled
            sample; None if the task keeps none.

    >>> import torch
    >>> from asyncfl_lite import Task
    >>> points = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    >>> task = Task.from_tensors(points, torch.tensor([0, 0, 1, 1]), points, torch.tensor([0, 0, 1, 1]), name="line")
    >>> task
    Task('line', 4 training and 4 test samples of (1,) float32, 2 classes)
    """

    name: str
    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    num_classes: int
    source: str = "given by the user"
    unlabelled: Mapping[str, UnlabelledSet] = field(default_factory=dict)
    owners: np.ndarray | None = None
    kinds: np.ndarray | None = None
    vocabulary: int | None = None
    class_names: tuple[str, ...] = ()
    licence: str = "not stated"
    stands_in_for: str = ""
    metric: str = "accuracy"
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None
    clients: tuple[str, ...] = ()
    test_owners: np.ndarray | None = None
    places: np.ndarray | None = None
    validation: tuple[Tensor, Tensor] | None = None

    @classmethod
    def from_tensors(
        cls,
        inputs: Any,
        labels: Any,
        test_inputs: Any,
        test_labels: Any,
        *,
        name: str = "custom",
        unlabelled: Any = None,
        owners: Sequence[int] | Sequence[str] | np.ndarray | None = None,
        num_classes: int | None = None,
        class_names: Sequence[str] = (),
        vocabulary: int | None = None,
        augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    ) -> Self:
        """Make a task from your own tensors or arrays.

        The task has its own copy of the data.

        Args:
            inputs, labels: the training samples, ``(n, …)`` and ``(n,)``. Real inputs and columns of a pandas table
                become float32; images are ``(n, C, height, width)``; whole numbers are token ids. Labels are words, or
                numbered from 0 without gaps.
            test_inputs, test_labels: the same for testing. Columns and classes that have names are matched by name.
            name: the task's name in results.
            unlabelled: ``(u, …)`` the server's unlabelled inputs, on which FedEcho distils whatever its
                ``distill_set`` is; all of them are used if there are fewer than ``distill_samples``.
            owners: ``(n,)`` the owner of each sample, a number or a word, for the partition ``natural``.
            num_classes: number of classes C, needed if not every class occurs.
            class_names: C names, in the order of labels; by default, the labels themselves if they are words.
            vocabulary: number of tokens, needed if the highest token does not occur.
            augment: function ``(inputs, generator) -> inputs`` for training batches, which takes all its random
                numbers from the ``torch.Generator``.

        Raises:
            DataError: when shapes, names or scales do not fit together, or labels are not classes; the message says
                what to write.

        A warning lists classes that only test labels have.

        Example: forty points in the plane, labelled by the side of a line that they lie on, on four clients.

        >>> import torch
        >>> from asyncfl_lite import Config, Task, run
        >>> points = torch.randn(50, 2)
        >>> sides = (points.sum(1) > 0).long()
        >>> task = Task.from_tensors(points[:40], sides[:40], points[40:], sides[40:], name="sides")
        >>> task.input_shape, task.num_classes
        ((2,), 2)
        >>> config = Config(model="mlp", partition="iid", clients=4, concurrency=2, buffer_size=1, rounds=6)
        >>> result = run(config, task=task)
        >>> result.clients["num_samples"].tolist(), len(result.updates)
        ([10, 10, 10, 10], 6)
        """
        from asyncfl_lite.tasks.own_tables import check_rows, samples_of

        training = samples_of("", inputs, labels)
        testing = samples_of("test_", test_inputs, test_labels, training)
        check_rows("owners", inputs, owners)
        more = {"num_classes": num_classes, "class_names": class_names, "vocabulary": vocabulary, "augment": augment}
        return cls._of_sets(name, [training], [testing], {"unlabelled": unlabelled, "owners": owners, **more})

    @classmethod
    def from_dataset(
        cls,
        train: Any,
        test: Any,
        *,
        inputs: Named = None,
        labels: Hashable | None = None,
        name: str = "custom",
        **more: Any,
    ) -> Self:
        """Make a task from a data set of pairs (such as torchvision's), a Hugging Face data set, or a pandas table.

        Pillow images, and Hugging Face's columns of images, become ``(C, height, width)`` tensors with values from 0
        to 1. Class names are taken from the data set if it has them (``ClassLabel``, torchvision's ``classes``, pandas'
        categories). Columns and classes are matched by name.

        Args:
            train, test: map-style data sets whose items are pairs ``(input, label)`` or mappings, or pandas tables.
            inputs: name of the column whose cells are inputs (images, token ids); or names of columns of one number
                each. By default, the only column besides the labels or, in a table, all other columns.
            labels: name of the column of labels; by default ``label``, ``labels``, ``target`` or ``class``.
            name, more: as in :meth:`from_tensors`.

        Raises:
            DataError: when items are not of that form, or the sets do not fit together; the message says what to write.

        Example: a table with two numbers and a word in each row; the words become classes.

        >>> import pandas as pd
        >>> from asyncfl_lite import Task
        >>> table = pd.DataFrame({"length": [1.0, 4.0, 1.5], "width": [3.0, 1.0, 2.5], "kind": ["b", "a", "b"]})
        >>> task = Task.from_dataset(table, table, labels="kind")
        >>> task.input_shape, task.class_names, task.labels.tolist()
        ((2,), ('a', 'b'), [1, 0, 1])
        """
        from asyncfl_lite.tasks.own_tables import read

        training, columns = read("", train, inputs, labels)
        testing, _ = read("test_", test, inputs, labels, columns)
        return cls._of_sets(name, [training], [testing], more)

    @classmethod
    def from_clients(
        cls,
        clients: Sequence[Sequence[Any]] | Mapping[str, Sequence[Any]],
        test: Sequence[Any] | None = None,
        *,
        name: str = "custom",
        **more: Any,
    ) -> Self:
        """Make a task from one data set per client; client i of a run gets the i-th data set.

        Configurations need ``partition="given"`` and as many ``clients`` as there are data sets. A delay law with a
        duration for each client, such as ``per_client`` or ``trace``, counts clients in the same order.
        ``result.clients`` says how accurate the final model is at each client.

        Args:
            clients: ``(inputs, labels)`` of each client, or ``(inputs, labels, test_inputs, test_labels)`` if the
                client has test samples; a mapping gives clients names.
            test: ``(inputs, labels)`` for testing that belong to no client; with these, clients need no test samples.
            name, more: as in :meth:`from_tensors`.

        Raises:
            DataError: when a client's data do not fit (the message names the client), or there is nothing to test on.

        Example: three clients, the last of which takes ten times as long.

        >>> import torch
        >>> from asyncfl_lite import Config, Task, run
        >>> def client(count):
        ...     points = torch.randn(count, 2)
        ...     return points, (points.sum(1) > 0).long()
        >>> parts = {"north": (*client(30), *client(10)), "south": (*client(20), *client(10)), "far": client(50)}
        >>> task = Task.from_clients(parts)
        >>> config = Config(model="mlp", partition="given", clients=3, concurrency=3, buffer_size=1, rounds=8,
        ...                 delay="per_client", delay_settings={"durations": (1, 1, 10)})
        >>> result = run(config, task=task)
        >>> result.clients[["name", "num_samples", "test_samples"]].values.tolist()
        [['north', 30, 10], ['south', 20, 10], ['far', 50, 0]]
        """
        from asyncfl_lite.tasks.own_task import by_client

        names, training, testing, owners, test_owners = by_client(clients, test)
        own = {"clients": names, "test_owners": test_owners}
        return cls._of_sets(name, training, testing, {"owners": owners, **more}, own)

    @classmethod
    def _of_sets(
        cls, name: str, training: Any, testing: Any, more: Mapping[str, Any], own: Mapping[str, Any] | None = None
    ) -> Self:
        from asyncfl_lite.tasks.own_task import fields_of

        task = cls(name, **fields_of(training, testing, set_name=OWN, **more), **(own or {}))
        check_augment(task.augment, task.inputs)
        return task

    def __init_subclass__(cls) -> None:
        # otherwise `dataclass` makes a __repr__ that shows all tensors
        cls.__repr__ = cls.__dict__.get("__repr__", Task.__repr__)  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Show the name and the numbers of samples and classes, not the tensors."""
        samples = f"{len(self.own_places)} training and {len(self.test_labels)} test samples"
        kind = f"{self.input_shape} {str(self.inputs.dtype).removeprefix('torch.')}"
        return f"{type(self).__name__}({self.name!r}, {samples} of {kind}, {self.num_classes} classes)"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickle the task's functions, such as its unlabelled sets, by their code, which pickle itself cannot do."""
        with needs("grid", "pickling a task"):
            from joblib import wrap_non_picklable_objects

        functions = {name: value for name, value in self.__dict__.items() if not isinstance(value, DATA)}
        data = {name: value for name, value in self.__dict__.items() if name not in functions}
        try:
            return _unpickled, (data, pickle.dumps(wrap_non_picklable_objects((type(self), functions), False)))
        except Exception as error:
            found = f"{type(error).__name__}: {reason(error)}"
            raise DataError(f"task: {self.name!r} cannot be pickled ({found}); make it where it is used") from None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(**copy.deepcopy(self.__dict__, memo))

    def __copy__(self) -> Self:
        return type(self)(**self.__dict__)

    @property
    def own_places(self) -> np.ndarray:
        """Indices, ``(k,)`` int64, of the run's training samples in ``inputs``; all if :attr:`places` is None."""
        return np.arange(len(self.labels)) if self.places is None else self.places

    @property
    def samples(self) -> tuple[Tensor, Tensor]:
        """Inputs and labels of the samples in :attr:`own_places`."""
        if self.places is None:
            return self.inputs, self.labels
        own = torch.from_numpy(self.places).to(self.labels.device)
        return self.inputs[own], self.labels[own]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.inputs.shape[1:])

    @property
    def title(self) -> str:
        """Display title, with the data set that the task stands in for, if any."""
        name = getattr(TASKS.get(self.name), "title", self.name) if self.name in TASKS else self.name
        return f"{name}, stand-in for {self.stands_in_for}" if self.stands_in_for else name

    def describe(self, parts: Sequence[np.ndarray] | None = None) -> str:
        """Describe the task in words: data, sizes, metric, licence and, given clients' ``parts``, the clients."""
        from asyncfl_lite.tasks import show  # which imports matplotlib

        return show.describe(self, parts)

    def show(self, parts: Sequence[np.ndarray] | None = None) -> Figure:
        """Draw examples with their labels and, given clients' ``parts``, the labels of each client."""
        from asyncfl_lite.tasks import show

        return show.show(self, parts)

    def of_run(self, seed: int) -> Task:
        """Return the task for the run with this seed; all seeds share one task unless the seed draws the data."""
        return self

    def scored_on(self, part: Literal["test", "validation"]) -> Task:
        """Return the task scored on ``part``; for validation, return a copy whose test set is the validation samples.

        Raises:
            ConfigError: if the task keeps no validation samples.
        """
        if part == "test":
            return self
        if self.validation is None:
            raise ConfigError(
                f"eval_split: task {self.name!r} keeps no validation samples; must be 'test', got {part!r}"
            )
        inputs, labels = self.validation
        return replace(self, test_inputs=inputs, test_labels=labels, test_owners=None)

    @property
    def input_spec(self) -> InputSpec:
        """Shape and range of the inputs, and number of classes, for methods that synthesise inputs."""
        if not self.inputs.is_floating_point():
            vocabulary = self.vocabulary or int(self.samples[0].max()) + 1
            return InputSpec(self.input_shape, self.num_classes, vocabulary=vocabulary)
        low, high = (float(value) for value in self.samples[0].aminmax())
        return InputSpec(self.input_shape, self.num_classes, low, high)

    @has_gradient(cross_entropy_gradient)
    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the ``(n,)`` cross entropies, in nats."""
        return functional.cross_entropy(outputs, labels, reduction="none")

    def hits(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return ``(n,)`` floats: 1 where the most likely class is the label, else 0."""
        return (outputs.argmax(-1) == labels).to(outputs.dtype)

    def predictions(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        """Return a batch's ``(m, C)`` logits, for distillation: one row per sample, or per token that counts."""
        return outputs

    def prediction_counts(self, inputs: Tensor) -> Tensor:
        """Return ``(n,)`` int64: the number of rows of :meth:`predictions` for each input."""
        return inputs.new_ones(len(inputs), dtype=torch.int64)

    def answers(self, labels: Tensor) -> Tensor:
        """Return the ``(m,)`` correct labels for :meth:`predictions`."""
        return labels

    def class_logits(self, outputs: Tensor) -> Tensor:
        """Return ``(n, C)`` logits, one row per sample, for methods that sort samples by class."""
        return outputs

    def evaluate(self, predict: Callable[[Tensor], Tensor], batch_size: int = 500) -> dict[str, float]:
        """Return the scores on the test set: ``accuracy``, mean ``loss`` in nats, and the task's own.

        Args:
            predict: function from ``(n, …)`` inputs to ``(n, …)`` outputs of the global model, without gradient.
            batch_size: number of test samples at a time.
        """
        hits, losses = [], []
        for outputs, labels in self._tested(predict, batch_size):
            hits.append(on_copies(self.hits)(outputs, labels))
            losses.append(on_copies(self.losses)(outputs, labels))
        return {"accuracy": float(torch.cat(hits).mean()), "loss": float(torch.cat(losses).mean())}

    def evaluate_classes(
        self, predict: Callable[[Tensor], Tensor], batch_size: int = 500
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return ``(C,)`` counts of test samples and correct predictions; None if samples have several labels."""
        if self.test_labels.ndim != 1:
            return None
        hits = torch.cat([on_copies(self.hits)(*batch) for batch in self._tested(predict, batch_size)])
        labels = self.test_labels.cpu().numpy()
        right = np.bincount(labels, hits.float().cpu().numpy(), minlength=self.num_classes)
        return np.bincount(labels, minlength=self.num_classes), right

    def _tested(self, predict: Callable[[Tensor], Tensor], batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
        sizes = batch_sizes(self.test_inputs, batch_size)
        for inputs, labels in zip(self.test_inputs.split(sizes), self.test_labels.split(sizes), strict=True):
            yield predict(inputs), labels

    def unlabelled_set(self, name: str, count: int, rng: np.random.Generator) -> Tensor:
        """Draw ``(count, …)`` inputs from the server's unlabelled set ``name``.

        Tasks of real numbers also have the set ``noise``, whose samples carry no information.

        Raises:
            ConfigError: if the task has no such set.
        """
        if list(self.unlabelled) == [OWN] and name in USUAL_SETS:
            name = OWN  # the set that came with the user's data, whichever set a method uses by default
        everywhere = {"noise": self._noise} if self.inputs.is_floating_point() else {}
        sets = self.unlabelled if name in self.unlabelled else everywhere
        if name in sets:
            draw = sets[name]
            with no_global_draws(draw, f"unlabelled: the set {name!r}", "the generator that it is given"):
                return draw(count, rng).to(self.inputs, copy=True)
        if self.unlabelled:
            raise ConfigError(unknown_name("distill_set", name, [*self.unlabelled, *everywhere]))
        others = f"; allowed: {', '.join(everywhere)}" if everywhere else ""
        raise ConfigError(f"distill_set: task {self.name!r} has no unlabelled sets of its own, got {name!r}{others}")

    def _noise(self, count: int, rng: np.random.Generator) -> Tensor:
        own, _ = self.samples
        spread, mean = torch.std_mean(own)
        drawn = torch.from_numpy(rng.standard_normal((count, *self.input_shape), dtype=np.float32))
        low, high = (float(value) for value in own.aminmax())
        return (drawn.to(self.inputs) * spread + mean).clamp(low, high)

    def to(self, device: str | torch.device) -> Task:
        """Return the task with its tensors on ``device``; the task itself if they are there."""
        if self.inputs.device == torch.device(device):
            return self
        moved = {key: getattr(self, key).to(device) for key in ("inputs", "labels", "test_inputs", "test_labels")}
        if self.validation is not None:
            moved["validation"] = tuple(part.to(device) for part in self.validation)
        return type(self)(**{**self.__dict__, **moved})


def check_augment(augment: Callable[[Tensor, torch.Generator], Tensor] | None, inputs: Tensor) -> None:
    """Check, on a few inputs, that an augmentation returns inputs of the same shape and type, the same each time."""
    if augment is None:
        return
    few, source = inputs[:2].clone(), "the torch.Generator that it is given"
    try:
        with no_global_draws(augment, "augment:", source, DataError):
            generators = (torch.Generator(inputs.device).manual_seed(0) for _ in range(AUGMENTED))
            given, *others = [augment(few.clone(), generator) for generator in generators]
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"augment: must take (inputs, generator), a batch {tuple(few.shape)} and a torch.Generator; it failed with "
            f"{type(error).__name__}: {reason(error)}"
        ) from None
    if not isinstance(given, Tensor) or given.shape != few.shape or given.dtype != few.dtype:
        found = f"{tuple(given.shape)} of {given.dtype}" if isinstance(given, Tensor) else shown(given)
        raise DataError(f"augment: must return inputs as it was given, {tuple(few.shape)} of {few.dtype}, got {found}")
    if not all(torch.equal(given.nan_to_num(), other.nan_to_num()) for other in others):
        raise DataError(f"augment: must give the same when it is called again on the same inputs; draw from {source}")


DATA = (Tensor, np.ndarray, str, int, tuple, type(None))
"""Types of a task's fields that hold no functions."""


def _unpickled(data: dict[str, Any], functions: bytes) -> Task:
    kind, others = pickle.loads(functions)
    return kind(**data, **others)


class TaskSource(Settings):
    """Settings of a task, with a method that loads it."""

    revision: ClassVar[int] = 1
    """Revision of the task's numbers; increase it when their meaning changes, to mark older results as outdated."""

    @abstractmethod
    def load(self) -> Task:
        """Load the task, on the CPU; raise a DataError or a MissingLibraryError if data or a library is missing."""


class FolderSource(TaskSource):
    """Abstract base of the settings of tasks that are read from files."""

    places: ClassVar[tuple[str, ...]] = ()
    """Possible names of the data set's folder in the folder of data sets."""
    how: ClassVar[str] = ""
    """Advice on how to get the data, which ends the error if they are missing."""

    folder: str | None = None
    """Folder of data sets, or the data set's own; by default the one that ASYNCFL_DATA names, else
    ~/.cache/asyncfl_lite."""

    @property
    def name(self) -> str:
        """The task's name in configurations."""
        return TASKS.name_of(type(self))

    def files(self) -> list[Path]:
        """Return a list with the data set's folder; an empty list if it does not exist."""
        return data_places(self.folder, *self.places)

    def home(self) -> Path:
        """Return the data set's folder; raise a DataError if it does not exist."""
        return data_folder(self.folder, *self.places, how=self.how)


class DownloadedSource(FolderSource):
    """Abstract base of the settings of tasks that can be downloaded."""

    download: bool = False
    """Whether data, or a tokeniser, that do not exist locally may be downloaded."""

    @property
    def is_fetched(self) -> bool:
        """Whether the data set has no folder here, and is downloaded."""
        return self.download and not data_places(self.folder, *self.places)


class Limited(Settings):
    """Settings of tasks that can do with some of the samples in their files."""

    samples: int | None = Field(None, ge=1)
    """Number of training samples, always the same ones, balanced over classes if they have any; None for all."""
    test_samples: int | None = Field(None, ge=1)
    """The same for test samples."""
