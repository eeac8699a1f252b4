"""The cards that describe the exhibits, and the reader's score."""

from __future__ import annotations

import pandas as pd

from asyncfl_course.exercises import Attempt, attempts
from asyncfl_course.zoo.exhibits import EXHIBITS, exhibit

NAMING = {"17.1": "ABC", "17.4": "DEF", "17.6": "GHI", "17.8": "JKL"}
"""Exercise -> the exhibits whose bug it asks for."""
WRITING = {"17.2": "A", "17.3": "C", "17.5": "E", "17.7": "I", "17.9": "L"}
"""Exercise -> the exhibit for which an invariant is asked."""
REST = "17.10"
"""The exercise that asks for invariants of :data:`AT_LEAST` of the remaining exhibits."""
AT_LEAST = 3
INVARIANT_MINUTES = {"17.2": 6, "17.3": 6, "17.5": 8, "17.7": 5, "17.9": 6, REST: 15}


class Cards:
    """Cards of some exhibits, with their intended behaviour and the suspects; a notebook shows them as text.

    Args:
        letters: such as ``ABC``.
    """

    def __init__(self, letters: str) -> None:
        self._exhibits = [exhibit(letter) for letter in letters]

    def __repr__(self) -> str:
        return self._repr_markdown_().replace("**", "")

    def _repr_markdown_(self) -> str:
        parts = []
        for one in self._exhibits:
            suspects = "\n".join(f"- `{name}`: {says}" for name, says in one.suspects.items())
            parts.append(f"**{one.letter}** · {one.description}\n\n{suspects}")
        return "\n\n".join(parts)


def par(id: str) -> int:
    """Return how many minutes an exercise of the zoo should take."""
    return sum(EXHIBITS[letter].minutes for letter in NAMING[id]) if id in NAMING else INVARIANT_MINUTES[id]


def score() -> pd.DataFrame:
    """Return the reader's score by exercise: exhibits found, tries and minutes, with the minutes expected (par).

    Minutes are counted from the solution of the previous exercise, or from the first answer of all, to the right
    answer.
    """
    tried = attempts()
    ids = sorted([*NAMING, *WRITING, REST], key=lambda id: int(id.split(".")[1]))
    rows = [_row(id, tried) for id in ids]
    table = pd.DataFrame(rows, index=pd.Index(ids, name="exercise"))
    total = {column: table[column].sum() for column in ("found", "of", "tries", "par")}
    table.loc["all"] = {**total, "exhibits": "", "minutes": table["minutes"].sum()}
    return table.astype(dict.fromkeys(total, int))


def _row(id: str, tried: list[Attempt]) -> dict[str, object]:
    own = [one for one in tried if one.id == id and one.state != "open"]
    letters = NAMING.get(id) or WRITING.get(id) or "".join(sorted(set(EXHIBITS) - set(WRITING.values())))
    return {
        "exhibits": letters,
        "found": _found(id, letters, tried),
        "of": AT_LEAST if id == REST else len(letters),
        "tries": len(own),
        "minutes": _minutes(id, tried),
        "par": par(id),
    }


def _found(id: str, letters: str, tried: list[Attempt]) -> int:
    """Return the number of exhibits answered correctly in the best answer to an exercise."""
    answers = [one for one in tried if one.id == id]
    if id in NAMING:
        named = [one.answer for one in answers if isinstance(one.answer, dict)]
        return max((sum(given.get(one) == EXHIBITS[one].place for one in letters) for given in named), default=0)
    right = [one.answer for one in answers if one.state == "right"]
    return max((min(len(answer), AT_LEAST) if id == REST else 1 for answer in right), default=0)


def _minutes(id: str, tried: list[Attempt]) -> float:
    done = next((one for one in tried if one.id == id and one.state == "right"), None)
    if done is None:
        return 0.0
    before = [one.at for one in tried if one.state == "right" and one.id != id and one.at < done.at]
    return round((done.at - max([tried[0].at, *before])) / 60, 1)
