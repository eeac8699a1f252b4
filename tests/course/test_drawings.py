"""The drawings of ideas in the lessons, and the README's picture, are what their scripts draw."""

from __future__ import annotations

import runpy
import xml.etree.ElementTree as ET

import pytest

from conftest import ROOT

PICTURES = ROOT / "docs/pictures"
DRAWINGS = runpy.run_path(str(PICTURES / "ideas.py"))["DRAWINGS"]


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_what_its_script_draws(name):
    assert DRAWINGS[name]().svg() == (PICTURES / f"idea_{name}.svg").read_text()


def test_every_drawing_is_shown_in_a_lesson():
    shown = "\n".join(path.read_text() for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert {path.stem.removeprefix("idea_") for path in PICTURES.glob("idea_*.svg")} == set(DRAWINGS)
    assert [name for name in DRAWINGS if f"pictures/idea_{name}.svg" not in shown] == []


def test_the_picture_is_what_the_clock_gives_and_says_it_in_words():
    made = runpy.run_path(str(ROOT / "docs/pictures/phones.py"))
    updates, picture = made["hour"](), (ROOT / "docs/pictures/phones.svg").read_text(encoding="utf-8")
    assert picture == made["drawn"](updates), "python docs/pictures/phones.py"
    assert len(picture) < 400_000 and "prefers-reduced-motion" in picture
    assert ET.fromstring(picture).get("aria-label") == made["alternative"](updates)
    slow = updates[updates["client"] == 9]
    assert (len(updates), slow["staleness"].tolist()) == (541, [106])
    assert "106 versions old" in (ROOT / "README.md").read_text()
