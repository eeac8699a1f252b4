"""Locations of the reproduction's own files."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
CELLS = HERE / "cells"
"""Folder of the grids of cells and of searches, as YAML."""
PAPERS = HERE / "printed"
"""Folder of the papers' printed numbers, as CSV."""
RESULTS = HERE / "results"
"""Folder of recorded results. An installed package has only the outcomes of searches and the league's tables."""
NOTEBOOKS = HERE / "notebooks" if (HERE / "notebooks").exists() else HERE.parent / "notebooks"
"""Folder of the notebooks that are executed for each cell and each report. An installed package carries them in its own
folder."""


def kept_in() -> Path:
    """Return the default folder of recorded tables: the package's own in a clone's root folder, else ``results``."""
    return RESULTS if Path.cwd() == HERE.parent else Path("results")
