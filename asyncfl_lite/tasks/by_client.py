"""The clients' data sets, checked one by one, and the client of each sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from asyncfl_lite.base.errors import DataError, shown
from asyncfl_lite.tasks.samples import Samples, samples_of


class ByClient(NamedTuple):
    """All clients' data.

    Attributes:
        names: the clients' names, in order.
        training, testing: the sets of samples.
        owners: ``(n,)`` int64 index of each training sample's client.
        test_owners: ``(m,)`` int64 index of each test sample's client, -1 if it belongs to no client; None if no test
            sample belongs to a client.
    """

    names: tuple[str, ...]
    training: list[Samples]
    testing: list[Samples]
    owners: np.ndarray
    test_owners: np.ndarray | None


def by_client(clients: Sequence[Sequence[Any]] | Mapping[str, Sequence[Any]], test: Sequence[Any] | None) -> ByClient:
    """Check the data of each client, in its name.

    Args:
        clients: ``(inputs, labels)`` or ``(inputs, labels, test_inputs, test_labels)`` of each client, perhaps by name.
        test: ``(inputs, labels)`` that belong to no client, or None.

    Raises:
        DataError: when a client's data do not fit (the message names the client), or there is nothing to test on.
    """
    given = list(clients.items() if isinstance(clients, Mapping) else enumerate(clients))
    if not given:
        raise DataError("clients: must be the data of at least one client, got none")
    names = tuple(str(name) for name, _ in given)
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"clients: must have names that differ as words, got {twice[0]!r} twice")
    training: list[Samples] = []
    testing, tested = [], []
    for index, (name, (_, parts)) in enumerate(zip(names, given, strict=True)):
        whose = f"client {name!r}"
        _check_parts(whose, parts, (2, 4))
        training.append(samples_of(f"{whose}, ", parts[0], parts[1], training[0] if training else None))
        if len(parts) == 4:
            testing.append(samples_of(f"{whose}, test_", parts[2], parts[3], training[0]))
            tested.append(index)
    if test is not None:
        _check_parts("test", test, (2,))
        testing.append(samples_of("test, ", test[0], test[1], training[0]))
        tested.append(-1)
    if not testing:
        raise DataError(
            "test: nothing to test on; give test=(inputs, labels), or some clients (inputs, labels, test_inputs, "
            "test_labels)"
        )
    test_owners = _repeated(tested, testing) if tested != [-1] else None
    return ByClient(names, training, testing, _repeated(range(len(names)), training), test_owners)


def _check_parts(whose: str, parts: Any, lengths: tuple[int, ...]) -> None:
    """Raise an error unless a client gives as many things as it should."""
    allowed = "(inputs, labels)" + " or (inputs, labels, test_inputs, test_labels)" * (4 in lengths)
    if not isinstance(parts, tuple | list) or len(parts) not in lengths:
        found = f"{len(parts)} parts" if isinstance(parts, tuple | list) else shown(type(parts).__name__)
        raise DataError(f"{whose}: must be {allowed}, got {found}")


def _repeated(indices: Sequence[int], parts: Sequence[Samples]) -> np.ndarray:
    """Return each set's index, once for each of its samples."""
    return np.repeat(np.array(indices, dtype=np.int64), [len(part.labels.numbers) for part in parts])
