"""Generated arithmetic word problems, written and read character by character."""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import numpy as np
from pydantic import Field

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.tasks.generation.base import LanguageTokens, Problem, generation_task
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource

SPECIAL = ("[PAD]", "[ANSWER]", "[END]", "[UNK]")
CHARACTERS = " abcdefghijklmnopqrstuvwxyz0123456789.,?+-*/%="
NAMES = ("ann", "bob", "eve", "ida", "leo", "max", "tom", "zoe")
THINGS = ("pens", "cups", "eggs", "nuts")
KINDS = {
    "gets {b}": lambda a, b: a + b,
    "uses {b}": lambda a, b: a - b if a >= b else None,
    "twice {b}": lambda a, b: a + 2 * b,
    "shares {b}": lambda a, b: a % b if b > 1 else None,
}
"""Endings of problems, with functions that compute the answers; the last ending asks for a remainder."""

HELD_OUT = 1000
"""Number of problems that are kept from both the clients and the test set."""
QUESTION_LENGTH = 26
"""Number of characters in a question; shorter questions are padded with spaces in front."""


def characters() -> LanguageTokens:
    """Return a tokeniser of 46 characters and 4 special tokens; letters become lower case."""
    ids = {character: len(SPECIAL) + number for number, character in enumerate(CHARACTERS)}
    unknown = SPECIAL.index("[UNK]")
    texts = ["", "=", "", "?", *CHARACTERS]

    def encode(text: str) -> list[int]:
        return [ids.get(character, unknown) for character in text.lower()]

    return LanguageTokens(
        encode=encode,
        decode=lambda row: "".join(texts[token] for token in row),
        prompt=lambda question: [*encode(question.rjust(QUESTION_LENGTH)), 1],
        size=len(texts),
        marker=(1,),
        end=2,
        padding=0,
    )


def every_problem(largest: int = 9) -> tuple[list[Problem], np.ndarray]:
    """Return all possible problems with numbers up to ``largest``, and the kind of each."""
    problems, kinds = [], []
    for kind, (ending, solve) in enumerate(KINDS.items()):
        for name, thing, a, b in product(NAMES, THINGS, range(largest + 1), range(largest + 1)):
            if (answer := solve(a, b)) is not None:
                problems.append((f"{name} has {a} {thing}, {ending.format(b=b)}", str(answer)))
                kinds.append(kind)
    return problems, np.array(kinds)


def sums() -> list[Problem]:
    """Return all sums and remainders of the numbers 0 to 9 as problems without words, such as ``3+4``."""
    pairs = list(product(range(10), range(10)))
    return [(f"{a}+{b}", str(a + b)) for a, b in pairs] + [(f"{a}%{b}", str(a % b)) for a, b in pairs if b]


@TASKS.register("modmath")
class ModMath(TaskSource):
    """Generated arithmetic problems, read by character; stand-in for MathInstruct and GSM8K.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("modmath")(samples=1000).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((29,), 50, 1000, 400)
    """

    title: ClassVar[str] = "modmath"
    later: ClassVar[frozenset[str]] = frozenset({"largest"})

    samples: int = Field(2000, ge=10, le=8000)
    """Number of training problems; all problems are different."""
    test_samples: int = Field(400, ge=10, le=1000)
    """Number of test problems, none of which is a training problem."""
    scored: int = Field(200, ge=1)
    """Number of test problems, the first ones, for which models write an answer."""

    largest: int = Field(9, ge=4, le=9)
    """Largest number in a problem; a smaller one leaves fewer sums to learn, each in more wordings."""

    def load(self) -> Task:
        """Load the task; its unlabelled sets include problems that no client has (``natural``) and sums (``cross``).

        The set ``natural`` holds 1,000 problems, and ``cross`` holds bare sums and remainders.

        Raises:
            ConfigError: when there are not enough problems.
        """
        problems, kinds = every_problem(self.largest)
        if self.samples + self.test_samples + HELD_OUT > len(problems):
            most = len(problems) - HELD_OUT - self.test_samples
            raise ConfigError(f"samples: must be at most {most} with largest={self.largest}, got {self.samples}")
        order = np.random.default_rng(0).permutation(len(problems))
        train, test, held_out = np.split(order[: self.samples + self.test_samples + HELD_OUT],
                                         [self.samples, self.samples + self.test_samples])  # fmt: skip
        return generation_task(
            "modmath",
            characters(),
            QUESTION_LENGTH + 3,  # a marker and two digits; the end is only predicted
            [problems[place] for place in train],
            [problems[place] for place in test],
            kinds=kinds[train],
            natural=[problems[place] for place in held_out],
            cross=sums,
            scored=self.scored,
            source="generated arithmetic problems",
            licence="none needed",
            stands_in_for="MathInstruct and GSM8K",
        )
