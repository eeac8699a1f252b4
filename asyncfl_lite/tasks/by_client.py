"""Pooling of the clients' data sets into one that records the client of each sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from asyncfl_lite.base.errors import DataError, reason, shown
from asyncfl_lite.tasks.own import check_dense


class Pooled(NamedTuple):
    """All clients' data in one data set, with the client of each sample.

    Attributes:
        names: the clients' names, in order.
        data: inputs, labels, test inputs and test labels of all clients.
        owners: ``(n,)`` int64 index of each training sample's client.
        test_owners: ``(m,)`` int64 index of each test sample's client, -1 if it belongs to no client; None if no test
            sample belongs to a client.
    """

    names: tuple[str, ...]
    data: tuple[Any, Any, Any, Any]
    owners: np.ndarray
    test_owners: np.ndarray | None


def pooled(clients: Sequence[Sequence[Any]] | Mapping[str, Sequence[Any]], test: Sequence[Any] | None) -> Pooled:
    """Pool the data of all clients into one data set.

    Args:
        clients: ``(inputs, labels)`` or ``(inputs, labels, test_inputs, test_labels)`` of each client, perhaps by name.
        test: ``(inputs, labels)`` that belong to no client, or None.

    Raises:
        DataError: when a client's data do not fit (the message names the client), or there is nothing to test on.
    """
    named = clients.items() if isinstance(clients, Mapping) else ((str(i), own) for i, own in enumerate(clients))
    own = {str(name): _parts(f"client {name!r}", parts, (2, 4)) for name, parts in named}
    if not own:
        raise DataError("clients: must be the data of at least one client, got none")
    tested = {name: parts[2:] for name, parts in own.items() if len(parts) == 4}
    common = None if test is None else _parts("test", test, (2,))
    if common is None and not tested:
        raise DataError(
            "test: nothing to test on; give test=(inputs, labels), or some clients (inputs, labels, test_inputs, "
            "test_labels)"
        )
    number = {name: place for place, name in enumerate(own)}
    sources = [(f"client {name!r}", number[name], parts) for name, parts in tested.items()]
    sources += [("test", -1, common)] if common is not None else []
    training = [(f"client {name!r}", number[name], parts[:2]) for name, parts in own.items()]
    inputs, labels, owners = _joined(training)
    test_inputs, test_labels, test_owners = _joined(sources)
    return Pooled(tuple(own), (inputs, labels, test_inputs, test_labels), owners, test_owners if tested else None)


def _parts(whose: str, parts: Any, lengths: tuple[int, ...]) -> tuple[Any, ...]:
    """Return a client's inputs and labels as tensors or arrays, after checking that they match in number."""
    allowed = "(inputs, labels)" + " or (inputs, labels, test_inputs, test_labels)" * (4 in lengths)
    if not isinstance(parts, tuple | list) or len(parts) not in lengths:
        found = f"{len(parts)} parts" if isinstance(parts, tuple | list) else shown(type(parts).__name__)
        raise DataError(f"{whose}: must be {allowed}, got {found}")
    for part in parts:
        check_dense(whose, part)
    try:
        arrays = tuple(part if isinstance(part, torch.Tensor) else np.asarray(part) for part in parts)
    except (TypeError, ValueError) as error:
        raise DataError(f"{whose}: must be tensors or arrays ({reason(error)})") from None
    for inputs, labels in zip(arrays[::2], arrays[1::2], strict=True):
        if inputs.ndim < 2 or labels.ndim != 1 or len(inputs) != len(labels):
            raise DataError(
                f"{whose}: must have inputs (n, …) and as many labels (n,), got shapes {tuple(inputs.shape)} and "
                f"{tuple(labels.shape)}"
            )
    return arrays


def _joined(sources: list[tuple[str, int, tuple[Any, ...]]]) -> tuple[Any, Any, np.ndarray]:
    """Concatenate the inputs and the labels of all sources; return both, and the owner of each sample."""
    first_name, _, (first, _) = sources[0]
    for whose, _, (inputs, _) in sources:
        if tuple(inputs.shape[1:]) != tuple(first.shape[1:]):
            raise DataError(
                f"{whose}: inputs must be as those of {first_name}, {tuple(first.shape[1:])}, got "
                f"{tuple(inputs.shape[1:])}"
            )
    inputs, labels = (np.concatenate([_array(parts[place]) for _, _, parts in sources]) for place in (0, 1))
    owners = np.repeat([number for _, number, _ in sources], [len(parts[1]) for _, _, parts in sources])
    return inputs, labels, owners.astype(np.int64)


def _array(values: Any) -> np.ndarray:
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else values
