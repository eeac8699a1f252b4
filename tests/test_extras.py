"""Each extra is enough for what the docs say it is for, and no run is lost for want of another; what lacks one says so.

Every process finds neither the modules nor the metadata of what its extra does not bring, and nor do those that it
starts. ``.ci/wheel`` does the same with an installed wheel.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import Distribution, distributions, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from asyncfl_lite import load_result
from asyncfl_lite.runs import store

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME = canonicalize_name(PROJECT["name"])
RUN = ["run", "--clients", "4", "--concurrency", "2", "--buffer-size", "1", "--rounds", "1", "--out", "mine"]
EXAMPLES = {
    "": [[*RUN, "--algorithm", "fedecho"]],
    "images": [[*RUN, "--model", "resnet", "--model-settings", "blocks=1,"]],
    "text": [[*RUN, "--task", "pydoc_topics"]],
    "video": [[*RUN, "--task", "movingdigits", "--model", "resnet3d", "--model-settings", "width=2"]],
    "grid": [RUN],
    "notebooks": [RUN],
    "dask": [RUN],
}
"""Extra -> command lines that its installation must be enough for."""
MANY = """
import sys
from asyncfl_lite import Config, run_many
from asyncfl_lite.cli import main

small = Config(clients=4, concurrency=2, buffer_size=1, rounds=1)
run_many([small, small.with_seed(1)], folders=["first", "second"])
for line in {lines!r}:
    print(main(line))
{more}
"""
MORE = {
    "": "from asyncfl_lite import run; run(small).plot()\nimport asyncfl_course.explore",
    "notebooks": "import asyncfl_course.explore, jupyterlab; from asyncfl_course.explore.staleness import *",
    "dask": "print(main(['grid', 'smoke', '--only', 'fedadt/*', '--yes', '--backend', 'dask', '--scheduler', 'tcp://127.0.0.1:9']))",
}
LACKING = [
    ["run", "--model", "resnet"], ["run", "--task", "fashion_mnist"], ["run", "--task", "pydoc_topics"],
    ["run", "--task", "movingdigits", "--model", "resnet3d"], ["grid", "smoke"], ["report"],
]  # fmt: skip


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


THERE = """
import sys
from importlib.machinery import PathFinder

MODULES, PACKAGES = {modules!r}, {packages!r}


class There(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in MODULES else super().find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, *context):
        return (one for one in super().find_distributions(*context) if one.name not in PACKAGES)


sys.meta_path[sys.meta_path.index(PathFinder)] = There
"""
"""A sitecustomize.py, which Python runs before anything else: its finder gives way to one that passes some over."""


def there(folder: Path, extra: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with what one extra brings."""
    try:
        absent = here().keys() - brought_by(*filter(None, [extra])) - {NAME}
    except LookupError as error:
        pytest.skip(str(error))
    names = packages_distributions().items()
    modules = {module for module, of in names if {canonicalize_name(one) for one in of} <= absent}
    (folder / "site").mkdir(exist_ok=True)
    packages = {here()[name].name for name in absent}
    (folder / "site/sitecustomize.py").write_text(THERE.format(modules=modules, packages=packages))
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder / "site"), str(ROOT)])}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    "extra", [pytest.param(extra, marks=[pytest.mark.long] * (extra not in ("", "grid", "dask"))) for extra in EXAMPLES]
)
def test_an_extra_is_enough_for_its_example_and_every_run_is_kept(extra, tmp_path):
    lines = EXAMPLES[extra] + (LACKING if not extra else [])
    (tmp_path / "few.py").write_text(MANY.format(lines=lines, more=MORE.get(extra, "")))
    done = there(tmp_path, extra, "few.py")
    codes = [line for line in done.stdout.splitlines() if line in ("0", "1", "2")]
    kept = EXAMPLES[extra]
    assert codes[: len(kept)] == ["0"] * len(kept), done.stdout + done.stderr
    brought = brought_by(*filter(None, [extra]))
    for folder in ("first", "second", *(line[line.index("--out") + 1] for line in kept)):
        versions = load_result(tmp_path / folder).versions
        assert set(versions) - {"asyncfl_lite", "python", "instructions", "torch"} == brought & set(store.LIBRARIES)
    if not extra:
        assert codes[len(kept) :] == ["2"] * len(LACKING)
        lines = re.findall(r"needs \w+; pip install 'asyncfl-lite\[(\w+)\]'", done.stderr)
        assert lines == ["images", "images", "text", "video", "grid", "grid", "notebooks"], done.stderr
    elif extra == "dask":  # there is no cluster, but all that is needed to ask for one
        assert "nothing answers at 'tcp://127.0.0.1:9'" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_an_extra_brings_no_more_than_it_must():
    plain, images = brought_by(), brought_by("images")
    assert {"torch", "mlxtend", "filelock"} <= plain and "torchvision" not in plain
    assert images - plain == {"torchvision"}
    assert brought_by("text") <= brought_by("grid") <= brought_by("notebooks")


@pytest.mark.long
def test_grid_is_enough_for_a_cell_of_each_kind_that_the_smoke_tier_has(tmp_path):
    cells = ["fedecho/table2/large-dir0.1/fedbuff", "fedecho/table5/fedbuff"]
    for cell in cells:
        done = there(tmp_path, "grid", "-m", "asyncfl_lite", "grid", "smoke", "--only", cell, "--yes")
        assert done.returncode == 0 and "Warning" not in done.stderr, done.stdout + done.stderr
        assert json.loads((tmp_path / "runs/smoke" / cell / "result.json").read_text())["status"] == "complete"


# What was installed is noted when the run begins ----------------------------------------------------------------------


def test_versions_are_those_at_the_run_s_beginning_and_stay_with_the_result(tmp_path, monkeypatch):
    from asyncfl_lite import Config, Run

    monkeypatch.setattr("asyncfl_lite.runs.store.versions", lambda: {"torch": "then"})
    begun = Run(Config(clients=4, concurrency=2, buffer_size=1, rounds=1))
    monkeypatch.setattr("asyncfl_lite.runs.store.versions", lambda: {"torch": "now"})
    result = begun.finish()
    result.save(tmp_path / "once")
    loaded = load_result(tmp_path / "once")
    assert result.versions == loaded.versions == {"torch": "then"}
    loaded.save(tmp_path / "twice")
    assert json.loads((tmp_path / "twice/result.json").read_text())["versions"] == {"torch": "then"}


def test_a_library_without_metadata_is_left_out(monkeypatch):
    def absent(name):
        raise store.metadata.PackageNotFoundError(name)

    store._libraries.cache_clear()
    monkeypatch.setattr(store.metadata, "version", absent)
    try:
        assert sorted(store.versions()) == ["asyncfl_lite", "instructions", "python", "torch"]
    finally:
        store._libraries.cache_clear()
