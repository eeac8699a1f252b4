"""Parts of a set of images, split by a seed: for clients, for validation, unlabelled for the server, for testing.

No image is in two parts. The images that may be used for testing are the same for every seed. So, if settings are
chosen on one seed's validation images, no other seed tests on any of these. From the images for testing, the seed draws
those that are used, how often each is used, and what lies over it, so an interval over seeds also covers the choice of
test images.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from asyncfl_lite.tasks.images.image_task import Labelled
from asyncfl_lite.tasks.images.packaged import split

SHARE = 0.1
"""Fraction of the training images for validation; the same number goes to the unlabelled set."""


WORLDS = 64
"""Number of ways to split the images; the run with seed s uses split number s modulo this number."""

Split = Literal["fixed", "seeded"]
"""``fixed``: one split into training and test images for all seeds; nothing is kept for validation, and the natural
unlabelled set is made from training images. ``seeded``: the seed splits the images into :class:`Parts`."""


class Parts(NamedTuple):
    """Disjoint parts of labelled images: for clients, for validation, unlabelled for the server, and for testing."""

    clients: Labelled
    validation: Labelled
    unlabelled: Labelled
    test: Labelled

    @classmethod
    def of(cls, pool: Labelled, test_size: int, seed: int, rng: np.random.Generator) -> Parts:
        """Split labelled images into the four parts, by a seed.

        Args:
            pool: all available images.
            test_size: number of images for testing, which are the same for every seed; the returned test part has as
                many images, drawn from these with replacement.
            seed: seed of the split.
            rng: generator that draws the test images.
        """
        return cls.of_two(*split(*pool, test_size), seed, rng)

    @classmethod
    def of_two(cls, train: Labelled, test: Labelled, seed: int, rng: np.random.Generator) -> Parts:
        """Split training images into three parts, by a seed, and draw the test part from the test images.

        Args:
            train: the training images, which are divided among clients, validation and the unlabelled set.
            test: the test images, from which as many are drawn with replacement.
            seed: seed of the split.
            rng: generator that draws the test images.
        """
        count = round(SHARE * len(train[1]))
        own, validation = split(*train, count, seed)
        own, unlabelled = split(*own, count, seed)
        again = rng.integers(len(test[1]), size=len(test[1]))
        return cls(own, validation, unlabelled, (test[0][again], test[1][again]))
