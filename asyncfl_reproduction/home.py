"""Where the reproduction's own files lie."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
CELLS = HERE / "cells"
"""Grids of cells and of searches, as YAML."""
PAPERS = HERE / "printed"
"""What the papers print, as CSV."""
RESULTS = HERE / "results"
"""What was recorded. An installed package has the searches' outcomes and the league's field alone."""
NOTEBOOKS = HERE / "notebooks" if (HERE / "notebooks").exists() else HERE.parent / "notebooks"
"""Those that are executed for each cell and for each report. An installed package carries them in its own folder."""


def kept_in() -> Path:
    """Return the folder of recorded tables that commands use if none is named: the clone's in the clone."""
    return RESULTS if Path.cwd() == HERE.parent else Path("results")
