"""The learner's edition: ``make student`` writes lessons to work on (``student/``) and solved ones (``solutions/``).

In ``student/``, nothing reveals the answer to a guess: from an exercise that asks for one to the end of its section,
outputs are cleared and text is folded. Solutions are replaced by links to the exercise in the solved lesson. Hints
stay. Both folders are beside ``notebooks/``, so a lesson finds the same files and runs in the same way in all three.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from asyncfl_course import progress_file
from asyncfl_lite.base.errors import how_many

LEARNER, SOLVED = "student", "solutions"
TRACK = "_in_ten_minutes"
"""End of the name of a track's notebook."""
GUESS, EXERCISE = "guess", "exercise"
"""Tags of cells: an exercise that asks for a guess about the next cells' output, and any exercise."""
MADE = ".made.json"
"""In the learner's folder: file -> its SHA-256 when it was written, to detect the learner's changes."""
SECTION = re.compile(r"^## ", re.M)
SOLUTION = re.compile(r"\s*<details>\s*<summary>Solution[^<]*</summary>(.*?)</details>\s*", re.S)
CODE = re.compile(r"^```python\n(.*?)^```", re.S | re.M)
READ_ON = "Read on after you have answered, and run the cells above"


def books(root: Path) -> list[Path]:
    """Return the paths of all lessons, then of the tracks of ten minutes, in the repository's folder, in order."""
    notebooks = root / "notebooks"
    return [*sorted(notebooks.glob("[0-9]*.ipynb")), *sorted(notebooks.glob(f"*{TRACK}.ipynb"))]


def learners(lesson: NotebookNode, name: str) -> NotebookNode:
    """Return a lesson without its solutions, and with the answers to its guesses hidden.

    The file's name is for the links to the solved lesson.
    """
    book = nbformat.from_dict(lesson)
    answers = set(answering(book))
    for index, cell in enumerate(book.cells):
        if cell.cell_type == "code":
            if index in answers or EXERCISE in _tags(cell):
                cell.outputs, cell.execution_count = [], None
            continue
        before = book.cells[index - 1]  # the exercise's cell, or else it is in the text that holds its solution
        target = before if EXERCISE in _tags(before) else cell
        link = f"[Solution](../{SOLVED}/{name}#cell-id={target.id})"
        cell.source = SOLUTION.sub(f"\n\n{link}\n\n", cell.source).strip()
        if index in answers:
            cell.source = folded(cell.source, READ_ON)
    return book


def solved(lesson: NotebookNode) -> NotebookNode:
    """Return a lesson with its stubs replaced by solutions, and without the outputs of those cells."""
    book = nbformat.from_dict(lesson)
    for index, cell in enumerate(book.cells):
        if cell.cell_type == "code" and EXERCISE in _tags(cell) and (code := _solution(book, index)):
            check = ast.parse(cell.source).body[-1].lineno - 1
            cell.source = f"{code}\n\n" + "\n".join(cell.source.splitlines()[check:])
            cell.outputs, cell.execution_count = [], None
    return book


def write(root: Path) -> tuple[list[str], list[str]]:
    """Write ``student/`` and ``solutions/`` beside ``notebooks/``, but keep lessons that the learner has changed.

    Returns:
        The names of the lessons that were written, and of those that were left because the learner has changed them.
    """
    student, solutions = root / LEARNER, root / SOLVED
    for folder in (student, solutions):
        folder.mkdir(exist_ok=True)
    made = json.loads((student / MADE).read_text()) if (student / MADE).exists() else {}
    written, left = [], []
    for path in books(root):
        lesson, mine = nbformat.read(path, as_version=4), student / path.name
        nbformat.write(solved(lesson), solutions / path.name)
        if mine.exists() and _digest(mine) != made.get(path.name):
            left.append(path.name)
            continue
        nbformat.write(learners(lesson, path.name), mine)
        made[path.name] = _digest(mine)
        written.append(path.name)
    (student / MADE).write_text(json.dumps(made, indent=1))
    progress_file.start(student)
    return written, left


def answering(book: NotebookNode) -> Iterator[int]:
    """Yield the indices of cells that may reveal an answer, from each guess to the end of its section.

    The last one may begin the next section: :func:`folded` leaves that out.
    """
    hidden = False
    for index, cell in enumerate(book.cells):
        if hidden and EXERCISE not in _tags(cell):
            yield index
        if cell.cell_type == "markdown" and SECTION.search(cell.source):
            hidden = False
        hidden = hidden or GUESS in _tags(cell)


def folded(source: str, summary: str) -> str:
    """Wrap Markdown up to its next section in a fold, unless it asks for an exercise or already contains a fold."""
    answer, *following = re.split(r"(?m)^(?=## )", source, maxsplit=1)
    if answer.strip() and "**Exercise " not in answer and "<details>" not in answer:
        answer = f"<details><summary>{summary}</summary>\n\n{answer.strip()}\n\n</details>\n\n"
    return "".join([answer, *following]).strip()


def _solution(book: NotebookNode, index: int) -> str:
    """Return the solution's code from the fold below an exercise, or an empty string."""
    for cell in book.cells[index + 1 :]:
        if cell.cell_type != "markdown":
            return ""
        for text in SOLUTION.findall(cell.source):
            if code := CODE.search(text):
                return code[1].rstrip()
    return ""


def _tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> int:
    """Write the learner's edition beside ``notebooks/``, and print which notebook to open first."""
    root = Path.cwd()
    if not (root / "notebooks").is_dir():
        print("student: no folder notebooks/ here; run this in the repository's folder", file=sys.stderr)
        return 2
    written, left = write(root)
    print(f"{LEARNER}/: {how_many(len(written), 'lesson')} to work in, {SOLVED}/: all of them solved.")
    if left:
        print(f"Left as you have them: {', '.join(left)}. Delete or rename one to get a fresh copy.")
    print(f"Begin with {LEARNER}/00_start_here.ipynb.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
