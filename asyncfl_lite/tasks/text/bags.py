"""Documents as bags of words: vectors of word frequencies, from which a perceptron learns topics."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks.task import TASKS, Task, UnlabelledSet
from asyncfl_lite.tasks.text.standins import Topics20
from asyncfl_lite.tasks.text.unlabelled import written
from asyncfl_lite.tasks.worlds import Worlds

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
    on_topic: float = Field(0.8, ge=0, le=1)
    """Probability that a word belongs to one of its document's topics, not to the common language."""
    mixture: float = Field(0.002, gt=0)
    """Concentration of the Dirichlet law of a document's topics; the topic with the most weight decides the class."""
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
