"""Subscripts for the papers' symbols in docstrings and settings, such as M_c."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from terms import NOT_IN, inside

SYMBOL = re.compile(r"(?<![\w./])([^\W\d_])_(?:\{([^{}]+)\}|([^\W_]+))(?![\w(=/])")
"""A letter with a subscript, such as ``M_c`` or ``x_{t_i}``; names in code have more letters, or are literals."""


def lower(app: Sphinx, doctree: nodes.document) -> None:
    """Set the subscripts of the symbols in a page."""
    for text in list(doctree.findall(nodes.Text)):
        if SYMBOL.search(text) and not inside(text, (*NOT_IN, nodes.math_block, addnodes.desc_signature)):
            text.parent.replace(text, [*lowered(text)])


def lowered(text: str) -> Iterator[nodes.Node]:
    """Yield a text's parts: plain text, letters in italics, and their subscripts."""
    end = 0
    for found in SYMBOL.finditer(text):
        yield from (nodes.Text(text[end : found.start()]), nodes.emphasis("", found[1]))
        yield nodes.subscript("", "", *lowered(found[2] or found[3]))
        end = found.end()
    yield nodes.Text(text[end:])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register :func:`lower` with Sphinx."""
    app.connect("doctree-read", lower)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
