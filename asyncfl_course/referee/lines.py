"""What the bench prints, in lines that a page shows whole: JupyterLab breaks longer ones in the middle of a word."""

from __future__ import annotations

import re
from textwrap import fill

WIDEST = 100


def in_lines(text: str) -> str:
    """Return a text whose lines are at most 100 characters wide; what follows a label or an indent stays below it."""
    shown = []
    for line in text.splitlines():
        label = re.match(r" *(?:[+-] \S+ +|\w+: +)?", line)[0]
        hanging = " " * len(label)
        shown.append(fill(line, WIDEST, subsequent_indent=hanging, break_on_hyphens=False, break_long_words=False))
    return "\n".join(shown)
