"""The README's picture shows the hour that the package's clock makes."""

from __future__ import annotations

import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_picture_is_what_the_clock_gives_and_says_it_in_words():
    made = runpy.run_path(str(ROOT / "docs/pictures/phones.py"))
    updates, picture = made["hour"](), (ROOT / "docs/pictures/phones.svg").read_text(encoding="utf-8")
    assert picture == made["drawn"](updates), "python docs/pictures/phones.py"
    assert len(picture) < 400_000 and "prefers-reduced-motion" in picture
    assert ET.fromstring(picture).get("aria-label") == made["alternative"](updates)
    slow = updates[updates["client"] == 9]
    assert (len(updates), slow["staleness"].tolist()) == (541, [106])
    assert "106 versions old" in (ROOT / "README.md").read_text()
