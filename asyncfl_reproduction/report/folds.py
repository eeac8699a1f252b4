"""Collapsible parts of the report, in HTML that needs no script."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def folded(summary: str, html: str) -> str:
    """Return HTML folded below a one-line summary; escape plain text with :func:`html.escape` first."""
    return f'<details class="folded"><summary>{summary}</summary>{html}</details>'


def as_list(texts: Iterable[str]) -> str:
    """Return plain texts as an HTML list."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"
