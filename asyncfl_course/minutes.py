"""The minutes that a lesson and its exercises take, estimated with or without its optional sections, and in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nbformat import NotebookNode

WORDS_A_MINUTE = 140
"""Words of careful reading per minute; half the speed of a novel."""
LINES_A_MINUTE = 15
"""Lines of code read, not written, per minute."""
OPTIONAL = "optional"
"""Tag of an optional section's heading; sections without it are core."""
CORE = "core"
FOLDED = re.compile(r"<details>.*?</details>", re.S)
FORMULA = re.compile(r"\$\$.*?\$\$", re.S)
HEADING = re.compile(r"^## ", re.M)
ASKED = re.compile(r"\*\*Exercise [\d.]+ · [^*]+\*\* \(★+, (\d+) minutes\)")


class Minutes(NamedTuple):
    """The minutes that a lesson or its core takes.

    Attributes:
        reading: minutes to read prose and code.
        exercises: minutes for its exercises, as the lesson states them.
    """

    reading: int
    exercises: int


def minutes(book: NotebookNode, core: bool = False) -> Minutes:
    """Estimate how many minutes a lesson takes, for reading and for its exercises.

    Folded hints and solutions, outputs and displayed formulas are not counted.

    Args:
        book: the notebook.
        core: whether to leave out the sections whose headings have the tag ``optional``.

    Example:
        >>> import nbformat
        >>> text = nbformat.v4.new_markdown_cell("word " * 280)
        >>> code = nbformat.v4.new_code_cell("x = 1\\n" * 15)
        >>> minutes(nbformat.v4.new_notebook(cells=[text, code]))
        Minutes(reading=3, exercises=0)
    """
    words = lines = asked = 0
    optional = False
    for cell in book.cells:
        if cell.cell_type == "markdown" and HEADING.search(cell.source):
            optional = OPTIONAL in cell.metadata.get("tags", [])
        if core and optional:
            continue
        if cell.cell_type == "code":
            lines += len(cell.source.splitlines())
        else:
            words += len(FORMULA.sub("", FOLDED.sub("", cell.source)).split())
            asked += sum(map(int, ASKED.findall(cell.source)))
    return Minutes(round(words / WORDS_A_MINUTE + lines / LINES_A_MINUTE), asked)


def hours(minutes: int) -> str:
    """Return a duration as text, in minutes below two hours, and otherwise in hours rounded to halves."""
    if minutes < 120:
        return f"{minutes} minutes"
    whole, half = divmod(round(minutes / 30), 2)
    return f"{whole}{'½' if half else ''} hours"
