"""Tables of invalid input, of one kind each: an id, how it comes about, the words that its message must have."""

from __future__ import annotations

import re

LONGEST = 1500
"""Characters of a message: the names of all settings are 700."""


def check(message: str, words: tuple[str, ...]) -> None:
    """It is one line, not endless, and says these words in this order."""
    assert re.search(".*".join(map(re.escape, words)), message), message
    assert len(message.splitlines()) == 1 and message.isprintable() and len(message) < LONGEST
