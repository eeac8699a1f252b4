"""Text tasks without files: topics of Python's manual, pairs of sentences, documents of made-up words."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks.images.parts import WORLDS, Split
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource
from asyncfl_lite.tasks.text import prose
from asyncfl_lite.tasks.text.base import Text, TextTask, text_task, trained_tokeniser
from asyncfl_lite.tasks.text.sentences import MEANINGS, sentence_pairs
from asyncfl_lite.tasks.text.unlabelled import written
from asyncfl_lite.tasks.worlds import Worlds


@TASKS.register("pydoc_topics")
class PydocTopics(TaskSource):
    """Python's manual: predict a passage's topic (12 classes); stand-in for 20 Newsgroups.

    The passages are real prose.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("pydoc_topics")().load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((31,), 12, 1647, 408)
    """

    topics: int = Field(12, ge=2, le=20)
    """Number of classes: the topics with the most prose."""
    words: int = Field(15, ge=5)
    """Number of words in a passage."""
    length: int = Field(32, ge=8)
    """Number of tokens that a model reads, including its prediction token."""
    vocabulary: int = Field(1000, ge=100)
    """Largest number of tokens of the task's tokeniser."""

    def load(self) -> Task:
        """Load the task: every fifth passage is a test sample; passages on the remaining topics are unlabelled."""
        every = prose.topics()
        names = list(every)[: self.topics]
        train: tuple[list[Text], list[int]] = ([], [])
        test: tuple[list[Text], list[int]] = ([], [])
        for label, name in enumerate(names):
            for number, passage in enumerate(prose.passages(every[name], self.words)):
                texts, labels = test if number % 5 == 4 else train
                texts.append((passage,))
                labels.append(label)
        small = list(every)[self.topics :]
        others = [(passage,) for name in small for passage in prose.passages(every[name], self.words)]
        return text_task(
            "pydoc_topics",
            trained_tokeniser("pydoc_topics", train[0], self.vocabulary),
            self.length,
            train,
            test,
            cross=lambda: sentence_pairs(2000, np.random.default_rng(2))[0],
            natural=others,
            num_classes=self.topics,
            class_names=tuple(names),
            source=prose.SOURCE,
            licence=prose.LICENCE,
            stands_in_for="20 Newsgroups",
        )


@TASKS.register("pairs")
class Pairs(TaskSource):
    """Paraphrase detection on generated sentence pairs (2/3 positive); stand-in for MRPC.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("pairs")(samples=50).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((19,), 2, 50, 1000)
    """

    later: ClassVar[frozenset[str]] = frozenset({"meanings", "split"})
    samples: int = Field(4000, ge=10)
    """Number of training pairs."""
    test_samples: int = Field(1000, ge=10)
    """Number of test pairs, and of validation pairs if there are any."""
    length: int = Field(20, ge=8)
    """Number of tokens that a model reads, including its prediction token; the longest pairs need 19."""
    meanings: int = Field(MEANINGS, ge=2, le=MEANINGS)
    """Number of meanings of each of a sentence's four parts; with fewer, the task is learned sooner."""
    split: Split = "fixed"
    """``fixed``: the same pairs for all seeds, and none for validation. ``seeded``: the seed draws all pairs, including
    those for validation."""

    def load(self) -> Task:
        """Load the task, with more pairs of the same kind as the unlabelled set ``natural``."""
        return self.draw(0) if self.split == "fixed" else Worlds(self.draw, WORLDS).of_run(0)

    def draw(self, world: int) -> TextTask:
        """Generate version ``world`` of the task; all versions have the tokeniser of version 0."""
        rng = np.random.default_rng(world)
        train, test = (self._pairs(count, rng) for count in (self.samples, self.test_samples))
        natural, _ = self._pairs(2000, rng)
        other = prose.prose(5, parts=2)
        first, _ = self._pairs(self.samples, np.random.default_rng(0))
        return text_task(
            "pairs",
            trained_tokeniser("pairs", [*first, *other], 800),
            self.length,
            train,
            test,
            cross=lambda: other,
            natural=natural,
            validation=self._pairs(self.test_samples, rng) if self.split == "seeded" else None,
            num_classes=2,
            class_names=("different", "same"),
            source="generated sentences",
            licence="none needed",
            stands_in_for="MRPC",
        )

    def _pairs(self, count: int, rng: np.random.Generator) -> tuple[list[tuple[str, str]], list[int]]:
        return sentence_pairs(count, rng, meanings=self.meanings)


@TASKS.register("topics20")
class Topics20(TaskSource):
    """Generated documents of 64 words on 20 topics; stand-in for 20 Newsgroups.

    The order of the words does not matter.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("topics20")(samples=500).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((64,), 20, 500, 1000)
    """

    samples: int = Field(4000, ge=20)
    """Number of training documents."""
    test_samples: int = Field(1000, ge=20)
    """Number of test documents."""
    words: int = Field(64, ge=1)
    """Number of words in a document."""
    vocabulary: int = Field(2000, ge=100)
    """Number of tokens; the first three are special ones that do not occur."""
    on_topic: float = Field(0.5, ge=0, le=1)
    """Probability that a word belongs to one of its document's topics, not to the common language."""
    mixture: float = Field(0.05, gt=0)
    """Concentration of the Dirichlet law of a document's topics; the class is the topic with the most weight."""

    def load(self) -> Task:
        """Load the task, with unlabelled sets of more documents (``natural``) and of other topics (``cross``)."""
        rng = np.random.default_rng(0)
        language, topics = self._zipf(rng), self._topics(rng)
        train, test = (self._documents(count, language, topics, rng) for count in (self.samples, self.test_samples))
        other = self._topics(rng)
        return TextTask(
            "topics20",
            *train,
            *test,
            num_classes=20,
            source="generated documents",
            unlabelled={
                "cross": lambda count, rng: self._documents(count, language, other, rng)[0],
                "natural": lambda count, rng: self._documents(count, language, topics, rng)[0],
                "synthetic": lambda count, rng: written(train[0], count, rng),
            },
            validation=self._documents(self.test_samples, language, topics, stream(0, "topics20", "validation")),
            vocabulary=self.vocabulary,
            class_names=tuple(f"topic {number}" for number in range(20)),
            licence="none needed",
            stands_in_for="20 Newsgroups",
            decode=lambda row: " ".join(f"w{number}" for number in row.tolist()),
        )

    def _zipf(self, rng: np.random.Generator) -> np.ndarray:
        """Return ``(vocabulary - 3,)`` word probabilities: Zipf's law with ranks from 3, in random order."""
        size = self.vocabulary - 3
        weights = 1.0 / (rng.permutation(size) + 3)
        return weights / weights.sum()

    def _topics(self, rng: np.random.Generator, count: int = 20) -> np.ndarray:
        """Return ``(count, vocabulary - 3)`` word probabilities, a row per topic: Zipf's law, each in its own order."""
        return np.stack([self._zipf(rng) for _ in range(count)])

    def _documents(
        self, count: int, language: np.ndarray, topics: np.ndarray, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return ``(count, words)`` token ids and ``(count,)`` classes, all equally likely."""
        weights = rng.dirichlet(np.full(len(topics), self.mixture), size=count)
        mixed = self.on_topic * weights @ topics + (1 - self.on_topic) * language
        drawn = rng.random((count, self.words))
        places = np.stack([np.searchsorted(row.cumsum(), at) for row, at in zip(mixed, drawn, strict=True)])
        ids = places.clip(max=self.vocabulary - 4) + 3
        return torch.from_numpy(ids), torch.from_numpy(weights.argmax(1) * 20 // len(topics))
