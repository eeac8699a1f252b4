"""Users' own data as a task: the required format, and one-line errors for everything else."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError, reason, shown
from asyncfl_lite.base.streams import no_global_draws
from asyncfl_lite.tasks.classes import count_classes, names_of, numbered, say_what_nothing_trains
from asyncfl_lite.tasks.inputs import check_columns, inputs_of, private
from asyncfl_lite.tasks.labels import check_dense, is_missing
from asyncfl_lite.tasks.samples import Samples
from asyncfl_lite.tasks.scales import check_scales
from asyncfl_lite.tasks.subsets import UnlabelledSet

OWN = "own"
"""Name of the server's unlabelled inputs that come with users' own data."""
USUAL_SETS = ("cross", "natural", "synthetic")
"""Names of unlabelled sets that methods use by default on tasks with several kinds."""
AUGMENTED = 6
"""Number of times that an augmentation is tried on the same inputs, since it may draw only sometimes."""
SEEN = 100
"""About the largest number of each owner's samples whose scale is looked at."""


class Checked(NamedTuple):
    """Users' own data, checked and ready for training.

    Attributes:
        train, test: inputs ``(n, …)``, float32 or int64, and labels ``(n,)`` int64.
        num_classes: number of classes C.
        class_names: C names, or none.
        vocabulary: number of tokens; None unless inputs are token ids.
    """

    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    num_classes: int
    class_names: tuple[str, ...]
    vocabulary: int | None


def checked(
    training: Sequence[Samples],
    testing: Sequence[Samples],
    num_classes: int | None = None,
    class_names: Sequence[str] = (),
    vocabulary: int | None = None,
) -> Checked:
    """Compare all sets, and join them to tensors that can be trained on; the user's own tensors stay as they are.

    Raises:
        DataError: when the sets do not fit together; the message names the set and, if possible, says what to write.
    """
    sets = [*training, *testing]
    for one in sets:
        count, answers = len(one.inputs), len(one.labels.numbers)
        if count != answers or (not count and len(sets) == 2):
            raise DataError(
                f"{one.named('inputs')}: must be as many as labels and at least 1, got {count} and {answers}"
            )
        if one.columns != training[0].columns:
            check_columns(one.named("inputs"), one.columns, training[0].columns, one.columns)
        _check_like(one.named("inputs"), one.inputs, training[0].named("inputs"), training[0].inputs)
    for name, some in (("clients", training), ("test", testing)):
        if not any(len(one.inputs) for one in some):
            raise DataError(f"{name}: must have at least 1 sample, got none")
    numbers, names = numbered(training, testing, names_of(class_names))
    known = list(zip((one.named("labels") for one in sets), numbers, strict=True))
    count = count_classes(known, num_classes, names)
    check_scales([(one.named("inputs"), one.inputs) for one in sets], training[0].columns)
    labels, test_labels = (
        torch.from_numpy(np.concatenate(some)) for some in (numbers[: len(training)], numbers[len(training) :])
    )
    say_what_nothing_trains(labels, test_labels, names)
    inputs, test_inputs = (joined([one.inputs for one in some], some[0].is_fresh) for some in (training, testing))
    tokens = None if inputs.is_floating_point() else _count_tokens(inputs, test_inputs, vocabulary)
    return Checked((inputs, labels), (test_inputs, test_labels), count, names, tokens)


def joined(inputs: Sequence[Tensor], is_fresh: bool = False) -> Tensor:
    """Return checked inputs in one tensor, float32 or int64, in memory that nobody else holds.

    This is the only copy that is made of them, and the one in which their numbers change their type.

    Args:
        inputs: ``(n, …)`` inputs of each set.
        is_fresh: whether nobody else holds their memory, so that a single one needs no copy.
    """
    first = inputs[0]
    kind = torch.float32 if first.is_floating_point() else torch.int64
    if len(inputs) == 1 and is_fresh:
        return first.to(kind).contiguous()
    whole = torch.empty(sum(map(len, inputs)), *first.shape[1:], dtype=kind)
    for place, some in zip(whole.split([len(some) for some in inputs]), inputs, strict=True):
        place.copy_(some)
    return whole


def _check_like(name: str, inputs: Tensor, other: str, like: Tensor) -> None:
    """Raise an error unless inputs have the shape of others, and both are real numbers or both token ids."""
    kinds = ["real numbers" if one.is_floating_point() else "whole numbers" for one in (like, inputs)]
    if inputs.shape[1:] != like.shape[1:]:
        kinds = [str(tuple(one.shape[1:])) for one in (like, inputs)]
    if kinds[0] != kinds[1]:
        raise DataError(f"{name}: must be as {other}, {kinds[0]}, got {kinds[1]}")


def _count_tokens(inputs: Tensor, test_inputs: Tensor, given: int | None) -> int:
    """Return the number of tokens: as given, or one more than the largest token id."""
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


def numbered_owners(owners: Any, inputs: Tensor, compare: bool = True) -> np.ndarray | None:
    """Return the ``(n,)`` owners of samples as numbers, even if they are words; None if there are no owners.

    Args:
        owners: the owners.
        inputs: ``(n, …)`` the samples' inputs.
        compare: whether to compare the scales of the owners' inputs.

    Raises:
        DataError: when there is not one owner for each of the inputs, or an owner's inputs are on another scale.
    """
    if owners is None:
        return None
    numbers, words = _as_numbers(owners, len(inputs))
    if not compare or not inputs.is_floating_point():
        return numbers
    order = np.argsort(numbers, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
    some = [rows[:: max(1, len(rows) // SEEN)] for rows in groups]
    check_scales([(f"inputs of owner {words[rows[0]]!r}", inputs[torch.from_numpy(rows)]) for rows in some])
    return numbers


def _as_numbers(owners: Any, count: int) -> tuple[np.ndarray, list[Any]]:
    """Return owners as numbers, and as they were given."""
    check_dense("owners", owners)
    given = np.asarray(owners.tolist() if isinstance(owners, Tensor) else owners)
    if given.shape != (count,):
        raise DataError(f"owners: one for each of the {count} samples is needed, got shape {given.shape}")
    values = given.tolist() if isinstance(owners, np.ndarray | Tensor) else list(owners)
    odd = [value for value in values if is_missing(value)]
    words = [value for value in values if isinstance(value, str)]
    if odd or (words and len(words) < count):
        odd += [value for value in values if not isinstance(value, str)]
        raise DataError(f"owners: must be all numbers or all words, one for each sample, got {shown(odd[0])} too")
    if words:
        return np.unique(given.astype(str), return_inverse=True)[1].astype(np.int64), values
    given = np.asarray(given.tolist()) if given.dtype == object else given
    if given.dtype.kind not in "iufb" or not np.isfinite(given).all():
        raise DataError(f"owners: must be finite numbers or words, one for each sample, got {given.dtype}")
    return given.copy(), values


def check_augment(augment: Callable[[Tensor, torch.Generator], Tensor] | None, inputs: Tensor) -> None:
    """Check, on a few inputs, that an augmentation returns inputs of the same shape and type, the same each time.

    Raises:
        DataError: when it cannot be called with ``(inputs, generator)``, returns anything else, or takes random numbers
            from another source than the generator.
    """
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


def first_of(unlabelled: Any, name: str, like: Samples, data: Checked) -> UnlabelledSet:
    """Return an unlabelled set that draws from ``unlabelled``, each input at most once.

    Args:
        unlabelled: ``(u, …)`` inputs.
        name: name of the set.
        like: training samples, whose columns the inputs must have.
        data: the task's data.

    Raises:
        DataError: when the inputs are not as those of the training samples.
    """
    unlabelled, is_private = private(unlabelled)
    tensor, columns = inputs_of("unlabelled", unlabelled, like.columns)
    _check_like("unlabelled", tensor, "inputs", data.train[0])
    if data.vocabulary is not None and tensor.numel() and tensor.max() >= data.vocabulary:
        raise DataError(f"unlabelled: must be token ids below {data.vocabulary}, got {int(tensor.max())}")
    check_scales([("inputs", data.train[0]), ("unlabelled", tensor)], columns)
    inputs = joined([tensor], is_private or bool(columns))

    def draw(count: int, rng: np.random.Generator) -> Tensor:
        if count > len(inputs):
            warnings.warn(
                f"distill_samples: the set {name!r} has {len(inputs)}, which are all used in place of {count}",
                stacklevel=2,
            )
        return inputs[torch.from_numpy(rng.permutation(len(inputs))[:count])]

    return draw
