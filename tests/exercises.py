"""Exercises as lessons hold them: the cell with the stub, and the solution that is folded away below it.

A cell of an exercise has the tag ``exercise``: a stub, and as its last statement ``lessons.check("07.1", answer)``. The
next cells of markdown have, folded, a hint, and a solution whose code takes the stub's place.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from solutions import FENCED, FOLDED, cells_of

TAG = "exercise"


class Stub(NamedTuple):
    """An exercise as a lesson shows it.

    Attributes:
        id: such as ``07.1``.
        lesson: the notebook's name.
        cell: the place of its cell among all cells.
        asked: the markdown above it.
        code: the stub.
        checked: the statement that checks.
        folds: the summaries of what is folded below it, until the next code.
        solution: the code that takes the stub's place.
    """

    id: str
    lesson: str
    cell: int
    asked: str
    code: str
    checked: str
    folds: list[str]
    solution: str


def exercises_of(path: Path) -> list[Stub]:
    """Read a lesson's exercises; a solution that is not there is empty."""
    cells = cells_of(path)
    found = []
    for index, cell in enumerate(cells):
        if cell.cell_type != "code" or TAG not in cell.metadata.get("tags", []):
            continue
        *before, last = ast.parse(cell.source).body
        checked = ast.get_source_segment(cell.source, last)
        code = "\n".join(cell.source.splitlines()[: last.lineno - 1])
        below = ""
        for other in cells[index + 1 :]:
            if other.cell_type != "markdown":
                break
            below += other.source + "\n"
        folds = FOLDED.findall(below)
        solution = next((code for summary, text in folds if "Solution" in summary
                         for language, code in FENCED.findall(text) if language == "python"), "")  # fmt: skip
        id = last.value.args[0].value
        asked = cells[index - 1].source if cells[index - 1].cell_type == "markdown" else ""
        found.append(Stub(id, path.stem, index, asked, code, checked, [one for one, _ in folds], solution))
    return found


def filled(stub: Stub) -> str:
    """Return the cell's code with the solution in the stub's place, which stops unless it is right and hears why."""
    return f"{stub.solution}\n_checked = {stub.checked}\nassert _checked and _checked.message, repr(_checked)\n_checked"
