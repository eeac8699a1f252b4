"""The drawings of ideas in the lessons are what their script draws."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PICTURES = Path(__file__).parents[2] / "docs/pictures"
DRAWINGS = runpy.run_path(str(PICTURES / "ideas.py"))["DRAWINGS"]


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_what_its_script_draws(name):
    assert DRAWINGS[name]().svg() == (PICTURES / f"idea_{name}.svg").read_text()


def test_every_drawing_is_shown_in_a_lesson():
    shown = "\n".join(path.read_text() for path in (PICTURES.parents[1] / "notebooks").glob("*.ipynb"))
    assert {path.stem.removeprefix("idea_") for path in PICTURES.glob("idea_*.svg")} == set(DRAWINGS)
    assert [name for name in DRAWINGS if f"pictures/idea_{name}.svg" not in shown] == []
