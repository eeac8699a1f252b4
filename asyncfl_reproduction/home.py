"""Locations of the reproduction's own files, and of experiments in the user's own folder or in the package."""

from __future__ import annotations

import re
from pathlib import Path

from asyncfl_lite.base.errors import ConfigError, unknown_name

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


def tier_file(tier: str | Path, own: str | Path = "cells") -> Path:
    """Return the file that describes a tier's cells.

    Args:
        tier: a file, or the name of a tier, such as ``smoke``.
        own: the user's folder of experiments, whose tiers take precedence over the package's tiers of the same name.

    Raises:
        ConfigError: if there is neither such a file nor such a tier.
    """
    path = Path(tier)
    if path.is_file():
        return path
    for place in (Path(own), CELLS):
        found = place / f"{path.stem}.yaml"
        if path in (Path(path.stem), Path(found.name), Path("cells", found.name)) and found.exists():
            return found
    if path.suffix or path.exists():
        return path  # its reader reports that it does not exist, or is not a file
    raise ConfigError(unknown_name("tier", str(tier), tiers(own)))


def tiers(own: str | Path = "cells") -> set[str]:
    """Return the names of all tiers in a user's folder of experiments and in the package."""
    return _tiers(Path(own)) | _tiers(CELLS)


def field_in(results: str | Path) -> Path:
    """Return the folder with the league's recorded tables, which may be the user's own."""
    return Path(results) if (Path(results) / "league").is_dir() else RESULTS


def _tiers(place: Path) -> set[str]:
    return {file.stem for file in place.glob("*.yaml") if re.search("^tier:", file.read_text("utf-8", "replace"), re.M)}
