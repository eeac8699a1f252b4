"""Generated pairs of English sentences that mean the same or not."""

from __future__ import annotations

import numpy as np

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
        count: number of pairs.
        rng: generator from which the pairs are drawn.
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
