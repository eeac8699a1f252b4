"""What a task is: data as tensors, transformed once; a loss; a metric; the server's own sets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from asyncfl_lite.base.errors import ConfigError, unknown_name
from asyncfl_lite.base.registry import Settings
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.tasks.subsets import UnlabelledSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Task:
    """A task in which each sample has one class. Subclasses say how other kinds are scored.

    Attributes:
        name: as configurations call it.
        inputs, labels: ``(n, …)`` float, or int64 for token ids, and ``(n,)`` int64, all clients' training
            samples.
        test_inputs, test_labels: the same for testing.
        num_classes: C.
        source: where the data comes from.
        unlabelled: the server's unlabelled sets by name.
        owners: ``(n,)`` int64 the natural owner of each sample, such as its writer, or None.
        kinds: ``(n,)`` int64 by which partitions mix samples unequally, where that is not the label.
        vocabulary: how many tokens there are where inputs are token ids, else None.
        class_names: C names, or none.
        licence: on what terms the data may be used, as far as its authors say.
        stands_in_for: the data set in whose place it is used; empty for a real benchmark.
        metric: what ``accuracy`` and the task's other scores measure, in a word.
        augment: ``(inputs, torch.Generator) -> inputs`` for training batches, or None.
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

    @classmethod
    def from_tensors(
        cls,
        inputs: Tensor | np.ndarray,
        labels: Tensor | np.ndarray,
        test_inputs: Tensor | np.ndarray,
        test_labels: Tensor | np.ndarray,
        *,
        name: str = "custom",
        unlabelled: Tensor | np.ndarray | None = None,
        owners: np.ndarray | None = None,
    ) -> Task:
        """Make a task of your own tensors or arrays.

        Args:
            inputs, labels: ``(n, …)`` and ``(n,)``; real inputs become float32, labels are numbered from 0.
            test_inputs, test_labels: the same for testing.
            name: what results call it.
            unlabelled: ``(u, …)`` the server's unlabelled inputs; FedEcho's name for them is ``own``.
            owners: ``(n,)`` the owner of each sample, for the partition ``natural``.

        Raises:
            DataError: when shapes do not fit together, or labels are not classes.

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
        from asyncfl_lite.tasks.own import checked, first_of

        train, test, classes = checked((inputs, labels), (test_inputs, test_labels), owners)
        sets = {} if unlabelled is None else {"own": first_of(unlabelled, "own", train[0])}
        owners = None if owners is None else np.asarray(owners)
        return cls(name, *train, *test, classes, unlabelled=sets, owners=owners)

    @classmethod
    def from_dataset(
        cls, train: Sequence[tuple[Any, int]], test: Sequence[tuple[Any, int]], *, name: str = "custom", **more: Any
    ) -> Task:
        """Make a task of map-style data sets, such as torchvision's, whose items are an input and a label.

        Args:
            train, test: each item ``(input, label)``; inputs are tensors or arrays of one shape, transformed already.
            name, more: as in :meth:`from_tensors`.

        Raises:
            DataError: when an item is not of that form, or shapes differ.
        """
        from asyncfl_lite.tasks.own import stacked

        tensors = [tensor for data in (train, test) for tensor in stacked(data)]
        return cls.from_tensors(*tensors, name=name, **more)

    def describe(self, parts: Sequence[np.ndarray] | None = None) -> str:
        """Return in words what the task is: data, sizes, metric, terms; with clients' ``parts`` also those."""
        from asyncfl_lite.tasks.show import describe

        return describe(self, parts)

    def show(self, parts: Sequence[np.ndarray] | None = None) -> Figure:
        """Draw examples with their labels; with clients' ``parts`` also which client has which labels."""
        from asyncfl_lite.tasks.show import show

        return show(self, parts)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.inputs.shape[1:])

    @property
    def input_spec(self) -> InputSpec:
        """Shape, range and classes, for methods that make inputs up."""
        if not self.inputs.is_floating_point():
            vocabulary = self.vocabulary or int(self.inputs.max()) + 1
            return InputSpec(self.input_shape, self.num_classes, vocabulary=vocabulary)
        low, high = (float(value) for value in self.inputs.aminmax())
        return InputSpec(self.input_shape, self.num_classes, low, high)

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the ``(n,)`` cross-entropies, in nats."""
        return functional.cross_entropy(outputs, labels, reduction="none")

    def hits(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return ``(n,)`` floats, 1 where the most likely class is the label."""
        return (outputs.argmax(-1) == labels).to(outputs.dtype)

    def predictions(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        """Return the ``(m, C)`` logits of every prediction in a batch's outputs, for distillation.

        For classification these are the outputs, ``m = n``; a task of sequences has one per token that counts.
        """
        return outputs

    def prediction_counts(self, inputs: Tensor) -> Tensor:
        """Return ``(n,)`` int64, how many rows of :meth:`predictions` each input has."""
        return inputs.new_ones(len(inputs), dtype=torch.int64)

    def answers(self, labels: Tensor) -> Tensor:
        """Return the ``(m,)`` right answers that belong to :meth:`predictions`."""
        return labels

    def class_logits(self, outputs: Tensor) -> Tensor:
        """Return ``(n, C)`` one row of logits per sample, for methods that sort samples by class."""
        return outputs

    def evaluate(self, predict: Callable[[Tensor], Tensor], batch_size: int = 500) -> dict[str, float]:
        """Return the scores on the test set: ``accuracy``, mean ``loss`` in nats, and the task's own.

        Args:
            predict: ``(n, …)`` inputs to ``(n, …)`` outputs of the global model, without gradient.
            batch_size: test samples at a time.
        """
        hits, losses = [], []
        for outputs, labels in self._tested(predict, batch_size):
            hits.append(self.hits(outputs, labels))
            losses.append(self.losses(outputs, labels))
        return {"accuracy": float(torch.cat(hits).mean()), "loss": float(torch.cat(losses).mean())}

    def evaluate_classes(
        self, predict: Callable[[Tensor], Tensor], batch_size: int = 500
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return ``(C,)`` test samples and right answers of each class; None where a sample has more than one label."""
        if self.test_labels.ndim != 1:
            return None
        hits = torch.cat([self.hits(outputs, labels) for outputs, labels in self._tested(predict, batch_size)])
        labels = self.test_labels.cpu().numpy()
        right = np.bincount(labels, hits.float().cpu().numpy(), minlength=self.num_classes)
        return np.bincount(labels, minlength=self.num_classes), right

    def _tested(self, predict: Callable[[Tensor], Tensor], batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield outputs and labels of the test set, a batch at a time."""
        for inputs, labels in zip(self.test_inputs.split(batch_size), self.test_labels.split(batch_size), strict=True):
            yield predict(inputs), labels

    def unlabelled_set(self, name: str, count: int, rng: np.random.Generator) -> Tensor:
        """Return ``(count, …)`` inputs of the server's unlabelled set ``name``.

        Beside the task's own sets there is ``noise`` wherever inputs are real numbers: what is left of distillation
        when its samples show nothing.

        Raises:
            ConfigError: if the task has no such set.
        """
        everywhere = {"noise": self._noise} if self.inputs.is_floating_point() else {}
        sets = self.unlabelled if name in self.unlabelled else everywhere
        if name in sets:
            return sets[name](count, rng).to(self.inputs)
        if self.unlabelled:
            raise ConfigError(unknown_name("distill_set", name, [*self.unlabelled, *everywhere]))
        others = f"; allowed: {', '.join(everywhere)}" if everywhere else ""
        raise ConfigError(f"distill_set: task {self.name!r} has no unlabelled sets of its own, got {name!r}{others}")

    def _noise(self, count: int, rng: np.random.Generator) -> Tensor:
        """Return ``(count, …)`` inputs of independent normal numbers with the training inputs' mean and spread."""
        spread, mean = torch.std_mean(self.inputs)
        drawn = torch.from_numpy(rng.standard_normal((count, *self.input_shape), dtype=np.float32))
        low, high = (float(value) for value in self.inputs.aminmax())
        return (drawn.to(self.inputs) * spread + mean).clamp(low, high)

    def to(self, device: str | torch.device) -> Task:
        """Return the task with its tensors on ``device``."""
        moved = {key: getattr(self, key).to(device) for key in ("inputs", "labels", "test_inputs", "test_labels")}
        return type(self)(**{**self.__dict__, **moved})


class TaskSource(Settings):
    """A task's settings, from which it is loaded."""

    revision: ClassVar[int] = 1
    """Raised when its numbers change in meaning, so that older results count as stale."""

    @abstractmethod
    def load(self) -> Task:
        """Read the data and return the task, on the CPU.

        Raises:
            DataError: when the data are not available.
            MissingLibraryError: when an optional library that holds it is not installed.
        """
