"""Draw a diagram for each method, and the page that shows them all: ``python docs/pictures/methods.py``."""

from __future__ import annotations

from pathlib import Path

from board import Board, Label, plain
from method_drawings import DRAWINGS, STEP, STEPS_FROM, Drawing

from asyncfl_course.explore.diagrams import PICTURES
from asyncfl_lite.plots import colour, title

SENTENCES = {
    "fedprox": "FedProx is FedAvg with a penalty that keeps each client's model near the model that it was sent.",
    "fedavgm": "FedAvgM is FedAvg with momentum on the server.",
    "fedadam": "FedAdam is FedAvg with Adam on the server.",
    "oort": "Oort runs FedAvg's rounds. It prefers fast clients with large losses, and always tries some new clients.",
    "fedasync": "The server mixes every client's model into the global model. A stale model gets less weight.",
    "fedasmu": "FedASMU extends FedAsync. Half-way through a job, the client merges a newer global model into its own.",
    "fedbuff": "The server makes a version from every M updates, no matter which clients sent them.",
    "ca2fl": "CA²FL is FedBuff with a memory of every client's latest update, so that absent clients count, too.",
    "fadas": "FADAS is FedBuff with an adaptive optimiser (AMSGrad) on the server.",
    "fedac": "FedAC extends FedBuff. An update gets more weight if it points in the direction in which the global "
    "model has moved since the client was sent its model.",
    "kuiper": "Clients that have reported wait until M of them form a burst. The server averages their models, "
    "weighted by sample count and error, and mixes the average into the global model. A stale burst gets less weight.",
    "fedecho": "After each step of FedBuff, the server distils the predictions of every client's latest model into the "
    "global model.",
    "fedadt": "FedADT is FedAsync with one more step. A stale client model first learns from the global model and from "
    "labelled data on the server.",
    "afl_dw": "The server adds every update as soon as it arrives. A stale update gets less weight.",
    "dd_fedrevive": "The server replaces half of every update with a step distilled from the latest client models, on "
    "real data.",
    "fedrevive": "The server replaces a part of every update with a step distilled from the latest client models, on "
    "made-up data. The staler the update, the larger this part.",
}
"""Sentences of the page for methods whose drawing has room only for a shorter idea."""


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
    for name in DRAWINGS:
        file = f"../../asyncfl_course/explore/pictures/{name}.svg"
        said = SENTENCES.get(name) or plain(DRAWINGS[name].idea)
        lines += [f"## {title(name)}", "", said, "", f"![{title(name)}]({file})", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    for method in DRAWINGS:
        (PICTURES / f"{method}.svg").write_text(drawn(method)[0], encoding="utf-8")
    Path(__file__).with_name("README.md").write_text(page(), encoding="utf-8")
