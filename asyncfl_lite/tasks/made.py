"""Three ways to make a task from your own data: from tensors, from a data set, or from one data set per client."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.tasks.by_client import by_client
from asyncfl_lite.tasks.columns import Named, read
from asyncfl_lite.tasks.data import TaskData
from asyncfl_lite.tasks.own import OWN, check_augment, checked, first_of, numbered_owners
from asyncfl_lite.tasks.samples import Samples, check_rows, samples_of


@dataclass(frozen=True)
class OwnTask(TaskData):
    """The constructors of :class:`~asyncfl_lite.tasks.task.Task` for your own data."""

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
        training = samples_of("", inputs, labels)
        testing = samples_of("test_", test_inputs, test_labels, training)
        check_rows("owners", inputs, owners)
        return cls._of_samples(
            [training],
            [testing],
            name=name,
            unlabelled=unlabelled,
            owners=owners,
            num_classes=num_classes,
            class_names=class_names,
            vocabulary=vocabulary,
            augment=augment,
        )

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
        training, columns = read("", train, inputs, labels)
        testing, _ = read("test_", test, inputs, labels, columns)
        return cls._of_samples([training], [testing], name=name, **more)

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
        names, training, testing, owners, test_owners = by_client(clients, test)
        task = cls._of_samples(training, testing, name=name, owners=owners, **more)
        return replace(task, clients=names, test_owners=test_owners)

    @classmethod
    def _of_samples(
        cls,
        training: Sequence[Samples],
        testing: Sequence[Samples],
        *,
        name: str,
        unlabelled: Any = None,
        owners: Any = None,
        num_classes: int | None = None,
        class_names: Sequence[str] = (),
        vocabulary: int | None = None,
        augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    ) -> Self:
        """Make a task from sets of samples, whichever way they came; arguments are as in :meth:`from_tensors`."""
        data = checked(training, testing, num_classes, class_names, vocabulary)
        owners = numbered_owners(owners, data.train[0], compare=len(training) == 1)
        check_augment(augment, data.train[0])
        return cls(
            name,
            *data.train,
            *data.test,
            data.num_classes,
            unlabelled={} if unlabelled is None else {OWN: first_of(unlabelled, OWN, training[0], data)},
            owners=owners,
            vocabulary=data.vocabulary,
            class_names=data.class_names,
            augment=augment,
        )
