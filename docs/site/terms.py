"""Links from the first use of each term in a lesson to the glossary, with the term's meaning as a tooltip."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

GLOSSARY = "docs/glossary"
NOT_IN = (nodes.literal, nodes.literal_block, nodes.reference, nodes.title, nodes.math, nodes.raw, nodes.caption)
"""Kinds of nodes whose text is left as it is."""
ENDING = "(?:s|es)?"


def meanings(env: BuildEnvironment) -> dict[str, tuple[str, str]]:
    """Map each term of the glossary to its anchor and to its meaning in one line."""
    found: dict[str, tuple[str, str]] = {}
    if GLOSSARY in env.found_docs:
        for item in env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
            meaning = " ".join(item.next_node(nodes.definition).astext().split())
            for term in item.findall(nodes.term):
                found[term.astext()] = (term["ids"][0], meaning)
    return found


def link_first_uses(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link the first use of each term in a lesson to the glossary; leave other pages as they are."""
    terms = getattr(app, "terms_of_the_glossary", None)
    if terms is None:
        terms = app.terms_of_the_glossary = meanings(app.env)
    if not docname.startswith("notebooks/") or not terms:
        return
    left = dict(terms)
    words = "|".join(map(_either_case, sorted(terms, key=len, reverse=True)))
    # Neither "it claims to be" nor "does the same job" is about the term.
    pattern = re.compile(rf"(?<![\w-])(?<!\bsame )({words}){ENDING}(?![\w-]| to\b)")
    to = app.builder.get_relative_uri(docname, GLOSSARY)
    for text in list(doctree.findall(nodes.Text)):
        if left and not inside(text, NOT_IN) and not _is_reading(text):
            _link(text, pattern, left, to)


def inside(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    """Return whether a node stands in a node of these kinds or in a cell's output."""
    while (node := node.parent) is not None:
        if isinstance(node, kinds) or "cell_output" in (node.get("classes") or ()):
            return True
    return False


def _is_reading(node: nodes.Node) -> bool:
    """Return whether a node is in a lesson's reading list, where words in titles are not uses of terms."""
    while node is not None and not isinstance(node, nodes.section):
        node = node.parent
    return node is not None and node.next_node(nodes.title).astext() == "Reading"


def _link(text: nodes.Text, pattern: re.Pattern, left: dict[str, tuple[str, str]], to: str) -> None:
    """Replace the first uses of the terms in ``left`` by links, and remove these terms from ``left``."""
    parts: list[nodes.Node] = []
    end, said = 0, text.astext()
    for found in pattern.finditer(said):
        term = next((word for word in left if re.fullmatch(_either_case(word), found[1])), None)
        if term is not None:
            anchor, meaning = left.pop(term)
            link = nodes.reference(
                "", found[0], refuri=f"{to}#{anchor}", reftitle=meaning, internal=True, classes=["term"]
            )
            parts += [nodes.Text(said[end : found.start()]), link]
            end = found.end()
    if parts:
        text.parent.replace(text, [*parts, nodes.Text(said[end:])])


def _either_case(word: str) -> str:
    """Return a pattern for a word that may begin a sentence; a name with capitals stays as it is."""
    escaped = re.escape(word)
    return rf"[{word[0]}{word[0].upper()}]{escaped[1:]}" if word[0].islower() else escaped


def setup(app: Sphinx) -> dict[str, Any]:
    """Register :func:`link_first_uses` with Sphinx."""
    app.connect("doctree-resolved", link_first_uses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
