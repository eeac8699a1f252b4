"""The common part of all image tasks: fixed subsets, and one normalisation that the unlabelled sets share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from asyncfl_lite.tasks.arrays import balanced
from asyncfl_lite.tasks.images import unlabelled
from asyncfl_lite.tasks.task import Task, UnlabelledSet

Labelled = tuple[Tensor, Tensor]
"""``(n, C, height, width)`` images, float in [0, 1] or bytes, and ``(n,)`` int64 labels."""


def taken(images: Tensor, labels: Tensor, count: int | None, what: str) -> Labelled:
    """Return a class-balanced subset of labelled images; see :func:`balanced`."""
    places = torch.from_numpy(balanced(labels.numpy(), count, what))
    return images[places], labels[places]


def channel_statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ``(C, 1, 1)`` means and standard deviations of ``(n, C, height, width)`` images."""
    means, deviations = zip(*((one.mean(), one.std()) for one in images.unbind(1)), strict=True)
    return torch.stack(means)[:, None, None], torch.stack(deviations)[:, None, None]


def number_names(classes: int) -> tuple[str, ...]:
    """Return the numbers 0 to ``classes`` - 1 as class names, padded with zeros to the same width."""
    return tuple(f"{label:0{len(str(classes - 1))}d}" for label in range(classes))


def image_task(
    name: str,
    train: Labelled,
    test: Labelled,
    sets: Mapping[str, UnlabelledSet],
    *,
    validation: Labelled | None = None,
    augment: Callable[[tuple[float, ...]], Callable[[Tensor, torch.Generator], Tensor]] | None = None,
    **about: Any,
) -> Task:
    """Make a task from images, normalised by the training images' mean and standard deviation in each channel.

    Args:
        name: the task's name in configurations.
        train, test: labelled images.
        sets: the server's unlabelled sets by name; each gives images like the training images.
        validation: labelled images for choosing settings; None for none.
        augment: function from a black pixel's values, one per colour, to the task's augmentation; None for none.
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
        validation=None if validation is None else (normalise(validation[0]), validation[1]),
        augment=None if augment is None else augment(tuple((-mean / std).flatten().tolist())),
        **about,
    )
