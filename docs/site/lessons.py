"""Lessons as the site shows them, with folded answers, described figures, marked sections and method drawings."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from asyncfl_course.explore.diagrams import METHODS
from asyncfl_course.student import answering, folded
from asyncfl_lite.plots import title

PICTURES = "asyncfl_course/explore/pictures"
"""The drawings of methods and of the course, in the repository and in the site's source."""
WIDGET = "application/vnd.jupyter.widget-view+json"
MARKS = {
    "core": "Core: read this on the short way through the course.",
    "optional": "Optional: leave this out on the short way through the course.",
}


def prepared(path: Path) -> str:
    """Return a notebook as JSON, prepared for the site."""
    book = nbformat.read(path, as_version=4)
    answers = set(answering(book))
    for place, cell in enumerate(book.cells):
        if cell.cell_type == "code":
            _fold(cell, place in answers)
            _describe(cell)
        else:
            if place in answers:
                cell.source = folded(cell.source, "Read on after you have guessed")
            _mark(cell)
            cell.source = re.sub(r"\[([^\]]+)\]\(([^)]+\.html)\)", r'<a href="\2">\1</a>', cell.source)
    _draw(path.stem, book.cells)
    book.metadata.pop("widgets", None)
    return nbformat.writes(book)


def _fold(cell: NotebookNode, answers: bool) -> None:
    """Fold the parts of a cell that JupyterLab folds, and its output if it answers a guess."""
    tags, folded = set(cell.metadata.get("tags", [])), cell.metadata.get("jupyter", {})
    hidden = {name for name in ("source", "outputs") if folded.get(f"{name}_hidden")}
    if answers:
        hidden.add("outputs")
    if cell.outputs and hidden:
        kind = {"source": "hide-input", "outputs": "hide-output"}
        tags.add("hide-cell" if len(hidden) == 2 else kind[hidden.pop()])
    cell.metadata["tags"] = sorted(tags)


def _describe(cell: NotebookNode) -> None:
    """Give a cell's pictures a text alternative, link lessons as HTML, and remove widgets, which need a kernel."""
    for output in cell.outputs:
        data = output.get("data", {})
        data.pop(WIDGET, None)
        if "text/markdown" in data:
            data["text/markdown"] = data["text/markdown"].replace(".ipynb)", ".html)")
        words = cell.metadata.get("alt", "") or output.get("metadata", {}).get("image/png", {}).get("alt", "")
        if "image/svg+xml" in data:  # a drawing has its own description
            words = words or data.get("text/plain", "")
        if words and {"image/png", "image/svg+xml"} & set(data):
            cell.metadata["mystnb"] = {"image": {"alt": " ".join(words.split())}}


def _mark(cell: NotebookNode) -> None:
    """Say below a heading whether its section is core or optional."""
    for tag, words in MARKS.items():
        if tag in cell.metadata.get("tags", []):
            mark = f'<p class="mark {tag}" title="{words}">{tag}</p>'
            cell.source = re.sub(r"^(#+ .*)$", rf"\1\n\n{mark}", cell.source, count=1, flags=re.M)


def _draw(stem: str, cells: list[NotebookNode]) -> None:
    """Put the drawing of a lesson's method beside the beginning of the lesson."""
    method = next((name for name in METHODS if stem.split("_", 1)[1].split("_")[0] == name), None)
    if method:
        heading, _, rest = cells[0].source.partition("\n")
        drawing = f"![{title(method)}, drawn](../{PICTURES}/{method}.svg){{.method-drawing}}"
        cells[0].source = f"{heading}\n\n{drawing}\n{rest}"
