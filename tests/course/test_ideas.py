"""The drawings of ideas in the lessons are what their script draws."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PICTURES = Path(__file__).parents[2] / "docs/pictures"
SCRIPTS = ("ideas.py", "ideas_of_methods.py")


def drawings() -> dict:
    """The drawings of all scripts, which import from each other's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PICTURES)
        return {
            name: drawn for one in SCRIPTS for name, drawn in runpy.run_path(str(PICTURES / one))["DRAWINGS"].items()
        }


DRAWINGS = drawings()


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_what_its_script_draws(name):
    assert DRAWINGS[name]().svg() == (PICTURES / f"idea_{name}.svg").read_text()


def test_every_drawing_is_shown_in_a_lesson():
    shown = "\n".join(path.read_text() for path in (PICTURES.parents[1] / "notebooks").glob("*.ipynb"))
    assert [name for name in DRAWINGS if f"pictures/idea_{name}.svg" not in shown] == []
