"""For teachers: slides, what a class has solved, and whether a student's installation works.

python -m asyncfl_course.teaching slides            # slides/: pages for 90, 2 × 90 and 6 × 45 minutes, and pictures
python -m asyncfl_course.teaching collect FOLDER    # a table of the progress.json files that students handed in
python -m asyncfl_course.teaching ready             # can this machine run the lessons?
"""

from __future__ import annotations

import argparse
import html
import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from asyncfl_course import progress_file
from asyncfl_course.exercises import exercises

PLANS = {
    "90": (("1", "2", "7"),),
    "2x90": (("1", "2", "7"), ("5", "8", "9", "10")),
    "6x45": (("1", "2"), ("3", "4"), ("5", "6"), ("7", "8"), ("9", "10"), ("11", "12")),
}
"""Name of a file of slides -> the slots of each session."""
LIVE = {"1": "explore.html", "7": "explore.html#4", "10": "explore_fedecho.html#4"}
"""Slot -> the page that its second slide plays."""
STYLE = """html { scroll-snap-type: y mandatory; font-family: system-ui, sans-serif; color: #1f2937; }
body { margin: 0; } section:not(:has(img, iframe)) { justify-content: center; }
section { height: 100vh; box-sizing: border-box; padding: 4vh 5vw; scroll-snap-align: start; display: flex;
  flex-direction: column; gap: 2vh; } h1, h2 { font-size: 5.5vh; margin: 0; } p { font-size: 5vh; margin: 0; }
img, iframe { flex: 1; min-height: 0; width: 100%; object-fit: contain; border: 0; } small { color: #5b6472; }
@media print { section { break-after: page; } }"""
KEYS = """addEventListener("keydown", (event) => {
  const by = {ArrowRight: 1, ArrowDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
  if (by) { event.preventDefault(); scrollBy(0, by * innerHeight); }
});"""


class Slot(NamedTuple):
    """A slot of twenty minutes, a row of the table in docs/teaching.md."""

    number: str
    question: str
    lesson: str
    words: str
    picture: str
    exercises: str
    discuss: str


def slots(page: str) -> list[Slot]:
    """Read the slots from the text of docs/teaching.md: a table of six columns whose fourth links a picture."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    found = []
    for row in rows:
        if len(row) == 6 and row[0].isdigit() and (link := re.fullmatch(r"\[(.+)\]\((.+)\)", row[3])):
            found.append(Slot(*row[:3], *link.groups(), *row[4:]))
    return found


def deck(name: str, known: dict[str, Slot]) -> str:
    """Return the slides of a plan as one HTML page, which needs the folders ``docs/`` and ``pictures/`` beside it."""
    sections = []
    for number, session in enumerate(PLANS[name], 1):
        title = f"Session {number}" if len(PLANS[name]) > 1 else "Asynchronous federated learning"
        listed = "".join(f"<li>{html.escape(known[slot].question)}</li>" for slot in session)
        sections.append(f"<h1>{title}</h1><p>Questions:</p><ol style='font-size: 4.5vh'>{listed}</ol>")
        sections += [section for slot in session for section in _slides(known[slot])]
    body = "\n".join(f"<section>{section}</section>" for section in sections)
    head = f'<meta charset="utf-8"><title>Slides, {name} minutes</title><style>{STYLE}</style>'
    begin, end = '<!doctype html>\n<html lang="en">', f"<script>{KEYS}</script>"
    return f"{begin}\n<head>{head}</head>\n<body>\n{body}\n{end}\n</body>\n</html>\n"


def _slides(slot: Slot) -> Iterator[str]:
    question = f"<h2>{html.escape(slot.question)}</h2>"
    yield f'{question}<img src="pictures/{_file(slot)}" alt="{html.escape(slot.words)}">'
    if slot.number in LIVE:
        yield f'{question}<iframe src="../docs/{LIVE[slot.number]}" title="A page to play with"></iframe>'
    titles = {id: one.title for id, one in exercises().items()}
    listed = "".join(f"<p>{id} · {html.escape(titles[id])}</p>" for id in re.findall(r"\d+\.\d+", slot.exercises))
    yield f"<h2>Your turn</h2>{listed}<p><small>Lesson {slot.lesson}</small></p>"
    yield f"<h2>Discuss with your neighbour</h2><p>{html.escape(slot.discuss)}</p>"


def _file(slot: Slot) -> str:
    return f"{int(slot.number):02}{Path(slot.picture).suffix}"


def write_slides(root: Path) -> list[str]:
    """Write the slides of all plans and the pictures of all slots into ``slides/``, and return the pages' names."""
    known = {slot.number: slot for slot in slots((root / "docs/teaching.md").read_text(encoding="utf-8"))}
    target = root / "slides"
    (target / "pictures").mkdir(parents=True, exist_ok=True)
    for slot in known.values():
        shutil.copy(root / "docs" / slot.picture, target / "pictures" / _file(slot))
    for name in PLANS:
        (target / f"{name}.html").write_text(deck(name, known), encoding="utf-8")
    return [f"{name}.html" for name in PLANS]


def collect(folder: Path) -> str:
    """Return what the students of a class have solved, as a table in text, with the exercises that few have solved.

    The files that they handed in may be called ``ada/progress.json``, ``ada_progress.json`` or ``ada.json``.
    """
    solved: dict[str, set[str]] = {}
    rows, damaged = [], []
    for path in sorted(folder.rglob("*.json")):
        alone = path.stem.replace(Path(progress_file.NAME).stem, "").strip(" _-.")
        student = alone or path.parent.name
        try:
            answers = json.loads(path.read_text(encoding="utf-8"))["exercises"]
            solved[student] = {id for id, one in answers.items() if one["state"] == "right"}
            wrong = sum(one["wrong"] for one in answers.values())
            last = max((one.get("solved", "") for one in answers.values()), default="")
        except (ValueError, KeyError, TypeError, AttributeError):
            damaged.append(path.name if alone else f"{student}/{path.name}")
            continue
        rows.append(f"{student:24} {len(solved[student]):6} {wrong:12}  {last}")
    lines = [f"{'student':24} solved wrong before  last", *rows]
    tried = sorted({id for ids in solved.values() for id in ids})
    few = [f"{id} ({count})" for id in tried if (count := sum(id in ids for ids in solved.values())) <= len(solved) / 2]
    lines += [f"Solved by half of the class or fewer: {', '.join(few)}"] if few else []
    lines += [f"Cannot be read: {', '.join(damaged)}"] if damaged else []
    return "\n".join(lines)


def _imports() -> str:
    import torch

    for name in ("asyncfl_lite", "asyncfl_course.lessons", "asyncfl_course.explore", "ipykernel", "jupyterlab"):
        importlib.import_module(name)
    return f"Python {sys.version.split()[0]}, torch {torch.__version__}"


def _training() -> str:
    from asyncfl_lite import Config, run

    result = run(Config(task="digits", rounds=20))
    return f"{result.summary['versions']} versions trained, accuracy {result.summary['final_accuracy']:.2f}"


def _lesson() -> str:
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read("notebooks/00_start_here.ipynb", as_version=4)
    book.cells = [cell for cell in book.cells if cell.cell_type == "code"][:3]
    NotebookClient(book, timeout=300, resources={"metadata": {"path": "notebooks"}}).execute()
    return "a kernel runs the first cells of lesson 00"


def _room() -> str:
    free = shutil.disk_usage(".").free / 1e9
    if free < 1:
        raise OSError(f"{free:.1f} GB are free here, and 1 GB is needed")
    return f"{free:.0f} GB are free"


READY: dict[str, Callable[[], str]] = {"imports": _imports, "disk": _room, "training": _training, "lesson": _lesson}


def ready() -> int:
    """Try what the lessons need, print a line for each thing, and return the number of failures."""
    failures = 0
    for name, attempt in READY.items():
        try:
            said, mark = attempt(), "✓"
        except Exception as problem:  # whatever is wrong with this machine is what we want to know
            said, mark = (
                f"{type(problem).__name__}: {str(problem).strip().splitlines()[0] if str(problem) else ''}",
                "✗",
            )
            failures += 1
        print(f"{mark} {name:9} {said}", flush=True)
    print("Ready: type make lab." if not failures else "Not ready: send your teacher these lines.")
    return failures


def main(arguments: list[str] | None = None) -> int:
    """Run one of the three commands, in the repository's folder."""
    parser = argparse.ArgumentParser(prog="python -m asyncfl_course.teaching", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("slides", "collect", "ready"))
    parser.add_argument("folder", nargs="?", type=Path, help="for collect: where the progress.json files are")
    asked = parser.parse_args(arguments)
    if (asked.command == "collect") != (asked.folder is not None) or (asked.folder and not asked.folder.is_dir()):
        parser.error("collect needs a folder, such as: collect handed-in; the others need none")
    if asked.command == "ready":
        return min(1, ready())
    if asked.command == "collect":
        print(collect(asked.folder))
    else:
        print(f"slides/: {', '.join(write_slides(Path.cwd()))}; open one in a browser, and press → for the next slide.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
