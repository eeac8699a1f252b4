"""Texts without files: prose from the manual that ships with CPython, and generated pairs of sentences.

The prose is that of the chapters of the language reference that ``help()`` shows. They differ a little from one Python
version to the next, so results on them are valid for the version that they record.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar

import numpy as np
from pydantic import Field

from asyncfl_lite.tasks.task import TASKS, Task, TaskSource
from asyncfl_lite.tasks.text.base import Text, text_task, trained_tokeniser

SOURCE = "the Python language reference, shipped by CPython in pydoc_data.topics"
LICENCE = "PSF License Version 2"
NO_PROSE = re.compile(r"\||[*=~^.+|-]{3,}")
"""Pattern of the drawn lines under headings and around tables, which are not prose."""


@lru_cache(maxsize=1)
def topics() -> dict[str, str]:
    """Return the prose of each topic, with single spaces between words, sorted from longest to shortest.

    Some chapters contain others, so a paragraph counts only for the shortest chapter that has it.
    """
    from pydoc_data.topics import topics as chapters

    owner: dict[str, str] = {}
    for topic in sorted(chapters, key=lambda topic: (len(chapters[topic]), topic)):
        for paragraph in re.split(r"\n\s*\n", chapters[topic]):
            owner.setdefault(" ".join(word for word in paragraph.split() if not NO_PROSE.fullmatch(word)), topic)
    own: dict[str, list[str]] = {}
    for paragraph, topic in owner.items():
        if paragraph:
            own.setdefault(topic, []).append(paragraph)
    joined = {topic: " ".join(paragraphs) for topic, paragraphs in own.items()}
    return dict(sorted(joined.items(), key=lambda item: (-len(item[1]), item[0])))


def passages(text: str, words: int) -> list[str]:
    """Cut a text into passages of ``words`` words; a shorter remainder is dropped."""
    split = text.split()
    return [" ".join(split[start : start + words]) for start in range(0, len(split) - words + 1, words)]


def prose(words: int, parts: int = 1) -> list[tuple[str, ...]]:
    """Return all prose as texts of ``parts`` consecutive passages, of ``words`` words each."""
    cut = [passages(text, words) for text in topics().values()]
    return [tuple(topic[place : place + parts]) for topic in cut for place in range(0, len(topic) - parts + 1, parts)]


AGENTS = ("company firm", "doctor physician", "teacher instructor", "judge magistrate", "author writer")
"""Five meanings, each with its synonyms."""
ACTS = ("bought purchased", "praised commended", "helped assisted", "watched observed", "fixed repaired")
THINGS = ("car automobile", "house home", "shop store", "ship vessel", "movie film")
TIMES = ("lately recently", "quickly rapidly", "often frequently", "again anew", "finally eventually")
SLOTS = tuple(tuple(tuple(words.split()) for words in slot) for slot in (AGENTS, ACTS, THINGS, TIMES))
MEANINGS = len(AGENTS)


def sentence(meaning: np.ndarray, rng: np.random.Generator) -> str:
    """Render a meaning (four slot indices) as a sentence with random synonyms, active or passive."""
    words = [slot[number][rng.integers(2)] for slot, number in zip(SLOTS, meaning, strict=True)]
    agent, act, thing, time = words
    if rng.random() < 0.5:
        return f"the {agent} {act} the {thing} {time}"
    return f"the {thing} was {act} by the {agent} {time}"


def sentence_pairs(
    count: int, rng: np.random.Generator, positive: float = 2 / 3, meanings: int = MEANINGS
) -> tuple[list[tuple[str, str]], list[int]]:
    """Return pairs of sentences, with label 1 if both mean the same, else 0.

    If they do not, three or all four parts of the second sentence mean something else.

    Args:
        positive: probability of label 1; MRPC's share is two thirds.
        meanings: how many of each part's five meanings occur.
    """
    pairs, labels = [], []
    for label in (rng.random(count) < positive).astype(int).tolist():
        first = rng.integers(meanings, size=4)
        second = first.copy()
        if not label:
            others = rng.permutation(4)[: rng.integers(3, 5)]
            second[others] = (second[others] + rng.integers(1, meanings, size=len(others))) % meanings
        pairs.append((sentence(first, rng), sentence(second, rng)))
        labels.append(label)
    return pairs, labels


@TASKS.register("pydoc_topics")
class PydocTopics(TaskSource):
    """Python's manual: predict a passage's topic (12 classes); stand-in for 20 Newsgroups.

    The passages are real prose.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("pydoc_topics")().load()
    >>> task.input_shape, task.num_classes
    ((31,), 12)
    """

    topics: int = Field(12, ge=2, le=20)
    """Number of classes: the topics with the most prose."""
    words: ClassVar[int] = 15
    """Number of words in a passage."""
    length: ClassVar[int] = 32
    """Number of tokens that a model reads, including its prediction token."""
    vocabulary: ClassVar[int] = 1000
    """Largest number of tokens of the task's tokeniser."""

    def load(self) -> Task:
        """Load the task: every fifth passage is a test sample; passages on the remaining topics are unlabelled."""
        every = topics()
        names = list(every)[: self.topics]
        train: tuple[list[Text], list[int]] = ([], [])
        test: tuple[list[Text], list[int]] = ([], [])
        for label, name in enumerate(names):
            for number, passage in enumerate(passages(every[name], self.words)):
                texts, labels = test if number % 5 == 4 else train
                texts.append((passage,))
                labels.append(label)
        small = list(every)[self.topics :]
        others = [(passage,) for name in small for passage in passages(every[name], self.words)]
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
            source=SOURCE,
            licence=LICENCE,
            stands_in_for="20 Newsgroups",
        )
