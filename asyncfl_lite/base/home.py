"""Where the repository's own folders lie: in the clone, or in the installed package.

An installed package carries them in its folder ``reproduction/shipped/`` (``setup.py``); a package that runs from the
clone, installed with ``pip install -e`` or not at all, has none, and reads the clone's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

CLONE = Path(__file__).parents[2]
SHIPPED = Path(__file__).parents[1] / "reproduction" / "shipped"
IN_CLONE = {"league": "results/league", "tuning": "results/tuning"}
"""Folders that lie elsewhere than at the clone's top."""


def home_of(name: Literal["experiments", "league", "notebooks", "papers", "tuning"]) -> Path:
    """Return one of the repository's folders, as it belongs to this package."""
    return SHIPPED / name if SHIPPED.exists() else CLONE / IN_CLONE.get(name, name)
