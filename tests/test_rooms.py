"""Three packages, and the rooms of the library: imports go downwards, there is no circle, and nothing low reads what lies at the top."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from conftest import ROOT

PACKAGE = ROOT / "asyncfl_lite"
LOOSE = {"__init__", "__main__", "cli", "plots", "testing"}
PACKAGES = ("asyncfl_lite", "asyncfl_reproduction", "asyncfl_course")
ROOMS = {"base", "simulator", "models", "tasks", "clients", "algorithms", "runs"}
ABOVE = re.compile(r"^(cells|printed|results|notebooks|asyncfl_reproduction|asyncfl_course)(/|$)")


def test_the_rooms_are_those_that_are_named():
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == ROOMS
    assert {path.stem for path in PACKAGE.glob("*.py")} == LOOSE


def test_imports_go_downwards():
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    env = {"PYTHONPATH": str(ROOT), "PATH": "", "COLUMNS": "200"}
    outcome = subprocess.run(
        [sys.executable, "-c", command, "--no-cache"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_no_module_imports_itself_round_a_corner():
    """Lazy and type-only imports count."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        pytest.fail(" → ".join(reversed(error.args[1])))


def test_the_library_reads_nothing_that_the_reproduction_keeps():
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        extras = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "needs"]
        documentation |= {id(call.args[0]) for call in extras}
        named = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
        ]
        assert not [text for text in named if ABOVE.match(text)], path
