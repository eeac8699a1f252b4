"""Maths problems: MathInstruct for training and GSM8K for testing (FedEcho §5.3), GSM8K alone, and generated ones."""

from __future__ import annotations

import re
from abc import abstractmethod
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from asyncfl_lite.base.data_folders import data_file, data_folder, data_places
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.tasks.generation.base import LanguageTokens, Problem, generation_task, own_tokens, tokens_of
from asyncfl_lite.tasks.task import TASKS, Limited, Task, TaskSource
from asyncfl_lite.tasks.text.base import TokenisedSource, fetched, read_objects

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

    samples: int = Field(2000, ge=10, le=8000)
    """Number of training problems; all problems are different."""
    test_samples: int = Field(400, ge=10, le=1000)
    """Number of test problems, none of which is a training problem."""
    scored: int = Field(200, ge=1)
    """Number of test problems, the first ones, for which models write an answer."""

    largest: int = Field(9, ge=4, le=9)
    """Largest number in a problem; a smaller one leaves fewer sums to learn, each in more wordings."""

    def load(self) -> Task:
        """Load the task; its unlabelled sets include problems that no client has (``natural``) and sums (``cross``)."""
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


CALCULATOR = re.compile(r"<<.*?>>")
"""Pattern of the calculator notes in GSM8K's answers."""
MOST_STEPS_COUNTED = 8
"""Largest number of steps that is counted; longer solutions count as this many."""
GSM8K_HOW = (
    "get train.jsonl and test.jsonl of github.com/openai/grade-school-math and name the folder in task_settings "
    "folder or ASYNCFL_DATA, or set download to true"
)
MATHINSTRUCT_HOW = (
    "get MathInstruct.json (TIGER-Lab/MathInstruct on the Hugging Face hub) and name the folder in task_settings "
    "folder or ASYNCFL_DATA, or set download to true"
)


def read_gsm8k(folder: str | None, part: str, download: bool) -> list[Problem]:
    """Read GSM8K's 7,473 ``train`` or 1,319 ``test`` problems, without the calculator notes."""
    if download and not data_places(folder, *MathsSource.places):
        rows = fetched("openai/gsm8k", part, "question", "answer", config="main")
    else:
        place = data_folder(folder, *MathsSource.places, how=GSM8K_HOW)
        path = data_file(place, f"{part}.jsonl", how=GSM8K_HOW)
        rows = read_objects(path, question=str, answer=str).to_numpy().tolist()
    return [(question, CALCULATOR.sub("", answer)) for question, answer in rows]


class MathsSource(Limited, TokenisedSource):
    """Abstract base of tasks that are tested on GSM8K."""

    places = ("gsm8k", "GSM8K")
    title: ClassVar[str]
    about: ClassVar[dict[str, str]]

    length: int = Field(320, ge=16)
    """Number of tokens in question and answer together."""
    scored: int = Field(200, ge=0)
    """Number of test problems, the first ones, for which models write an answer. That takes one forward pass per token;
    with 0, `accuracy` is the token accuracy on the true answers instead."""
    held_out: int = Field(100, ge=1)
    """Number of training problems that no client gets: the unlabelled set `natural`, FedEcho's 100 held-out queries."""

    @abstractmethod
    def read(self) -> tuple[list[Problem], np.ndarray]:
        """Return the training problems, and the ``(n,)`` int64 kind of each."""

    @abstractmethod
    def cross(self) -> list[Problem]:
        """Return problems of a different data set, for the unlabelled set ``cross``."""

    def load(self) -> Task:
        """Load the task."""
        problems, kinds = self.read()
        count = len(problems) - self.held_out if self.samples is None else self.samples
        if not 0 < count <= len(problems) - self.held_out:
            raise ConfigError(
                f"samples, held_out: must be at most {len(problems)} together, got {count} and {self.held_out}"
            )
        order = np.random.default_rng(0).permutation(len(problems))[: count + self.held_out]
        mine, held_out = ([problems[place] for place in part] for part in np.split(order, [count]))
        if self.tokenizer is None:
            tokens = own_tokens(self.name, mine, self.vocabulary)
        else:
            tokens = tokens_of(self.tokenizer, self.download)
        return generation_task(
            self.name,
            tokens,
            self.length,
            mine,
            read_gsm8k(self.folder, "test", self.download)[: self.test_samples],
            kinds=kinds[order[:count]],
            natural=held_out,
            cross=self.cross,
            scored=self.scored,
            **self.about,
        )


@TASKS.register("gsm8k")
class GSM8K(MathsSource):
    """GSM8K: grade-school maths, scored by the final number (7,373 training, 1,319 test)."""

    title = "GSM8K"
    about = {"source": "GSM8K (Cobbe et al., 2021)", "licence": "MIT"}

    def read(self) -> tuple[list[Problem], np.ndarray]:
        """Read GSM8K's training problems; a problem's kind is the number of steps in its solution."""
        problems = read_gsm8k(self.folder, "train", self.download)
        steps = [min(answer.partition("####")[0].strip().count("\n") + 1, MOST_STEPS_COUNTED) for _, answer in problems]
        return problems, np.unique(steps, return_inverse=True)[1]

    def cross(self) -> list[Problem]:
        """Return generated arithmetic word problems, for the unlabelled set ``cross``."""
        return every_problem()[0]


@TASKS.register("mathinstruct")
class MathInstruct(MathsSource):
    """About 262,000 problems of MathInstruct for training, GSM8K's for testing, scored by the final number."""

    title = "MathInstruct, tested on GSM8K"
    about = {
        "source": "MathInstruct (Yue et al., 2024), GSM8K (Cobbe et al., 2021)",
        "licence": "MIT; parts of MathInstruct are under their sources' terms",
    }

    def files(self) -> list[Path]:
        """Return a list of the two data sets' folders, leaving out those that do not exist."""
        return data_places(self.folder, "MathInstruct", "mathinstruct") + super().files()

    def read(self) -> tuple[list[Problem], np.ndarray]:
        """Read MathInstruct's problems; a problem's kind is the source from which MathInstruct took it."""
        names = ("MathInstruct", "mathinstruct")
        if self.download and not data_places(self.folder, *names):
            rows = fetched("TIGER-Lab/MathInstruct", "train", "source", "instruction", "output")
        else:
            place = data_folder(self.folder, *names, how=MATHINSTRUCT_HOW)
            path = data_file(place, "MathInstruct.json", how=MATHINSTRUCT_HOW)
            rows = read_objects(path, source=str, instruction=str, output=str).to_numpy().tolist()
        sources, questions, answers = zip(*rows, strict=True)
        return list(zip(questions, answers, strict=True)), np.unique(sources, return_inverse=True)[1]

    def cross(self) -> list[Problem]:
        """Return GSM8K's training problems, for the unlabelled set ``cross``."""
        return read_gsm8k(self.folder, "train", self.download)
