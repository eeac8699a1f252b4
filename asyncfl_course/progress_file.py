"""The progress file in a learner's folder, which stores solved exercises and answered questions.

A folder is a learner's if it has a file ``progress.json``, as the folder that ``make student`` writes has. In any other
folder, nothing is written.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from asyncfl_lite.base.files import write_atomically

NAME = "progress.json"


def file() -> Path | None:
    """Return the path of the progress file in the current folder, or None if there is none."""
    here = Path.cwd() / NAME
    return here if here.is_file() else None


def read() -> dict[str, Any]:
    """Read the progress file's results of exercises, by id, and of recall questions, by lesson.

    ``exercises`` holds, for each exercise, its state, the number of wrong answers before it was solved, and the date. A
    file that cannot be read counts as empty, and the next result replaces it.
    """
    empty: dict[str, Any] = {"exercises": {}, "recall": {}}
    if (path := file()) is None:
        return empty
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {name: dict(content.get(name, {})) for name in empty}
    except (ValueError, TypeError, AttributeError):
        return empty


def note(id: str, state: str) -> None:
    """Record whether an answer was right, and count wrong answers until the first right one.

    The state "open" changes nothing.
    """
    content = read()
    before = content["exercises"].get(id, {"state": "wrong", "wrong": 0})
    if state == "open" or before["state"] == "right":
        return
    now = {"state": state, "wrong": before["wrong"] + (state == "wrong")}
    content["exercises"][id] = now | ({"solved": _today()} if state == "right" else {})
    _write(content)


def note_recall(lesson: str, right: int) -> None:
    """Record a lesson's best number of correctly answered recall questions."""
    content = read()
    best = max(right, content["recall"].get(lesson, {"right": 0})["right"])
    content["recall"][lesson] = {"right": best, "at": _today()}
    _write(content)


def start(folder: Path) -> None:
    """Create the progress file, which marks a folder as a learner's, unless the file exists."""
    if not (folder / NAME).exists():
        write_atomically(folder / NAME, json.dumps({"exercises": {}, "recall": {}}))


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _write(content: dict[str, Any]) -> None:
    if (path := file()) is not None:
        write_atomically(path, json.dumps(content, indent=1, sort_keys=True))
