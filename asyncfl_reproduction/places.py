"""Locations of the files of experiments, in the user's own folder or in the package."""

from __future__ import annotations

import re
from pathlib import Path

from asyncfl_lite.base.errors import ConfigError, unknown_name
from asyncfl_reproduction.home import CELLS, RESULTS


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
