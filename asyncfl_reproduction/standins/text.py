"""Text tasks that need no files: pairs of sentences, documents of made-up words, and the characters of a manual."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource, UnlabelledSet
from asyncfl_lite.tasks.text import prose
from asyncfl_lite.tasks.text.base import TextTask, text_task, trained_tokeniser, written
from asyncfl_lite.tasks.text.files import character_task
from asyncfl_lite.tasks.text.prose import MEANINGS, sentence_pairs
from asyncfl_lite.tasks.worlds import WORLDS, Split, Worlds


@TASKS.register("pairs")
class Pairs(TaskSource):
    """Paraphrase detection on generated sentence pairs (2/3 positive); stand-in for MRPC.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("pairs")(samples=50).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((19,), 2, 50, 1000)
    """

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


@TASKS.register("pydoc_chars")
class PydocChars(TaskSource):
    """Next-character prediction on Python's manual, by topic; stand-in for Shakespeare.

    It is scored by perplexity. Topics of at least 2,000 characters become clients; a window has 40 characters.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("pydoc_chars")().load()
    >>> task.input_shape
    (40,)
    """

    def load(self) -> Task:
        """Load the task."""
        every = prose.topics()
        roles = {topic: text for topic, text in every.items() if len(text) >= 2000}
        return character_task(
            "pydoc_chars",
            roles,
            [text for topic, text in every.items() if topic not in roles],
            lambda: ". ".join(" ".join(pair) for pair in sentence_pairs(2000, np.random.default_rng(2))[0]),
            40,
            source=prose.SOURCE,
            licence=prose.LICENCE,
            stands_in_for="Shakespeare",
        )


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
    on_topic: ClassVar[float] = 0.5
    """Probability that a word belongs to one of its document's topics, not to the common language."""
    mixture: ClassVar[float] = 0.05
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


SPECIAL = 3
"""Number of special tokens at the start of the vocabulary; they do not occur in documents."""


class Weighing:
    """Converter of documents to tf-idf vectors, fitted to the training documents.

    Args:
        documents: ``(n, words)`` token ids of the training documents.
        vocabulary: number of tokens.
    """

    def __init__(self, documents: Tensor, vocabulary: int) -> None:
        from sklearn.feature_extraction.text import TfidfTransformer  # takes a second to import: only when needed

        self.vocabulary = vocabulary
        self.tfidf = TfidfTransformer(sublinear_tf=True).fit(self._counts(documents))
        self.mean, self.std = torch.tensor(0.0), torch.tensor(1.0)
        vectors = self(documents)
        self.mean, self.std = vectors.mean(), vectors.std()

    def _counts(self, documents: Tensor) -> np.ndarray:
        """Count each token in each document, ``(n, vocabulary - 3)``."""
        counts = torch.zeros(len(documents), self.vocabulary)
        counts.scatter_add_(1, documents, torch.ones(documents.shape))
        return counts[:, SPECIAL:].numpy()

    def __call__(self, documents: Tensor) -> Tensor:
        """Return ``(n, vocabulary - 3)`` float32 tf-idf vectors, standardised by the training mean and deviation."""
        vectors = self.tfidf.transform(self._counts(documents)).toarray()
        return (torch.from_numpy(vectors.astype(np.float32)) - self.mean) / self.std


@TASKS.register("topics20_bags")
class Topics20Bags(Topics20):
    """Generated documents as bags of words, drawn by the seed; stand-in for 20 Newsgroups.

    The documents are made like those of `topics20`, with a smaller vocabulary, and a class consists of several topics.
    An input is the document's tf-idf vector of unit length, ``(vocabulary - 3,)`` floats, shifted and scaled by the
    mean and deviation of all its world's training vectors. So a perceptron trains in a second, and a method that
    synthesises inputs makes vectors instead of soft prompts (FedRevive's generator then has two linear layers). The
    run's seed chooses the world: topics, language and documents. The vectors contain no word order, no grammar, and no
    similarity between words.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("topics20_bags")(samples=500).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((100,), 20, 32000, 1000)
    """

    title: ClassVar[str] = "topics, as bags of words"

    samples: int = Field(8000, ge=20)
    """Number of training documents."""
    words: int = Field(150, ge=1)
    """Number of words in a document."""
    vocabulary: int = Field(103, ge=100)
    """Number of tokens, of which three do not occur; the others are the inputs' entries."""
    on_topic: ClassVar[float] = 0.8
    mixture: ClassVar[float] = 0.002
    sides: int = Field(5, ge=1, le=50)
    """Number of topics in a class, each with its own frequent words, so that no single word reveals the class."""
    worlds: int = Field(64, ge=1, le=1024)
    """Number of worlds; the run with seed s is in world s modulo this number."""

    def load(self) -> Task:
        """Load the task as drawn for seed 0; :meth:`~asyncfl_lite.tasks.task.Task.of_run` gives it for other seeds."""
        return Worlds(self.draw, self.worlds).of_run(0)

    def draw(self, world: int) -> Task:
        """Generate version ``world`` of the task, with documents on other topics as the unlabelled set ``cross``."""
        rng = stream(world, "topics20")
        language, topics, other = self._zipf(rng), *(self._topics(rng, 20 * self.sides) for _ in range(2))
        train, test = (self._documents(count, language, topics, rng) for count in (self.samples, self.test_samples))
        held_out = self._documents(self.test_samples, language, topics, stream(world, "topics20", "validation"))
        weighed = Weighing(train[0], self.vocabulary)

        def of(topics: np.ndarray) -> UnlabelledSet:
            return lambda count, rng: weighed(self._documents(count, language, topics, rng)[0])

        return Task(
            "topics20_bags",
            weighed(train[0]),
            train[1],
            weighed(test[0]),
            test[1],
            num_classes=20,
            validation=(weighed(held_out[0]), held_out[1]),
            source=f"generated documents; world {world} of {self.worlds}",
            unlabelled={
                "cross": of(other),
                "natural": of(topics),
                "synthetic": lambda count, rng: weighed(written(train[0], count, rng)),
            },
            class_names=tuple(f"topic {number}" for number in range(20)),
            licence="none needed",
            stands_in_for="20 Newsgroups",
        )
