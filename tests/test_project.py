"""What holds the project together: environments agree, notebooks keep their conventions, nothing leaks."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import slow_tests
import yaml

from conftest import tracked

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names_and_bounds(requirements):
    return {re.split(r"[><=\[]", line)[0].lower(): line for line in requirements}


EXTRAS = PROJECT["optional-dependencies"]


def brought_by(*extras: str) -> dict[str, str]:
    """Names of what some extras bring, and what everybody gets, each with its bound."""
    found = names_and_bounds(PROJECT["dependencies"])
    for extra in extras:
        for line in EXTRAS[extra]:
            ours = re.fullmatch(r"asyncfl-lite\[(.*)\]", line)
            found |= brought_by(*ours[1].split(",")) if ours else names_and_bounds([line])
    return found


INSTALLED = brought_by("all", "test")
"""What `make setup-dev` installs."""

CONDA = {"torch": "pytorch", "jupyter-client": "jupyter_client"}
"""Names that conda-forge spells in its own way."""


def test_conda_and_pip_give_the_same_environment():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (pip,) = [entry["pip"] for entry in conda if isinstance(entry, dict)]
    ours = {line.replace(name, CONDA.get(name, name)) for name, line in brought_by("all").items()}
    theirs = {line for line in conda if isinstance(line, str)} | set(pip)
    python = f"python{PROJECT['requires-python']},<3.15"
    assert theirs - ours == {python, "pip", "-e ."} and ours <= theirs
    recipe = (ROOT / "Makefile").read_text()
    for extras in ("[all]", "[all,test]"):
        assert f"pip install -qq -c \"$$CONSTRAINTS\" -e '.{extras}'" in recipe
    assert "CONSTRAINTS ?= constraints.txt\n" in recipe


def test_constraints_pin_everything_that_is_asked_for():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    assert all("==" in line for line in lines)
    assert set(INSTALLED) <= set(names_and_bounds(lines))


ALL_DISTRIBUTIONS = packages_distributions()
PACKAGES = ("asyncfl_lite", "asyncfl_reproduction", "asyncfl_course")
ROOMS_OF_EXTRAS = {"asyncfl_course/explore": "notebooks", "asyncfl_course": "grid", "asyncfl_reproduction": "grid"}
"""Rooms whose first import says which extra is missing; their modules import what they need as usual."""


def imports(path: Path) -> list[tuple[str, str | None]]:
    """Each module that a file imports, with the extra that a ``with needs("extra", ...)`` around it names."""
    found: list[tuple[str, str | None]] = []

    def walk(node: ast.AST, extra: str | None) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.With):
            call = node.items[0].context_expr
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "needs":
                extra = ast.literal_eval(call.args[0])
        if isinstance(node, ast.Import):
            found.extend((name.name, extra) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.append((node.module, extra))
        for child in ast.iter_child_nodes(node):
            walk(child, extra)

    walk(ast.parse(path.read_text()), None)
    return [(name.partition(".")[0], extra) for name, extra in found]


@cache
def distributions(module: str) -> set[str]:
    """The packages that may have brought a module, as pip calls them."""
    return {name.lower().replace("_", "-") for name in ALL_DISTRIBUTIONS.get(module, [module])}


def test_every_library_that_is_imported_is_declared_and_named_where_it_is_missing():
    """Outside what `pip install .` brings, an import says which extra brings it."""
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        room = path.relative_to(ROOT).parent.as_posix()
        for module, extra in imports(path):
            if module in sys.stdlib_module_names or module in PACKAGES:
                continue
            of_room = next((ROOMS_OF_EXTRAS[one] for one in ROOMS_OF_EXTRAS if room.startswith(one)), None)
            extra = extra or of_room
            brought = brought_by(*([extra] if extra else []))
            assert distributions(module) & set(brought), f"{path.relative_to(ROOT)}: {module}: extra {extra}"


def test_slow_tests_are_tests():
    for test in slow_tests.listed():
        file, _, name = test.partition("::")
        (found,) = (ROOT / "tests").rglob(f"{file}.py")
        assert f"def {name}(" in found.read_text(), f"tests/slow.txt: {test}"


def test_make_help_lists_every_target():
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M).group(1).split()
    assert all(re.search(rf"^  {target}\s+\w", shown, re.M) for target in phony)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_small_named_in_the_readme_and_as_make_notebooks_writes_it(path):
    """A page would show controls that need a kernel where it can show a picture; times change at every execution."""
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert book.metadata.kernelspec.name == "python3" and "widgets" not in book.metadata
    assert path.stat().st_size < 1_000_000 and path.name in (ROOT / "notebooks/README.md").read_text()
    for cell in book.cells:
        assert "execution" not in cell.metadata, "executed without .ci/execute"
        for output in cell.get("outputs", ()):
            assert output.output_type != "error"
            if "alt" in cell.metadata and "image/png" in output.get("data", {}):
                assert output.metadata["image/png"]["alt"] == cell.metadata.alt


@pytest.mark.parametrize(("source", "run"), [("axes.legend();", "axes.legend();\nNone"), ("1; 2", "1; 2")])
def test_a_semicolon_hides_a_value_from_nbval_as_in_jupyter(source, run, monkeypatch):
    """nbval's kernels keep no history, in which Jupyter looks for it, so that a strict comparison could not pass."""
    hooks = runpy.run_path(str(ROOT / "conftest.py"))
    monkeypatch.setitem(hooks["pytest_runtest_setup"].__globals__, "warm_kernels", lambda modules: nullcontext())
    item = type("IPyNbCell", (), {"cell": SimpleNamespace(source=source)})()
    list(hooks["pytest_runtest_setup"](item))
    assert item.cell.source == run


def test_no_file_names_a_machine_or_a_registry():
    host = re.compile(r"https?://[^\s\"')]*(?:pypi|npmjs|debian)|/work/\w|/home/\w+/|/root/")
    for name in tracked():
        path = ROOT / name
        if name != "tests/test_project.py" and path.is_file() and path.suffix not in {".png"}:
            found = host.search(path.read_text(errors="replace"))
            assert not found, f"{name}: {found.group(0)}"
