"""Environments that hold what some extras of the package bring, and nothing else: links into the one that tests run in.

Whatever runs in one finds neither the module nor the metadata of anything that these extras do not bring, and neither do
the processes that it starts.
"""

from __future__ import annotations

import os
import sysconfig
import tomllib
import venv
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME = canonicalize_name(PROJECT["name"])


@cache
def here() -> dict[str, Distribution]:
    """Every installed package by its name; the first of two, which is the one that Python finds."""
    found: dict[str, Distribution] = {}
    for distribution in distributions():
        found.setdefault(canonicalize_name(distribution.name), distribution)
    return found


def required_by(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    """Yield what a package needs on this machine, as pip would read it, with some of its extras."""
    if name == NAME:  # an editable installation may have been made before pyproject.toml was changed
        lines = [*PROJECT["dependencies"], *(line for one in extras for line in PROJECT["optional-dependencies"][one])]
    elif name in here():
        lines = here()[name].requires or []
    else:
        raise LookupError(f"{name} is not installed here")
    for requirement in map(Requirement, lines):
        asked = [{"extra": extra} for extra in ("", *extras)]
        if requirement.marker is None or any(map(requirement.marker.evaluate, asked)):
            yield requirement


def brought_by(*extras: str) -> set[str]:
    """Names of all packages that ``pip install 'asyncfl-lite[…]'`` installs.

    Raises:
        LookupError: naming one that is not installed here.
    """
    seen: set[tuple[str, tuple[str, ...]]] = set()
    left = [(NAME, extras)]
    while left:
        if (one := left.pop()) not in seen:
            seen.add(one)
            needed = required_by(*one)
            left += [(canonicalize_name(other.name), tuple(sorted(other.extras))) for other in needed]
    return {name for name, _ in seen} - {NAME}


def make(folder: Path, *extras: str) -> Path:
    """Make an environment in ``folder`` and return its Python, which finds the clone's package too."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    for name in brought_by(*extras):
        tops = {file.parts[0] for file in here()[name].files or [] if file.parts[0] not in ("..", "__pycache__")}
        for top in (top for top in tops if not top.endswith(".pth")):
            if not (site / top).is_symlink():  # several packages share a folder such as nvidia
                (site / top).symlink_to(here()[name].locate_file(top))
    (site / "clone.pth").write_text(f"{ROOT}\n")
    metadata = site / f"{NAME.replace('-', '_')}-{PROJECT['version']}.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {PROJECT['version']}\n")
    groups = PROJECT["entry-points"]
    lines = [line for group, entries in groups.items() for line in (f"[{group}]", *map(" = ".join, entries.items()))]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder / "bin" / "python"


def variables() -> dict[str, str]:
    """This process's environment variables without those that would lead Python out of an environment."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
