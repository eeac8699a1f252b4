"""Draw a diagram for each method, and the page that shows them all: ``python docs/pictures/methods.py``."""

from __future__ import annotations

from pathlib import Path

from board import Board, Label, plain
from method_drawings import DRAWINGS, STEP, STEPS_FROM, Drawing

from asyncfl_course.explore.diagrams import PICTURES
from asyncfl_lite.plots import colour, title


def drawn(name: str) -> tuple[str, list[Label]]:
    """Return a method's diagram as SVG, and every text in it with its place."""
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
    return board.svg(f"{shown}, drawn", alt), board.labels


def _heading(board: Board, shown: str, drawing: Drawing) -> None:
    """Write a method's name, what its colour means, and its idea."""
    board.swatch(16, 16, 16)
    board.text(shown, 40, 31, size=20, bold=True)
    board.swatch(board.all.width - 184, 19, 12)
    board.text(f"new against {title(drawing.against)}", board.all.width - 166, 30)
    board.text(drawing.idea, 16, 54, size=14)


def page() -> str:
    """Return a page in Markdown that shows every diagram."""
    made = "`python docs/pictures/methods.py` makes the drawings and this page."
    lines = ["# The methods, drawn", "", f"Each drawing shows one method, step by step. {made}", ""]
    for name, drawing in DRAWINGS.items():
        file = f"../../asyncfl_course/explore/pictures/{name}.svg"
        said = drawing.sentence or plain(drawing.idea)
        lines += [f"## {title(name)}", "", said, "", f"![{title(name)}]({file})", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    for method in DRAWINGS:
        (PICTURES / f"{method}.svg").write_text(drawn(method)[0], encoding="utf-8")
    Path(__file__).with_name("README.md").write_text(page(), encoding="utf-8")
