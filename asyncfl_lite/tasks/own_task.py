"""Users' own data as one task: sets of samples joined, with the same classes, columns and scale in all of them."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError, shown
from asyncfl_lite.tasks.arrays import Labels, listed, owners_of, private
from asyncfl_lite.tasks.own_tables import Samples, check_columns, inputs_of, samples_of

FACTOR = 10
"""A set is on another scale if almost all its samples are this many times as large, or as small, as the usual ones."""
LEAST = 16
"""Smallest number of numbers by which a set's scale is judged; of samples, by which that of a column is."""
SEEN = 100
"""About the largest number of each owner's samples whose scale is looked at."""
LOOKED_AT = 200_000
"""About the largest number of numbers that are looked at in all sets, if :data:`LEAST` samples of each have fewer."""
ALMOST_ALL = (0.1, 0.9)
"""Quantiles between which most samples lie."""


def by_client(
    clients: Sequence[Sequence[Any]] | Mapping[str, Sequence[Any]], test: Sequence[Any] | None
) -> tuple[tuple[str, ...], list[Samples], list[Samples], np.ndarray, np.ndarray | None]:
    """Check the data of each client, in its name; see :meth:`~asyncfl_lite.tasks.task.Task.from_clients`.

    Returns:
        The clients' names, the training and the test sets, and the ``(n,)`` and ``(m,)`` int64 index of each training
        and test sample's client. A test sample that belongs to no client has -1; if all are so, the latter is None.
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
    return names, training, testing, _repeated(range(len(names)), training), test_owners


def _check_parts(whose: str, parts: Any, lengths: tuple[int, ...]) -> None:
    allowed = "(inputs, labels)" + " or (inputs, labels, test_inputs, test_labels)" * (4 in lengths)
    if not isinstance(parts, tuple | list) or len(parts) not in lengths:
        found = f"{len(parts)} parts" if isinstance(parts, tuple | list) else shown(type(parts).__name__)
        raise DataError(f"{whose}: must be {allowed}, got {found}")


def _repeated(indices: Sequence[int], parts: Sequence[Samples]) -> np.ndarray:
    return np.repeat(np.array(indices, dtype=np.int64), [len(part.labels.numbers) for part in parts])


def fields_of(
    training: Sequence[Samples],
    testing: Sequence[Samples],
    *,
    set_name: str,
    unlabelled: Any = None,
    owners: Any = None,
    num_classes: int | None = None,
    class_names: Sequence[str] = (),
    vocabulary: int | None = None,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
) -> dict[str, Any]:
    """Compare all sets of samples, and return the fields of their task; the user's own tensors stay as they are.

    Args:
        training, testing: the sets, of which clients' data have several.
        set_name: name of the server's unlabelled set.
        unlabelled, owners, num_classes, class_names, vocabulary, augment: as in
            :meth:`~asyncfl_lite.tasks.task.Task.from_tensors`.
    """
    sets = [*training, *testing]
    first = training[0]
    for one in sets:
        count, answers = len(one.inputs), len(one.labels.numbers)
        if count != answers or (not count and len(sets) == 2):
            raise DataError(f"{one.prefix}inputs: must be as many as labels and at least 1, got {count} and {answers}")
        if one.columns != first.columns:
            check_columns(f"{one.prefix}inputs", one.columns, first.columns, one.columns)
        _check_like(f"{one.prefix}inputs", one.inputs, f"{first.prefix}inputs", first.inputs)
    for name, some in (("clients", training), ("test", testing)):
        if not any(len(one.inputs) for one in some):
            raise DataError(f"{name}: must have at least 1 sample, got none")
    numbers, names = _numbered(training, testing, _names_of(class_names))
    known = list(zip((f"{one.prefix}labels" for one in sets), numbers, strict=True))
    count = _count_classes(known, num_classes, names)
    _check_scales([(f"{one.prefix}inputs", one.inputs) for one in sets], first.columns)
    labels, test_labels = (
        torch.from_numpy(np.concatenate(some)) for some in (numbers[: len(training)], numbers[len(training) :])
    )
    _warn_of_untrained_classes(labels, test_labels, names)
    inputs, test_inputs = (_joined([one.inputs for one in some], some[0].is_fresh) for some in (training, testing))
    tokens = None if inputs.is_floating_point() else _count_tokens(inputs, test_inputs, vocabulary)
    if owners is not None:
        given = owners_of(owners, len(inputs))
        owners = np.unique(given, return_inverse=True)[1].astype(np.int64) if given.dtype.kind == "U" else given.copy()
    if owners is not None and len(training) == 1:
        order = np.argsort(owners, kind="stable")
        each = np.split(order, np.flatnonzero(np.diff(owners[order])) + 1)
        few = [(given[rows[0]].item(), inputs[torch.from_numpy(rows[:: -(-len(rows) // SEEN)])]) for rows in each]
        _check_scales([(f"inputs of owner {owner!r}", own) for owner, own in few], first.columns)
    drawn_from = {} if unlabelled is None else {set_name: _server_set(unlabelled, inputs, first.columns, tokens)}
    return {
        "inputs": inputs,
        "labels": labels,
        "test_inputs": test_inputs,
        "test_labels": test_labels,
        "num_classes": count,
        "unlabelled": drawn_from,
        "owners": owners,
        "vocabulary": tokens,
        "class_names": names,
        "augment": augment,
    }


def _joined(inputs: Sequence[Tensor], is_fresh: bool) -> Tensor:
    """Return ``(n, …)`` inputs of several sets as float32 or int64, copied unless one set's memory ``is_fresh``."""
    first = inputs[0]
    kind = torch.float32 if first.is_floating_point() else torch.int64
    if len(inputs) == 1 and is_fresh:
        return first.to(kind).contiguous()
    whole = torch.empty(sum(map(len, inputs)), *first.shape[1:], dtype=kind)
    for part, some in zip(whole.split([len(some) for some in inputs]), inputs, strict=True):
        part.copy_(some)
    return whole


def _check_like(name: str, inputs: Tensor, other: str, like: Tensor) -> None:
    kinds = ["real numbers" if one.is_floating_point() else "whole numbers" for one in (like, inputs)]
    if inputs.shape[1:] != like.shape[1:]:
        kinds = [str(tuple(one.shape[1:])) for one in (like, inputs)]
    if kinds[0] != kinds[1]:
        raise DataError(f"{name}: must be as {other}, {kinds[0]}, got {kinds[1]}")


def _count_tokens(inputs: Tensor, test_inputs: Tensor, given: int | None) -> int:
    highest = max(int(inputs.max()), int(test_inputs.max())) if inputs.numel() else 0
    if given is not None and (isinstance(given, bool) or not isinstance(given, int | np.integer)):
        raise DataError(f"vocabulary: must be a whole number, got {shown(given)}")
    if given is not None and given <= highest:
        raise DataError(f"vocabulary: must be at least {highest + 1}, as token {highest} occurs, got {given}")
    if given is None and inputs.dim() > 2:
        raise DataError(
            f"inputs: whole numbers of shape {tuple(inputs.shape)} are token ids only if you give vocabulary; images "
            "must be real numbers, such as torch.as_tensor(inputs) / 255, or / 65535 with 16 bits"
        )
    return int(given or highest + 1)


def _server_set(
    unlabelled: Any, inputs: Tensor, columns: tuple[Hashable, ...], vocabulary: int | None
) -> Callable[[int, np.random.Generator], Tensor]:
    """Return a set that draws from the user's ``(u, …)`` inputs, which must be like the training ``inputs``."""
    unlabelled, is_private = private(unlabelled)
    tensor, columns = inputs_of("unlabelled", unlabelled, columns)
    _check_like("unlabelled", tensor, "inputs", inputs)
    if vocabulary is not None and tensor.numel() and tensor.max() >= vocabulary:
        raise DataError(f"unlabelled: must be token ids below {vocabulary}, got {int(tensor.max())}")
    _check_scales([("inputs", inputs), ("unlabelled", tensor)], columns)
    whole = _joined([tensor], is_private or bool(columns))

    def draw(count: int, rng: np.random.Generator) -> Tensor:
        if count > len(whole):
            warnings.warn(
                f"distill_samples: the set 'own' has {len(whole)}, which are all used in place of {count}", stacklevel=2
            )
        return whole[torch.from_numpy(rng.permutation(len(whole))[:count])]

    return draw


def _names_of(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, Mapping | Set) or not isinstance(given, Iterable):
        raise DataError(f"class_names: must be a list of names, in the order of the classes, got {shown(given)}")
    names = tuple(str(name) for name in given)
    if len(set(names)) < len(names):
        raise DataError(f"class_names: must differ from each other, got {listed(names)}")
    return names


def _numbered(
    training: Sequence[Samples], testing: Sequence[Samples], given: tuple[str, ...]
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """Return the int64 labels of each set, numbered alike, and the classes' names; ``given`` are the user's."""
    sets = [*training, *testing]
    named = [one for one in sets if one.labels.classes]
    if not named:
        return [one.labels.numbers for one in sets], given
    for index, one in enumerate(sets):
        if not one.labels.classes:
            sets[index] = _named_like(one, named)
    known, first, whose = sets[: len(training)], named[0].labels, "class_names"
    are_renamed = len(given) == len(first.classes) and not set(given) & set(first.classes)
    if first.declared and all(one.labels.classes == first.classes for one in named) and (are_renamed or not given):
        return [one.labels.numbers for one in sets], given or first.classes
    names = given
    if not given and all(one.labels.declared for one in known):
        names = tuple(dict.fromkeys(name for one in known for name in one.labels.classes))
        whose = "the training set's classes"
    elif not given:
        names = tuple(sorted({name for one in named for name in one.labels.classes}))
    if not given:
        _check_alike(named, names)
    return [_by_name(one, names, whose) for one in sets], names


def _by_name(one: Samples, names: tuple[str, ...], whose: str) -> np.ndarray:
    numbers, classes, *_ = one.labels
    if classes == names:
        return numbers
    if len(set(classes)) < len(classes):
        raise DataError(f"{one.prefix}labels: must have classes of different names, got {listed(sorted(classes))}")
    index = {name: number for number, name in enumerate(names)}
    if unknown := [classes[number] for number in np.unique(numbers) if classes[number] not in index]:
        raise DataError(f"{one.prefix}labels: must be of {whose} {listed(names)}, got {shown(unknown[0])}")
    return np.array([index.get(name, -1) for name in classes], np.int64)[numbers]


def _named_like(one: Samples, named: Sequence[Samples]) -> Samples:
    mine, other = f"{one.prefix}labels", f"{named[0].prefix}labels"
    numbers, classes = one.labels.numbers, named[0].labels.classes
    if not len(numbers):
        return one._replace(labels=Labels(numbers, classes, declared=True))
    if not all(each.labels.declared for each in named):
        raise DataError(f"{mine}: must be words as {other}, or both numbers, got numbers beside {shown(classes[0])}")
    if not 0 <= numbers.min() <= numbers.max() < len(classes):
        raise DataError(
            f"{mine}: must be 0 to {len(classes) - 1}, as {other} have {len(classes)} classes, got {numbers.min()} to "
            f"{numbers.max()}"
        )
    warnings.warn(
        f"{mine}: come without names of classes, so 0, 1, … are taken as {listed(classes)} of {other}", stacklevel=6
    )
    return one._replace(labels=Labels(numbers, classes, declared=True))


def _check_alike(named: Sequence[Samples], names: Sequence[str]) -> None:
    """Refuse names that differ only in case, blanks or how letters are encoded, or are one number (1, 1.0)."""
    met: dict[object, str] = {}
    for name in names:
        if (other := met.setdefault(_key(name), name)) != name:
            one, two = (next(f"{o.prefix}labels" for o in named if word in o.labels.classes) for word in (name, other))
            told = f"{shown(name)} and {shown(other)} of {two}"
            raise DataError(f"{one}: {told} are nearly the same; write them alike, or give both in class_names")


def _key(name: str) -> object:
    try:
        return float(name)
    except ValueError:
        return unicodedata.normalize("NFKC", name).strip().casefold()


def _count_classes(sets: Sequence[tuple[str, np.ndarray]], given: int | None, names: tuple[str, ...]) -> int:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1):
        raise DataError(f"num_classes: must be a whole number of at least 1, got {shown(given)}")
    if given is not None and names and given != len(names):
        raise DataError(f"class_names: must be {given}, one for each of num_classes, got {len(names)}")
    count = int(given or len(names)) or None
    number_them = "number them: np.unique(labels, return_inverse=True)[1], of training and test labels together"
    occurring = {name: np.unique(labels) for name, labels in sets}
    for name, found in occurring.items():
        if len(found) and found[0] < 0:
            raise DataError(f"{name}: must be numbered from 0, got {found[0]} to {found[-1]}; {number_them}")
        if len(found) and count is not None and found[-1] >= count:
            raise DataError(f"{name}: must be 0 to {count - 1} with {count} classes, got {found[-1]}")
    if count is not None:
        return count
    everywhere = np.unique(np.concatenate(list(occurring.values())))
    highest = int(everywhere[-1])
    if len(everywhere) <= highest:
        raise DataError(
            f"labels: {highest + 1 - len(everywhere)} of the classes 0 to {highest} do not occur; say that they are "
            f"classes, num_classes={highest + 1}, or {number_them}"
        )
    _check_first({name: set(found.tolist()) for name, found in occurring.items()}, highest)
    return highest + 1


def _check_first(occurring: Mapping[str, set[int]], highest: int) -> None:
    """Raise an error if some sets seem to be numbered from 1, and the others from 0."""
    from_one = [name for name, found in occurring.items() if found == set(range(1, highest + 1))]
    others: set[int] = set().union(*(found for name, found in occurring.items() if name not in from_one))
    if from_one and highest >= min(3, len(occurring)) and others == set(range(highest)):
        raise DataError(
            f"{from_one[0]}: must be numbered as the others, got 1 to {highest} where these are 0 to {highest - 1}; "
            f"subtract 1, or give num_classes={highest + 1}"
        )


def _warn_of_untrained_classes(labels: Tensor, test_labels: Tensor, names: tuple[str, ...]) -> None:
    only_tested = sorted(set(test_labels.tolist()) - set(labels.tolist()))
    if only_tested:
        told = listed([names[label] if names else str(label) for label in only_tested])
        count = int(torch.isin(test_labels, torch.tensor(only_tested)).sum())
        warnings.warn(
            f"test_labels: {count} of {len(test_labels)} are of classes that no training label has ({told}); "
            "nothing is learned of these, so accuracy is lower by them",
            stacklevel=5,
        )


def _check_scales(sets: Sequence[tuple[str, Tensor]], columns: Sequence[Hashable] = ()) -> None:
    """Compare the scales of sets of ``(n, …)`` inputs, such as those of each client; token ids are not compared.

    A set whose samples almost all are at least :data:`FACTOR` times as large as those of the usual set is refused,
    and so is one whose samples are that small. If this holds only for one of the ``columns``, a warning says so,
    because clients may differ in one respect. A warning also names sets whose inputs are all one number.
    """
    known = [(name, inputs) for name, inputs in sets if inputs.is_floating_point() and inputs.numel() >= LEAST]
    if len(known) < 2:
        return
    low, high = np.stack([_sizes(inputs, LOOKED_AT // len(known)) for _, inputs in known], axis=1)
    each = np.arange(low.shape[1])
    usual = np.argsort(high, axis=0, kind="stable")[(np.isfinite(high).sum(0) - 1) // 2, each]
    least, most = low[usual, each], high[usual, each]
    odd = ((low > FACTOR * most) | ((FACTOR * high < least) & (high > 0))) & (least > 0)
    for column, row in np.argwhere(odd.T)[:1].tolist():
        (name, inputs), (other, like) = known[row], known[usual[column]]
        if not column:
            raise DataError(
                f"{name}: go from {_span(inputs)}, and {other} from {_span(like)}; bring all of them to one scale"
            )
        span, usually = _span(inputs[:, column - 1]), _span(like[:, column - 1])
        which = columns[column - 1] if columns else column - 1
        told = f"column {which!r} goes from {span}, and that of {other} from {usually}"
        more = f" ({odd.sum() - 1} more are like this)" * bool(odd.sum() > 1)
        warnings.warn(f"{name}: {told}; if the units differ, convert them{more}", stacklevel=5)
    alike = (low == high)[:, 0]
    same = [known[row][0] for row in np.flatnonzero(alike) if torch.equal(*known[row][1].aminmax())]
    if 0 < len(same) < len(known):
        told = ", ".join(same[:3])
        warnings.warn(f"{told}: all numbers are the same, so nothing can be learned of them", stacklevel=5)


def _sizes(inputs: Tensor, most: int) -> np.ndarray:
    """Return ``(2, 1)`` quantiles of samples' largest absolute values; ``(2, 1 + columns)`` with those of columns.

    About ``most`` numbers of evenly chosen samples are looked at. Inputs of other shapes than ``(n, columns)`` have no
    columns, and with fewer samples than :data:`LEAST`, the quantiles of columns are NaN.
    """
    rows = max(LEAST, most // inputs[0].numel())
    few = inputs[:: max(1, len(inputs) // rows)].flatten(1).abs().float().numpy()
    largest = few.max(1, keepdims=True)
    found = np.quantile(np.hstack([largest, few]) if inputs.dim() == 2 else largest, ALMOST_ALL, axis=0)
    if len(few) < LEAST:
        found[:, 1:] = np.nan
    return found


def _span(inputs: Tensor) -> str:
    low, high = inputs.aminmax()
    return f"{float(low):.4g} to {float(high):.4g}"
