"""One drawn diagram per method, as SVG made by code, in one visual language.

Clients stand left, the slow one with a dashed outline and one long job; the server stands right; cylinders are what it
keeps. Arrows say what is sent, numbers tell the order, and what a method adds has the method's colour.

``python -m asyncfl_course.explore docs/pictures`` writes all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from asyncfl_course.explore.board import Board, Label, plain
from asyncfl_course.explore.method_drawings import DRAWINGS, STEP, STEPS_FROM, Drawing
from asyncfl_lite.base.errors import ConfigError, unknown_name
from asyncfl_lite.plots import colour, title

METHODS = tuple(DRAWINGS)
"""The methods that have a diagram: all that are registered, and ``oort``, a choice of clients for FedAvg's rounds."""


class Diagram(NamedTuple):
    """A drawn method.

    Attributes:
        svg: the drawing, a whole SVG document.
        alt: the same in words: what the method does, step by step.
        labels: every text in the drawing, with its place.
    """

    svg: str
    alt: str
    labels: tuple[Label, ...]

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.alt

    def save(self, path: str | Path) -> Path:
        """Write the drawing to ``path``, and return it."""
        path = Path(path)
        path.write_text(self.svg, encoding="utf-8")
        return path


def method_diagram(name: str) -> Diagram:
    """Return the diagram of a method: who sends what, what the server keeps, and what is new against FedBuff.

    Args:
        name: one of :data:`METHODS`.

    Raises:
        ConfigError: for another name.

    Example:

    >>> from asyncfl_course.explore import method_diagram
    >>> method_diagram("fedbuff").alt[:65]
    'FedBuff: A version is made of every M updates, whoever sent them.'
    """
    if name not in DRAWINGS:
        raise ConfigError(unknown_name("method", name, METHODS))
    drawing = DRAWINGS[name]
    board = Board(colour(name), STEPS_FROM + STEP * len(drawing.steps) - 2)
    shown = title(name)
    _heading(board, shown, drawing)
    drawing.draw(board)
    for number, step in enumerate(drawing.steps, start=1):
        y = STEPS_FROM + STEP * (number - 1)
        board.circle(number, 26, y - 4.5)
        board.text(step, 44, y)
    steps = " ".join(f"{number}. {plain(step)}" for number, step in enumerate(drawing.steps, start=1))
    alt = f"{shown}: {plain(drawing.idea)} {steps}"
    return Diagram(board.svg(f"{shown}, drawn", alt), alt, tuple(board.labels))


def _heading(board: Board, shown: str, drawing: Drawing) -> None:
    """Write a method's name, what its colour means, and its idea."""
    board.swatch(16, 16, 16)
    board.text(shown, 40, 31, size=20, bold=True)
    board.swatch(board.all.width - 184, 19, 12)
    board.text(f"new against {title(drawing.against)}", board.all.width - 166, 30)
    board.text(drawing.idea, 16, 54, size=14)


def write_all(folder: Path) -> list[Path]:
    """Write every diagram into ``folder`` as ``<name>.svg``, and a page that shows them all; return the diagrams."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(_page(), encoding="utf-8")
    return [method_diagram(name).save(folder / f"{name}.svg") for name in METHODS]


def _page() -> str:
    """Return a page in Markdown that shows every diagram."""
    lines = ["# The methods, drawn", "", "Made by `python -m asyncfl_course.explore docs/pictures`.", ""]
    for name in METHODS:
        lines += [f"## {title(name)}", "", plain(DRAWINGS[name].idea), "", f"![{title(name)}]({name}.svg)", ""]
    return "\n".join(lines)
