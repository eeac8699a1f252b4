"""Grade-school maths: MathInstruct for training and GSM8K for testing (FedEcho §5.3), or GSM8K alone."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from asyncfl_lite.base.errors import ConfigError, DataError, needs, reason
from asyncfl_lite.base.files import data_file, data_folder, data_places, text_of
from asyncfl_lite.tasks.generation.base import generation_task
from asyncfl_lite.tasks.generation.language_tokens import Problem, checkpoint_tokens, own_tokens
from asyncfl_lite.tasks.generation.modmath import every_problem
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource

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


def read_rows(path: Path, *keys: str) -> list[tuple[str, ...]]:
    """Read the given text fields of every object in a file that holds a JSON list, or one JSON object per line.

    Raises:
        DataError: when the file is not JSON, or an object lacks one of the fields (the message says which object).
    """
    text = text_of(path)
    try:
        listed = text.lstrip().startswith("[")
        rows: list[Any] = json.loads(text) if listed else [json.loads(line) for line in text.splitlines() if line]
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({reason(error)})") from None
    if not rows:
        raise DataError(f"{path}: must hold at least one object with the texts {', '.join(keys)}, holds none")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in keys):
            raise DataError(f"{path}: object {number} must have the texts {', '.join(keys)}")
    return [tuple(row[key] for key in keys) for row in rows]


def fetched(repository: str, part: str, *keys: str, config: str | None = None) -> list[tuple[str, ...]]:
    """Read columns of a data set on the Hugging Face hub, downloaded through `datasets` on first use.

    Raises:
        DataError: when the data set cannot be fetched.
    """
    with needs("text", "downloading this data set"):
        import datasets

    try:
        table = datasets.load_dataset(repository, config, split=part)
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise DataError(f"download: {repository} cannot be fetched ({reason})") from None
    return list(zip(*(table[key] for key in keys), strict=True))


def read_gsm8k(folder: str | None, part: str, download: bool) -> list[Problem]:
    """Read GSM8K's 7,473 ``train`` or 1,319 ``test`` problems, without the calculator notes.

    Raises:
        DataError: when the problems are not available.
    """
    try:
        path = data_file(data_folder(folder, "gsm8k", "GSM8K", how=GSM8K_HOW), f"{part}.jsonl", how=GSM8K_HOW)
    except DataError:
        if not download:
            raise
        rows = fetched("openai/gsm8k", part, "question", "answer", config="main")
    else:
        rows = read_rows(path, "question", "answer")
    return [(question, CALCULATOR.sub("", answer)) for question, answer in rows]


class MathsSource(TaskSource):
    """Abstract base of tasks that are tested on GSM8K."""

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[dict[str, str]]

    folder: str | None = None
    """Folder that contains the data sets' folders; None for ASYNCFL_DATA, else the cache folder."""
    download: bool = False
    """Whether missing data or a missing tokeniser may be downloaded."""
    length: int = Field(320, ge=16)
    """Number of tokens in question and answer together."""
    tokenizer: str | None = None
    """Folder or name of a language model whose tokeniser to use, or ``smollm2``; None for a small one made for this
    task."""
    gguf_file: str | None = None
    """Name of the GGUF file in the tokeniser's folder, if it comes in one."""
    vocabulary: int = Field(4000, ge=100)
    """Largest number of tokens of the task's own tokeniser."""
    samples: int | None = Field(None, ge=1)
    """Number of training problems, the first of a fixed shuffle; None for all."""
    test_samples: int | None = Field(None, ge=1)
    """Number of test problems, the first ones; None for all."""
    scored: int = Field(200, ge=0)
    """Number of test problems, the first ones, for which models write an answer. That takes one forward pass per token;
    with 0, `accuracy` is the token accuracy on the true answers instead."""
    held_out: int = Field(100, ge=1)
    """Number of training problems that no client gets: the unlabelled set `natural`, FedEcho's 100 held-out queries."""

    def files(self) -> list[Path]:
        """Return a list with GSM8K's folder, which has the test problems; an empty list if it does not exist."""
        return data_places(self.folder, "gsm8k", "GSM8K")

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
            tokens = checkpoint_tokens(self.tokenizer, self.download, self.gguf_file)
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
    """GSM8K: grade-school maths, scored by the final number (7,373 training, 1,319 test).

    >>> from asyncfl_lite import Config
    >>> config = Config(task="gsm8k", task_settings={"samples": 1000})  # the files are read when a run starts
    >>> config.task, config.task_settings.samples
    ('gsm8k', 1000)
    """

    name = "gsm8k"
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
    """About 262,000 problems of MathInstruct for training, and those of GSM8K for testing.

    An answer is scored by its final number.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="mathinstruct", task_settings={"samples": 1000})  # the files are read when a run starts
    >>> config.task, config.task_settings.samples
    ('mathinstruct', 1000)
    """

    name = "mathinstruct"
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
        keys = ("source", "instruction", "output")
        try:
            place = data_folder(self.folder, "MathInstruct", "mathinstruct", how=MATHINSTRUCT_HOW)
        except DataError:
            if not self.download:
                raise
            rows = fetched("TIGER-Lab/MathInstruct", "train", *keys)
        else:
            names = ("MathInstruct.json", "MathInstruct.jsonl", "train.jsonl")
            rows = read_rows(data_file(place, *names, how=MATHINSTRUCT_HOW), *keys)
        return [(question, answer) for _, question, answer in rows], np.unique(
            [source for source, _, _ in rows], return_inverse=True
        )[1]

    def cross(self) -> list[Problem]:
        """Return GSM8K's training problems, for the unlabelled set ``cross``."""
        return read_gsm8k(self.folder, "train", self.download)
