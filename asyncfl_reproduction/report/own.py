"""The report of a user's own grid, which shows its cells, curves and cost, but no papers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.home import CELLS

if TYPE_CHECKING:
    from nbformat import NotebookNode

PARAMETERS = 'tier_file = "mine.yaml"\nruns = "runs"\nkept = "results"\ntables = None'
BEGIN = "from asyncfl_reproduction.report import Page\n\npage = Page(tier_file, runs, kept)"
PARTS = (
    ("Every number is read from the files that `asyncfl-lite grid` wrote. Accuracies are those of the final models, in "
     "percent: the mean over seeds ± the standard deviation.\n\n## Cells", "page.own_cells()"),
    ("## Curves\n\nLines are means over seeds, bands go from the lowest to the highest seed.", "page.own_curves()"),
    ("## Processor time", "page.compute()\npage.write_tables(tables, own=True)"),
)  # fmt: skip


def is_own(cells: Iterable[Cell]) -> bool:
    """Return whether all of these cells are the user's own, that is, none belongs to the package's experiments."""
    named = {match for file in CELLS.glob("*.yaml")
             for match in re.findall(r"^paper: *['\"]?([\w-]+)", file.read_text("utf-8"), re.M)}  # fmt: skip
    return named.isdisjoint(cell.name.split("/")[0] for cell in cells)


def own_notebook(tier: str, file: Path) -> NotebookNode:
    """Return the report notebook for a user's own grid, before execution."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    cells = [
        new_markdown_cell(f"# Report: {tier}\n\nThe cells of `{file.name}`."),
        new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
        new_code_cell(BEGIN),
    ]
    for text, code in PARTS:
        cells += [new_markdown_cell(text), new_code_cell(code)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})
