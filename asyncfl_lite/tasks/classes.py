"""Classes of users' own data: numbered alike in all sets of samples, by their names where they have some."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError, shown
from asyncfl_lite.tasks.labels import Labels, listed
from asyncfl_lite.tasks.samples import Samples


def names_of(given: Any) -> tuple[str, ...]:
    """Return the class names that a user gives, in the order of the classes.

    Raises:
        DataError: for what has no order of its own, and for names that are given twice.
    """
    if given is None:
        return ()
    if isinstance(given, Mapping | Set) or not isinstance(given, Iterable):
        raise DataError(f"class_names: must be a list of names, in the order of the classes, got {shown(given)}")
    names = tuple(str(name) for name in given)
    if len(set(names)) < len(names):
        raise DataError(f"class_names: must differ from each other, got {listed(names)}")
    return names


def numbered(
    training: Sequence[Samples], testing: Sequence[Samples], given: tuple[str, ...]
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """Number the classes of all sets alike, by their names where they have some.

    Args:
        training, testing: the sets of samples.
        given: names of the classes as the user gives them, in order; or none.

    Returns:
        The int64 labels of each set, training sets first, and the classes' names.

    Raises:
        DataError: for names that differ, and for words in one set and numbers in another.
    """
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
    """Return a set's labels as indices in ``names``."""
    numbers, classes, *_ = one.labels
    if classes == names:
        return numbers
    if len(set(classes)) < len(classes):
        raise DataError(f"{one.named('labels')}: must have classes of different names, got {listed(sorted(classes))}")
    index = {name: place for place, name in enumerate(names)}
    if unknown := [classes[number] for number in np.unique(numbers) if classes[number] not in index]:
        raise DataError(f"{one.named('labels')}: must be of {whose} {listed(names)}, got {shown(unknown[0])}")
    return np.array([index.get(name, -1) for name in classes], np.int64)[numbers]


def _named_like(one: Samples, named: Sequence[Samples]) -> Samples:
    """Return a set whose labels are numbers without names, with the names of the other sets' classes.

    Raises:
        DataError: if other sets have words, or fewer classes.
    """
    mine, other = one.named("labels"), named[0].named("labels")
    numbers, classes = one.labels.numbers, named[0].labels.classes
    if not len(numbers):
        return one._replace(labels=Labels(numbers, classes, declared=True))
    if words := [each for each in named if each.labels.are_words]:
        found = f"words such as {shown(words[0].labels.classes[0])}"
        raise DataError(f"{words[0].named('labels')}: must be a tensor or an array of numbers like {mine}, got {found}")
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
        other = met.setdefault(_key(name), name)
        if other != name:
            one, two = (next(o.named("labels") for o in named if word in o.labels.classes) for word in (name, other))
            told = f"{shown(name)} and {shown(other)} of {two}"
            raise DataError(f"{one}: {told} are nearly the same; write them alike, or give both in class_names")


def _key(name: str) -> object:
    try:
        return float(name)
    except ValueError:
        return unicodedata.normalize("NFKC", name).strip().casefold()


def count_classes(sets: Sequence[tuple[str, np.ndarray]], given: int | None, names: tuple[str, ...]) -> int:
    """Return the number of classes: as given, or from the names, or from the labels, which must not skip any.

    Args:
        sets: name and int64 labels of each set of samples.
        given: the number of classes as the user gives it, or None.
        names: names of the classes, or none.

    Raises:
        DataError: when the labels do not fit; the message names the set.
    """
    if given is not None and (isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1):
        raise DataError(f"num_classes: must be a whole number of at least 1, got {shown(given)}")
    if given is not None and names and given != len(names):
        raise DataError(f"class_names: must be {given}, one for each of num_classes, got {len(names)}")
    spans = [(name, int(labels.min()), int(labels.max())) for name, labels in sets if len(labels)]
    least, lowest, _ = min(spans, key=lambda span: span[1])
    most, _, highest = max(spans, key=lambda span: span[2])
    count = int(given or len(names)) or None
    number_them = "number them: np.unique(labels, return_inverse=True)[1], of training and test labels together"
    if lowest < 0 or (count is None and lowest > 0):
        raise DataError(f"{least}: must be numbered from 0, got {lowest} to {highest}; {number_them}")
    if count is not None and highest >= count:
        raise DataError(f"{most}: must be 0 to {count - 1} with {count} classes, got {highest}")
    found = len(np.unique(np.concatenate([labels for _, labels in sets])))
    if count is None and found <= highest:
        raise DataError(
            f"labels: {highest + 1 - found} of the classes 0 to {highest} do not occur; say that they are classes, "
            f"num_classes={highest + 1}, or {number_them}"
        )
    if count is None:
        _check_first(sets, highest)
    return count or highest + 1


def _check_first(sets: Sequence[tuple[str, np.ndarray]], highest: int) -> None:
    """Raise an error if some sets count the classes from 1 while the others count them from 0."""
    occurring = [(name, set(np.unique(labels).tolist())) for name, labels in sets]
    from_one = [name for name, found in occurring if found == set(range(1, highest + 1))]
    others = [found for _, found in occurring if found and found != set(range(1, highest + 1))]
    if from_one and highest >= min(3, len(sets)) and set().union(*others) == set(range(highest)):
        raise DataError(
            f"{from_one[0]}: must be numbered as the others, got 1 to {highest} where these are 0 to {highest - 1}; "
            f"subtract 1, or give num_classes={highest + 1}"
        )


def say_what_nothing_trains(labels: Tensor, test_labels: Tensor, names: tuple[str, ...]) -> None:
    """Warn of classes in the test set without training samples, which a model can only guess."""
    only_tested = sorted(set(test_labels.tolist()) - set(labels.tolist()))
    if only_tested:
        told = listed([names[label] if names else str(label) for label in only_tested])
        count = int(torch.isin(test_labels, torch.tensor(only_tested)).sum())
        warnings.warn(
            f"test_labels: {count} of {len(test_labels)} are of classes that no training label has ({told}); "
            "nothing is learned of these, so accuracy is lower by them",
            stacklevel=5,
        )
