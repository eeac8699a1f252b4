"""Names in the reference: other packages' names, classes of options, fields of tuples, attributes with a colon."""

from __future__ import annotations

import builtins
import sys
import typing
from typing import Any

from docutils import nodes
from pydantic import BaseModel
from sphinx import addnodes
from sphinx.application import Sphinx

PACKAGE = "asyncfl_lite"


def foreign(target: str) -> bool:
    """Return whether a name in a signature is Python's or another package's."""
    top, dot, _ = target.partition(".")
    if dot and top:
        return top != PACKAGE and top in sys.modules
    return hasattr(builtins, target) or hasattr(typing, target)


def unlink_foreign(app: Sphinx, doctree: nodes.document) -> None:
    """Replace references to foreign names by short names, because Sphinx would search the whole package for them."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link.get("refdomain") == "py" and foreign(link["reftarget"]):
            shown = [part for part in link if isinstance(part, addnodes.pending_xref_condition)]
            link.replace_self((shown[0] if shown else link).children)


def keep_words(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Hide the first colon of an attribute's text from Napoleon, which takes the words before it for a type."""
    if what in ("attribute", "data", "property") and lines:
        lines[0] = lines[0].replace(":", COLON, 1)


def restore_words(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Restore the colon that :func:`keep_words` has hidden."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def name_alone(app: Sphinx, what: str, name: str, obj: Any, *_: Any) -> tuple[str, None] | None:
    """Show a class of options without its signature, because its options are listed in a table or below it."""
    return ("", None) if what == "class" and issubclass(obj, BaseModel) else None


def is_place(app: Sphinx, what: str, name: str, obj: Any, *_: Any) -> bool | None:
    """Leave out a named tuple's field whose only text is its index; the class describes the field."""
    return True if str(getattr(obj, "__doc__", "")).startswith("Alias for field number") else None


COLON = "\ufdd0"
"""A character without a meaning, which stands in for a hidden colon."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the functions of this module with Sphinx."""
    app.connect("doctree-read", unlink_foreign)
    app.connect("autodoc-process-signature", name_alone)
    app.connect("autodoc-skip-member", is_place)
    app.connect("autodoc-process-docstring", keep_words, priority=400)  # Napoleon's is 500
    app.connect("autodoc-process-docstring", restore_words, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
