"""Next-character prediction by role: Shakespeare's plays (LEAF, Caldas et al. 2018; KUIPER §4) and a stand-in.

A role's text is cut into windows that follow each other. A sample has the L characters of a window as inputs and the L
characters one position later as labels, so the model predicts at every position. LEAF, instead, shifts its window of 80
by one character and predicts one character. The first four fifths of each role's windows are for training, and the
last are for testing. Roles with little text do not become clients; their text is the unlabelled set ``natural``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.files import data_file, data_folder, data_places, text_of
from asyncfl_lite.tasks.images.unlabelled import sample
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource
from asyncfl_lite.tasks.text import prose
from asyncfl_lite.tasks.text.sentences import sentence_pairs
from asyncfl_lite.tasks.text.sequences import SequenceTask
from asyncfl_lite.tasks.text.unlabelled import written

HOW_TO_GET = (
    "get tinyshakespeare's input.txt (github.com/karpathy/char-rnn), or any plays of blocks 'SPEAKER:' and speech "
    "with empty lines between them, and name the folder in task_settings folder or ASYNCFL_DATA"
)
UNKNOWN = "\N{REPLACEMENT CHARACTER}"
"""Token for every character that is not in an alphabet's texts; its id is 0."""


class Alphabet:
    """The characters of a text, numbered from 1; 0 stands for any other.

    Args:
        texts: the texts that contain the characters.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.characters = UNKNOWN + "".join(sorted(set().union(*texts)))
        self._ids = {character: number for number, character in enumerate(self.characters)}

    def __len__(self) -> int:
        return len(self.characters)

    def windows(self, text: str, length: int) -> Tensor:
        """Cut a text into ``(n, length + 1)`` ids; each window begins with the last character of the one before."""
        ids = torch.tensor([self._ids.get(character, 0) for character in text], dtype=torch.int64)
        if len(ids) <= length:
            return ids.new_zeros(0, length + 1)
        return ids.unfold(0, length + 1, length)

    def decode(self, row: Tensor) -> str:
        """Return the text of ``(L,)`` ids."""
        return "".join(self.characters[number] for number in row.tolist())


def character_task(
    name: str,
    roles: Mapping[str, str],
    others: Iterable[str],
    cross: Callable[[], str],
    length: int,
    **about: Any,
) -> SequenceTask:
    """Make a task of predicting the next character in roles' texts; the roles are the samples' owners.

    Its unlabelled sets are ``cross``, another text; ``natural``, other roles' texts; and ``synthetic``, texts from a
    Markov chain in which each character follows the three before it as in the training windows.

    Args:
        name: the task's name in configurations.
        roles: role -> text, of at least five windows each.
        others: texts of roles that are not clients.
        cross: function that returns another text.
        length: number L of characters in a window.
        about: the task's other fields.

    Raises:
        ConfigError: when there are no roles, or one has fewer than five windows.
    """
    alphabet = Alphabet(roles.values())
    windows = [alphabet.windows(text, length) for text in roles.values()]
    if min(map(len, windows), default=0) < 5:
        raise ConfigError(f"least: must leave some roles, each with 5 windows of {length} characters or more")
    cuts = [len(own) * 4 // 5 for own in windows]
    train = torch.cat([own[:cut] for own, cut in zip(windows, cuts, strict=True)])
    test = torch.cat([own[cut:] for own, cut in zip(windows, cuts, strict=True)])
    owners = np.repeat(np.arange(len(windows)), cuts)

    def drawn(texts: Iterable[str], count: int, rng: np.random.Generator) -> Tensor:
        return sample(torch.cat([alphabet.windows(text, length) for text in texts])[:, :-1], count, rng)

    others = tuple(others)
    return SequenceTask(
        name,
        train[:, :-1],
        train[:, 1:],
        test[:, :-1],
        test[:, 1:],
        num_classes=len(alphabet),
        unlabelled={
            "cross": lambda count, rng: drawn([cross()], count, rng),
            "natural": lambda count, rng: drawn(others, count, rng),
            "synthetic": lambda count, rng: written(train[:, :-1], count, rng, order=3),
        },
        owners=owners,
        kinds=owners,
        vocabulary=len(alphabet),
        class_names=tuple(alphabet.characters),
        metric="perplexity",
        decode=alphabet.decode,
        **about,
    )


def roles_of(play: str) -> tuple[dict[str, str], dict[str, int]]:
    """Return each role's speeches, joined by line breaks, and the number of characters in its blocks.

    The number includes the name at the head of a block.

    Args:
        play: text of blocks with empty lines between them, each with a line ``SPEAKER:`` and a speech.
    """
    speeches: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for block in re.split(r"\n\n+", play.strip()):
        speaker, _, speech = block.partition("\n")
        if speaker.endswith(":") and speech:
            speeches.setdefault(speaker[:-1], []).append(speech)
            sizes[speaker[:-1]] = sizes.get(speaker[:-1], 0) + len(block)
    return {role: "\n".join([*said, ""]) for role, said in speeches.items()}, sizes


@TASKS.register("shakespeare")
class Shakespeare(TaskSource):
    """Next-character prediction on Shakespeare's plays, by role (105 roles of tinyshakespeare).

    It is scored by perplexity.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="shakespeare", task_settings={"length": 40})  # the files are read when a run starts
    >>> config.task, config.task_settings.length
    ('shakespeare', 40)
    """

    folder: str | None = None
    """Folder that contains input.txt or tinyshakespeare/; None for ASYNCFL_DATA, else the cache folder."""
    least: int = Field(2000, ge=1)
    """Number of characters that a role needs to become a client, counting its name at the head of each block."""
    length: int = Field(80, ge=2)
    """Number of characters in a window."""

    def files(self) -> list[Path]:
        """Return a list with the data set's folder; an empty list if it does not exist."""
        return data_places(self.folder, "tinyshakespeare", "shakespeare")

    def load(self) -> Task:
        """Load the task."""
        place = data_folder(self.folder, "tinyshakespeare", "shakespeare", how=HOW_TO_GET)
        path = data_file(place, "input.txt", how=HOW_TO_GET)
        speeches, sizes = roles_of(text_of(path))
        roles = {role: text for role, text in speeches.items() if sizes[role] >= self.least}
        others = [text for role, text in speeches.items() if role not in roles]
        return character_task(
            "shakespeare",
            roles,
            others,
            lambda: " ".join(prose.topics().values()),
            self.length,
            source="William Shakespeare, compiled by Andrej Karpathy (tinyshakespeare)",
            licence="public domain; the compilation states none",
        )


@TASKS.register("pydoc_chars")
class PydocChars(TaskSource):
    """Next-character prediction on Python's manual, by topic; stand-in for Shakespeare.

    It is scored by perplexity.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("pydoc_chars")().load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((40,), 103, 5712, 1443)
    """

    least: int = Field(2000, ge=1)
    """Number of characters that a topic needs to become a client."""
    length: int = Field(40, ge=2)
    """Number of characters in a window."""

    def load(self) -> Task:
        """Load the task."""
        every = prose.topics()
        roles = {topic: text for topic, text in every.items() if len(text) >= self.least}
        return character_task(
            "pydoc_chars",
            roles,
            [text for topic, text in every.items() if topic not in roles],
            lambda: ". ".join(" ".join(pair) for pair in sentence_pairs(2000, np.random.default_rng(2))[0]),
            self.length,
            source=prose.SOURCE,
            licence=prose.LICENCE,
            stands_in_for="Shakespeare",
        )
