"""What a run executes, and how many options there are: each number may fall, and is lowered here when it does."""

from __future__ import annotations

import functools
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import asyncfl_lite
from asyncfl_lite.base.registry import Settings
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.home import CELLS

ROOT = Path(__file__).parents[1]
LIBRARY = Path(asyncfl_lite.__file__).parent
EXECUTED = {"fedbuff": (26, 1308), "fedecho": (31, 1617)}
"""Method -> files and lines of the library that three warm versions on digits execute."""
LOADED = 10_977
"""Lines of the library's modules that runs of both load."""
OPTIONS, NEVER_SET = 206, 61
"""Fields that settings classes of the library declare, and those that no cell changes from their default."""
RUN = """
import collections, json, sys
from asyncfl_lite import Config, run
counted = {}
for method in sys.argv[2:]:
    run(Config(task="digits", algorithm=method, rounds=1))
    lines = collections.defaultdict(set)
    def trace(frame, event, arg):
        file = frame.f_code.co_filename
        if file.startswith(sys.argv[1]):
            lines[file].add(frame.f_lineno)
            return trace
    sys.settrace(trace)
    run(Config(task="digits", algorithm=method, rounds=3, eval_every=3))
    sys.settrace(None)
    counted[method] = len(lines), sum(map(len, lines.values()))
files = {m.__file__ for m in list(sys.modules.values()) if str(getattr(m, "__file__", "")).startswith(sys.argv[1])}
slow = sorted({"IPython", "matplotlib", "mlxtend", "scipy", "sklearn", "torch._dynamo", "triton"} & set(sys.modules))
loaded = sum(len(open(file).readlines()) for file in files)
import test_small
print(json.dumps([counted, loaded, slow, *test_small.numbers()]))
"""


@pytest.fixture(scope="module")
def counted() -> list:
    """Runs and options are counted in a fresh process: other tests load more, and declare options, too."""
    command = [sys.executable, "-W", "ignore", "-c", RUN, str(LIBRARY), *EXECUTED]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    said = subprocess.run(command, env=env, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def test_what_a_run_executes_does_not_grow(counted):
    executed, loaded, slow, *_ = counted
    for method, most in EXECUTED.items():
        files, lines = executed[method]
        assert files <= most[0] and lines <= most[1], f"{method}: {files} files and {lines} lines are executed"
    assert loaded <= LOADED
    assert not slow, "a first run would take a third longer"


@functools.cache
def declared() -> dict[type[Settings], list[str]]:
    """Each settings class of the library, with the options that it declares itself."""
    for module in pkgutil.walk_packages([str(LIBRARY)], "asyncfl_lite."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return {kind: [name for name in kind.__annotations__ if name in kind.model_fields] for kind in _kinds(Settings)}


def _kinds(kind: type[Settings]) -> Iterator[type[Settings]]:
    for child in kind.__subclasses__():
        if child.__module__.startswith("asyncfl_lite"):
            yield child
        yield from _kinds(child)


def _set_in(settings: Settings) -> Iterator[tuple[type[Settings], str]]:
    """Yield the options with another value than their default, each with the class that declares it."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, Settings):
            yield from _set_in(value)
        if value != field.default:
            yield (
                next(kind for kind in type(settings).__mro__ if name in kind.__dict__.get("__annotations__", ())),
                name,
            )


def numbers() -> tuple[int, int, dict[str, int], list[str]]:
    """Return the number of options, of those that no cell sets, of each tier's cells, and the options' names."""
    options = {(kind, name) for kind, names in declared().items() for name in names}
    tiers = ("headline", "smoke", "laptop", "league", "real", "exact", "paper")
    cells = {tier: expand_grid(CELLS / f"{tier}.yaml") for tier in tiers}
    never = options - {one for made in cells.values() for cell in made for one in _set_in(cell.config)}
    return len(options), len(never), {tier: len(made) for tier, made in cells.items()}, [name for _, name in options]


def test_options_do_not_grow_in_number(counted):
    options, never, *_ = counted[3:]
    assert options <= OPTIONS and never <= NEVER_SET, (options, never)


def test_running_says_how_many_cells_a_tier_has(counted):
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| (\d+) \|", (ROOT / "docs/running.md").read_text(), re.M)
    assert {tier: int(cells) for tier, cells in rows} == counted[5]


def test_every_option_is_set_or_explained_somewhere(counted):
    """In a cell, a lesson, a page, a benchmark or an example; its own file and tests do not count."""
    from conftest import tracked  # not above: the process that counts finds another conftest

    read = ("notebooks/", "docs/", "asyncfl_reproduction/", "asyncfl_course/", "benchmarks/", "examples/", "README.md")
    paths = [
        ROOT / name for name in tracked() if name.startswith(read) and name.endswith((".py", ".md", ".yaml", ".ipynb"))
    ]
    words = set().union(*(re.findall(r"\w+", path.read_text()) for path in paths if path.is_file()))
    words |= set(re.findall(r"\w+", (LIBRARY / "runs" / "defaults.yaml").read_text()))
    assert set(counted[-1]) <= words
