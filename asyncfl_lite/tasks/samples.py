"""One set of samples of users' own data, checked by itself."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from torch import Tensor

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.tasks.inputs import inputs_of, private
from asyncfl_lite.tasks.labels import Labels, labels_of


class Samples(NamedTuple):
    """One set of samples of users' own data: the training or the test samples, perhaps those of one client.

    Attributes:
        prefix: beginning of the set's names in messages, such as ``test_``.
        inputs: ``(n, …)`` real numbers, or whole numbers that are token ids, perhaps in the user's own memory.
        labels: the labels.
        columns: names of the columns of numbers that ``inputs`` were read from, or none.
        is_fresh: whether nobody else holds the memory of ``inputs``.
    """

    prefix: str
    inputs: Tensor
    labels: Labels
    columns: tuple[Hashable, ...] = ()
    is_fresh: bool = False

    def named(self, what: str) -> str:
        """Return the name of the set's ``what``, such as ``test_labels``, in messages."""
        return f"{self.prefix}{what}"


def samples_of(prefix: str, inputs: Any, labels: Any, like: Samples | None = None) -> Samples:
    """Check one set of samples by itself, whatever its inputs and labels come in.

    Args:
        prefix: beginning of the set's names in messages.
        inputs, labels: as in :meth:`~asyncfl_lite.tasks.made.OwnTask.from_tensors`.
        like: the set whose columns ``inputs`` must have, if they have names.

    Raises:
        DataError: when they cannot be trained on; the message names the set.
    """
    inputs, is_private = private(inputs)
    tensor, columns = inputs_of(f"{prefix}inputs", inputs, None if like is None else like.columns)
    answers = labels_of(f"{prefix}labels", labels)
    check_rows(f"{prefix}labels", inputs, labels)
    return Samples(prefix, tensor, answers, columns, is_private or bool(columns))


def check_rows(name: str, inputs: Any, values: Any) -> None:
    """Raise an error if pandas' inputs and labels (or owners) name the same rows in different orders.

    Raises:
        DataError: if they do, since rows are matched by their order.
    """
    rows = [one.index for one in (inputs, values) if hasattr(one, "iloc")]
    if len(rows) == 2 and not rows[0].equals(rows[1]) and set(rows[0]) == set(rows[1]):
        raise DataError(
            f"{name}: must have rows in the order of inputs, whose index has another one; write "
            f"{name.rpartition(' ')[2]}.loc[inputs.index], or call reset_index(drop=True) of both"
        )
