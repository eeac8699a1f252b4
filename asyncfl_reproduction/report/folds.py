"""What is folded away until a reader asks for it: HTML that needs no script."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def folded(summary: str, html: str) -> str:
    """Return what is behind one line; both are HTML already, see :func:`html.escape`."""
    return f'<details class="folded"><summary>{summary}</summary>{html}</details>'


def as_list(texts: Iterable[str]) -> str:
    """Return plain texts as a list."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 cell``, ``12 cells``."""
    return f"{number} {noun}{'s' * (number != 1)}"
