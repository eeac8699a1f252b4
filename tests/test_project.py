"""What holds the project together: environments agree, notebooks keep their conventions, nothing leaks."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import nbformat
import pytest
import slow_tests
import yaml

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LESSONS = [path for path in NOTEBOOKS if path.name[0].isdigit()]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names_and_bounds(requirements):
    return {re.split(r"[><=\[]", line)[0].lower(): line for line in requirements}


def test_conda_and_pip_give_the_same_environment():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (pip,) = [entry["pip"] for entry in conda if isinstance(entry, dict)]
    wanted = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]
    assert sorted(line for line in pip if not line.startswith("-")) == sorted(wanted)
    assert f"python{PROJECT['requires-python']}" in conda


def test_constraints_pin_everything_that_is_asked_for():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    pinned = names_and_bounds(lines)
    assert all("==" in line for line in lines)
    wanted = names_and_bounds(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"])
    assert set(wanted) <= set(pinned)


def test_slow_tests_are_tests():
    for test in slow_tests.listed():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / f"{file}.py").read_text(), f"tests/slow.txt: {test}"


def test_the_packages_that_were_asked_for_are_there():
    asked = "jupyterlab torch torchvision numpy matplotlib seaborn ipywidgets transformers datasets papermill nbval"
    wanted = names_and_bounds(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"])
    assert set(asked.split()) <= set(wanted)


def test_make_help_lists_every_target():
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M).group(1).split()
    assert all(re.search(rf"^  {target}\s+\w", shown, re.M) for target in phony)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_small_python3_and_named_in_the_readme(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert book.metadata.kernelspec.name == "python3"
    assert path.stat().st_size < 1_000_000
    assert path.name in (ROOT / "README.md").read_text()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name)
def test_lessons_keep_their_conventions(path):
    book = nbformat.read(path, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    prose = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    lines = sorted(len(cell.source.splitlines()) for cell in code)
    assert 30 <= len(book.cells) <= 100
    assert lines[len(lines) // 2] <= 8
    assert 5 <= len(prose.split()) / sum(lines) <= 12
    assert all(cell.execution_count for cell in code)
    assert any("nbval-check-output" in cell.metadata.get("tags", []) for cell in code)
    assert re.search(r"goal|able to", book.cells[0].source + book.cells[1].source, re.I)
    assert "<details>" in book.cells[-1].source + book.cells[-2].source + prose[-6000:]


def test_nothing_refers_to_a_document_that_is_not_here():
    folders = ("asyncfl_lite", "benchmarks", "docs", "experiments", "notebooks", "tests")
    listed = subprocess.run(["git", "ls-files", *folders, "README.md"], cwd=ROOT, capture_output=True, text=True).stdout
    absent = re.compile(r"specification(?:'s)? §", re.I)
    named = [name for name in listed.split() if (ROOT / name).suffix in {".py", ".md", ".ipynb", ".yaml"}]
    assert (
        named and [name for name in named if (ROOT / name).exists() and absent.search((ROOT / name).read_text())] == []
    )


@pytest.mark.parametrize("name", ["experiment", "report"])
def test_papermill_templates_have_a_parameters_cell(name):
    book = nbformat.read(ROOT / f"notebooks/{name}.ipynb", as_version=4)
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in book.cells) == 1


def test_no_file_names_a_machine_or_a_registry():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    host = re.compile(r"https?://[^\s\"')]*(?:pypi|npmjs|debian)|/work/\w|/home/\w+/|/root/")
    for name in tracked:
        path = ROOT / name
        if name != "tests/test_project.py" and path.is_file() and path.suffix not in {".png"}:
            found = host.search(path.read_text(errors="replace"))
            assert not found, f"{name}: {found.group(0)}"
