"""Parts of a set of images, split by a seed: for clients, for validation, unlabelled for the server, for testing.

No image is in two parts. Which images may be tested on is the same for every seed, so that settings that were chosen on
one seed's validation images were chosen on none that another seed tests on. Which of them are tested, how often, and
what lies over them, the seed draws: an interval over seeds covers the choice of test images too.
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
unlabelled set is made of training images. ``seeded``: :class:`Parts`."""


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
            pool: all images there are.
            test_size: how many of them are for testing, for every seed the same ones; of these, the returned part has
                as many, drawn with replacement.
            seed: of the split.
            rng: draws test images.
        """
        return cls.of_two(*split(*pool, test_size), seed, rng)

    @classmethod
    def of_two(cls, train: Labelled, test: Labelled, seed: int, rng: np.random.Generator) -> Parts:
        """Split training images into three parts, by a seed, and draw the test part from the test images.

        Args:
            train: is split into what clients, validation and the unlabelled set get.
            test: as many of these are drawn with replacement.
            seed: of the split.
            rng: draws test images.
        """
        count = round(SHARE * len(train[1]))
        own, validation = split(*train, count, seed)
        own, unlabelled = split(*own, count, seed)
        again = rng.integers(len(test[1]), size=len(test[1]))
        return cls(own, validation, unlabelled, (test[0][again], test[1][again]))
