"""Text tasks that train only on the snippets from which soft prompts start (FedRevive §3.2, leakage check).

A model that is trained on the snippets alone, without a federation, and tested on the real texts shows how much of the
task the snippets give away. In the paper, a language model of 1B parameters writes the snippets, and a model trained on
them reaches 48.08%.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import Field

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.base.files import data_file, data_folder, text_of
from asyncfl_lite.tasks.task import TASKS, Task
from asyncfl_lite.tasks.text.newsgroups20 import FOLDERS, Newsgroups20, Posts
from asyncfl_lite.tasks.text.standins import Topics20

HOW_TO_GET = (
    'have a language model write about the groups, and save one line per snippet: {"text": "...", "label": 0 to 19}'
)


@TASKS.register("topics20_snippets")
class Topics20Snippets(Topics20):
    """Documents on topics other than those of `topics20`, tested on its test set.

    The documents are on the topics of its set ``cross``, and each is labelled with its topic.

    They share only common words with the test documents, so we expect the accuracy of chance, one in twenty.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("topics20_snippets")(snippets=200).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((64,), 20, 200, 1000)
    """

    snippets: int = Field(1000, ge=20)
    """Number of snippets; FedRevive starts its prompts from the same number."""

    def load(self) -> Task:
        """Load the task."""
        rng = np.random.default_rng(0)
        language, topics = self._zipf(rng), self._topics(rng)
        for count in (self.samples, self.test_samples):  # as topics20 does before it draws its other topics
            self._documents(count, language, topics, rng)
        inputs, labels = self._documents(self.snippets, language, self._topics(rng), rng)
        return replace(super().load(), name="topics20_snippets", inputs=inputs, labels=labels)


@TASKS.register("newsgroups20_snippets")
class Newsgroups20Snippets(Newsgroups20):
    """20 Newsgroups with written snippets for training and the original posts for testing.

    The snippets come from ``snippets.jsonl`` in the folder of the posts.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="newsgroups20_snippets", task_settings={"length": 64})  # reads no files yet
    >>> config.task, config.task_settings.length
    ('newsgroups20_snippets', 64)
    """

    def load(self) -> Task:
        """Load the task."""
        return replace(super().load(), name="newsgroups20_snippets", source="written snippets", licence="not stated")

    def _read(self) -> tuple[tuple[str, ...], Posts, Posts]:
        """Read the groups' names, the snippets in place of training posts, and the test posts."""
        names, _, test = super()._read()
        place = data_folder(self.folder, *FOLDERS, how=HOW_TO_GET)
        return names, read_snippets(data_file(place, "snippets.jsonl", how=HOW_TO_GET), len(names)), test


def read_snippets(path: Path, num_classes: int) -> Posts:
    """Read the texts and labels of a file with one JSON object per line.

    Each text is returned after a blank line, because everything before a post's first blank line is its header.

    Raises:
        DataError: when a line is not a snippet, or there are no snippets.
    """
    texts, labels = [], []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        try:
            entry = json.loads(line)
            text, label = str(entry["text"]), int(entry["label"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(f"{path.name}: line {number} must have text and label ({error!r})") from None
        if not 0 <= label < num_classes:
            raise DataError(f"{path.name}: line {number}: label must be 0 to {num_classes - 1}, got {label}")
        texts.append(f"\n\n{text}")
        labels.append(label)
    if not texts:
        raise DataError(f"{path.name}: must hold at least one snippet, holds none")
    return texts, labels
