"""What every image task shares: fixed subsets, one normalisation, unlabelled sets that go through it too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.errors import DataError
from asyncfl_lite.tasks.base import Task, UnlabelledSet
from asyncfl_lite.tasks.images import unlabelled

Labelled = tuple[Tensor, Tensor]
"""``(n, C, height, width)`` images, float in [0, 1] or bytes, and ``(n,)`` int64 labels."""


def balanced(labels: np.ndarray, count: int | None, what: str = "samples") -> np.ndarray:
    """Return the sorted places of ``count`` samples with as many of each class as can be, always the same ones.

    Samples of a smaller count are among those of a larger one. Where a class runs out the others fill up.

    Args:
        labels: ``(n,)``.
        count: how many; None for all.
        what: the setting that ``count`` comes from, for the error.

    Raises:
        DataError: when there are fewer.
    """
    if count is None:
        return np.arange(len(labels))
    if count > len(labels):
        raise DataError(f"{what}: must be at most {len(labels)}, got {count}")
    shuffled = np.random.default_rng(0).permutation(len(labels))
    turn = np.empty(len(labels), dtype=np.int64)  # a sample's number among those of its class
    for label in np.unique(labels):
        own = shuffled[labels[shuffled] == label]
        turn[own] = np.arange(len(own))
    return np.sort(shuffled[np.argsort(turn[shuffled], kind="stable")[:count]])


def taken(images: Tensor, labels: Tensor, count: int | None, what: str) -> Labelled:
    """Return a class-balanced part of labelled images; see :func:`balanced`."""
    places = torch.from_numpy(balanced(labels.numpy(), count, what))
    return images[places], labels[places]


def channel_statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ``(C, 1, 1)`` means and standard deviations of ``(n, C, height, width)`` images."""
    means, deviations = zip(*((one.mean(), one.std()) for one in images.unbind(1)), strict=True)
    return torch.stack(means)[:, None, None], torch.stack(deviations)[:, None, None]


def image_task(
    name: str,
    train: Labelled,
    test: Labelled,
    sets: Mapping[str, UnlabelledSet],
    *,
    augment: Callable[[tuple[float, ...]], Callable[[Tensor, torch.Generator], Tensor]] | None = None,
    **about: object,
) -> Task:
    """Return a task of images, normalised by the mean and deviation of each colour in the training images.

    Args:
        name: as configurations call it.
        train, test: labelled images.
        sets: the server's unlabelled sets by name; each gives images in [0, 1] of the task's shape.
        augment: from the values of a black pixel, one a colour, to the task's augmentation; None for none.
        about: the task's other fields, such as ``source``, ``licence``, ``num_classes``.
    """
    mean, std = channel_statistics(unlabelled.unit(train[0]))

    def normalise(images: Tensor) -> Tensor:
        return (unlabelled.unit(images) - mean) / std

    def normalised(draw: UnlabelledSet) -> UnlabelledSet:
        return lambda count, rng: normalise(draw(count, rng))

    return Task(
        name,
        normalise(train[0]),
        train[1],
        normalise(test[0]),
        test[1],
        unlabelled={key: normalised(draw) for key, draw in sets.items()},
        augment=None if augment is None else augment(tuple((-mean / std).flatten().tolist())),
        **about,
    )
