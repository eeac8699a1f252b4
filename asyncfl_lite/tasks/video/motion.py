"""Images in motion: the task of moving digits, and unlabelled clips for the server."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks.images.base import Labelled, Parts, digits_images, mnist_images
from asyncfl_lite.tasks.images.unlabelled import resize, sample, strokes, warped
from asyncfl_lite.tasks.splits import stratified
from asyncfl_lite.tasks.task import TASKS, Task
from asyncfl_lite.tasks.worlds import SeededSource

FRAMES = 8
"""Number of frames in which a digit of :class:`MovingDigits` moves."""
STRAIGHT = {"right": (1, 0), "left": (-1, 0), "down": (0, 1), "up": (0, -1)}
DIAGONAL = {"down right": (1, 1), "up left": (-1, -1), "down left": (-1, 1), "up right": (1, -1)}


def moving(images: Tensor, steps: np.ndarray, frames: int, rng: np.random.Generator) -> Tensor:
    """Return clips in which each image crosses a black field twice its size in a straight line.

    Halfway through the clip, the image is within an eighth of its side of the field's middle.

    Args:
        images: ``(n, C, side, side)`` images.
        steps: ``(n, 2)`` pixels right and down from one frame to the next; positions are rounded.

    Returns:
        ``(n, C, T, 2 side, 2 side)`` clips.
    """
    count, _, side, _ = images.shape
    halfway = side // 2 + rng.integers(-(side // 8), side // 8 + 1, (count, 2))
    time = np.arange(frames) - (frames - 1) / 2
    corner = torch.from_numpy(np.rint(halfway[:, None] + time[:, None] * steps[:, None]).astype(np.int64))
    seen = torch.arange(2 * side) - corner[..., None]  # (n, T, 2, 2 side): which column and row of the image
    columns, rows = (seen.clamp(-1, side) + 1).unbind(2)
    framed = functional.pad(images, (1, 1, 1, 1))  # pixels outside the image are taken from this black border
    which = torch.arange(count)[:, None, None, None]
    return framed[which, :, rows[..., :, None], columns[..., None, :]].permute(0, 4, 1, 2, 3).contiguous()


def speeds(count: int, side: int, rng: np.random.Generator) -> np.ndarray:
    """Draw ``(count,)`` speeds in pixels per frame, each 0.6 to 1.2 times an eighth of the images' side."""
    return rng.uniform(0.6, 1.2, count) * side / 8


def any_way(images: Tensor, count: int, frames: int, rng: np.random.Generator) -> Tensor:
    """Return ``(count, C, frames, 2 side, 2 side)`` clips of ``images`` that move at random angles."""
    chosen = sample(images, count, rng)
    angle, speed = rng.uniform(0, 2 * math.pi, count), speeds(count, images.shape[-1], rng)
    return moving(chosen, (speed * [np.cos(angle), np.sin(angle)]).T, frames, rng)


def replayed(clips: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """Return random ``(n, C, T, side, side)`` clips as others might have recorded them: zoomed, mirrored, reversed."""
    chosen, side = sample(clips, count, rng), clips.shape[-1]
    sizes = np.ceil(side * rng.uniform(0.6, 1.0, count)).astype(int)
    tops, lefts = (np.floor(rng.random(count) * (side - sizes + 1)).astype(int) for _ in range(2))
    mirrored, backwards = rng.random(count) < 0.5, rng.random(count) < 0.25
    made = []
    for clip, size, top, left, mirror, back in zip(chosen, sizes, tops, lefts, mirrored, backwards, strict=True):
        part = clip[:, :, top : top + size, left : left + size].transpose(0, 1)
        part = resize(part, side).transpose(0, 1)
        made.append(part.flip([axis for axis, flip in ((1, back), (3, mirror)) if flip]))
    return torch.stack(made)


@TASKS.register("movingdigits")
class MovingDigits(SeededSource):
    """Clips of moving digits, classified by digit and direction; stand-in for HMDB51.

    A clip has 8 frames of 16×16 pixels.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("movingdigits")(clips=80).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 8, 16, 16), 40, 80, 800)
    """

    classes: Literal["federated", "teachers"] = "federated"
    """Set of 40 classes: the clients' (right, left, down or up), or those for pre-training (diagonal motion)."""
    clips: int = Field(2000, ge=40)
    """Number of training clips, equally many per class."""
    test_clips: int = Field(800, ge=40)
    """Number of test clips, equally many per class, of digits that no training clip shows."""

    frames: int = Field(FRAMES, ge=1, le=FRAMES)
    """Number of frames that are kept, from the middles of equal parts of a clip, as in tasks with real videos. A single
    frame shows no direction."""

    def versions(self) -> tuple[Callable[[], Task], Callable[[int], Task]]:
        """Return functions that make the task, and the version whose digits a seed splits."""
        return self._fixed, self.draw

    def _fixed(self) -> Task:
        mine, tests = self._digits()
        rng = np.random.default_rng([0, self.classes == "teachers"])
        train, test = self._clips(self.clips, mine, rng), self._clips(self.test_clips, tests, rng)
        return self._task(train, test, mine[0])

    def draw(self, world: int) -> Task:
        """Make version ``world`` of the task; this number is the seed that splits the digits."""
        rng = stream(world, "movingdigits", self.classes, "clips")
        parts = Parts.of_two(*self._digits(), world, rng)
        train, validation, test = (
            self._clips(count, part, rng)
            for count, part in (
                (self.clips, parts.clients),
                (self.test_clips, parts.validation),
                (self.test_clips, parts.test),
            )
        )
        return self._task(train, test, parts.unlabelled[0], validation)

    def _digits(self) -> tuple[Labelled, Labelled]:
        images, labels = digits_images()
        for_clients, for_teachers, for_tests = map(torch.from_numpy, _split(labels.numpy()))
        mine = for_clients if self.classes == "federated" else for_teachers
        return (images[mine], labels[mine]), (images[for_tests], labels[for_tests])

    def _task(self, train: Labelled, test: Labelled, unlabelled: Tensor, validation: Labelled | None = None) -> Task:
        mean, std = train[0].mean(), train[0].std()
        kept = ((np.arange(self.frames) + 0.5) * FRAMES / self.frames).astype(int)

        def normalise(clips: Tensor) -> Tensor:
            return ((clips - mean) / std)[:, :, kept].contiguous()

        return Task(
            name=TASKS.name_of(type(self)),
            inputs=normalise(train[0]),
            labels=train[1],
            test_inputs=normalise(test[0]),
            test_labels=test[1],
            validation=None if validation is None else (normalise(validation[0]), validation[1]),
            num_classes=10 * len(self._ways),
            source="made of UCI optical recognition of handwritten digits, shipped by scikit-learn",
            unlabelled={
                "cross": lambda n, rng: normalise(any_way(resize(mnist_images()[0], 8), n, FRAMES, rng)),
                "natural": lambda n, rng: normalise(any_way(warped(unlabelled, n, rng), n, FRAMES, rng)),
                "synthetic": lambda n, rng: normalise(any_way(strokes(8, n, rng), n, FRAMES, rng)),
            },
            class_names=tuple(f"{digit} {way}" for digit in range(10) for way in self._ways),
            licence="CC BY 4.0",
            stands_in_for="HMDB51 and UCF101" if self.classes == "federated" else "Kinetics",
        )

    @property
    def _ways(self) -> dict[str, tuple[int, int]]:
        """Name of each direction -> the step from a frame to the next."""
        return STRAIGHT if self.classes == "federated" else DIAGONAL

    def _clips(self, count: int, digits: Labelled, rng: np.random.Generator) -> Labelled:
        images, labels = digits[0], digits[1].numpy()
        ways = np.array(list(self._ways.values()))
        classes = rng.permutation(np.arange(count) % (10 * len(ways)))
        of_digit = [np.flatnonzero(labels == digit) for digit in range(10)]
        places = np.array([rng.choice(of_digit[digit]) for digit in classes // len(ways)])
        steps = ways[classes % len(ways)] * speeds(count, 8, rng)[:, None]
        return moving(images[torch.from_numpy(places)], steps, FRAMES, rng), torch.from_numpy(classes)


def _split(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the indices of the digits for clients, pre-training and tests: 958, 479 and 360 of them."""
    rest, tests = stratified(labels, 360)
    clients, teachers = stratified(labels[rest], 479)
    return rest[clients], rest[teachers], tests
