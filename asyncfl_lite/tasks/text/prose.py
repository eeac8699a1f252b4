"""Real English prose that ships with CPython: the chapters of the language reference that ``help()`` shows.

The chapters differ a little from one Python version to the next, so results on them are valid for the version that they
record.
"""

from __future__ import annotations

import re
from functools import lru_cache

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
