"""Wrapping of printed text, because JupyterLab breaks long lines in the middle of a word."""

from __future__ import annotations

import re
from textwrap import fill

WIDEST = 100


def in_lines(text: str) -> str:
    """Wrap a text to 100 characters per line, and align continuation lines with the text after a label."""
    shown = []
    for line in text.splitlines():
        label = re.match(r" *(?:[+-] \S+ +|\w+: +)?", line)[0]
        hanging = " " * len(label)
        shown.append(fill(line, WIDEST, subsequent_indent=hanging, break_on_hyphens=False, break_long_words=False))
    return "\n".join(shown)
