"""The scripts in .ci/: a signal ends them with their programs and leaves nothing; what is said of vulnerabilities."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import psutil
import pytest

from conftest import wait_for

ROOT = Path(__file__).parent.parent
WRITER = """
import itertools, os, pathlib, subprocess, sys, time
folder = pathlib.Path(os.environ["TMPDIR"]).glob("*/").__next__()
if "again" not in sys.argv:
    subprocess.Popen([sys.executable, __file__, "again"])  # as pip starts programs of its own
for number in itertools.count():
    (folder / f"{'again' in sys.argv}{number}").write_text("large")
    time.sleep(0.01)
"""
"""Stands for pip: it writes into the script's folder until somebody ends it."""
VENV = """
import os, pathlib, sys

def create(place, **options):
    (pathlib.Path(place) / "bin").mkdir(parents=True)
    os.symlink(sys.executable, pathlib.Path(place) / "bin/python")
"""
"""Stands for venv: the environment's Python is this one, which finds the pip above."""


@pytest.fixture
def fake(tmp_path):
    """An environment in which Python finds a pip that never ends, and an empty folder for temporary files."""
    for name, text in (("pip.py", WRITER), ("venv.py", VENV)):
        (tmp_path / "fake").mkdir(exist_ok=True)
        (tmp_path / "fake" / name).write_text(text)
    (tmp_path / "temporary").mkdir()
    return {**os.environ, "PYTHONPATH": str(tmp_path / "fake"), "TMPDIR": str(tmp_path / "temporary")}


@pytest.mark.parametrize(
    ("name", "number"), [("wheel", signal.SIGTERM), ("wheel", signal.SIGHUP), ("audit", signal.SIGTERM)]
)
def test_a_signal_leaves_no_folder_and_no_program(fake, tmp_path, name, number):
    command = [sys.executable, str(ROOT / ".ci" / name), "somewhere"]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    own = {"preexec_fn": lambda: signal.signal(number, signal.SIG_DFL)}  # even if what runs the tests ignores it
    script = psutil.Popen(command, env=fake, **pipes, **own)
    wait_for(lambda: list((tmp_path / "temporary").glob("*/True1")) or script.poll() is not None)
    programs = script.children(recursive=True)
    script.send_signal(number)
    _, told = script.communicate(timeout=60)
    assert script.returncode == 128 + number and told == ""
    assert list((tmp_path / "temporary").iterdir()) == []
    assert len(programs) == 2 and not psutil.wait_procs(programs, timeout=10)[1]


@pytest.fixture(scope="module")
def audit():
    sys.path.insert(0, str(ROOT / ".ci"))  # as Python does where it runs a script
    loader = SourceFileLoader("audit", str(ROOT / ".ci/audit"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("audit", loader))
    loader.exec_module(module)
    sys.path.remove(str(ROOT / ".ci"))
    return module


def answer(*packages: dict) -> str:
    return json.dumps({"dependencies": list(packages), "fixes": []})


SAFE = {"name": "safe", "version": "1.0", "vulns": []}
UNKNOWN = {"name": "own", "skip_reason": "Dependency not found on the index"}


def vulnerable(*fixed: str) -> dict:
    return {"name": "bad", "version": "2.0", "vulns": [{"id": "CVE-1", "fix_versions": list(fixed)}]}


@pytest.mark.parametrize("output", ["", "Traceback", "[]", "{}", "null"])
def test_without_an_answer_it_says_so_and_fails(audit, output):
    assert audit.verdict(output) == ("NO AUDIT: pip-audit's index could not be reached", 3)


def test_an_index_that_knows_nothing_is_no_clean_bill(audit):
    """pip-audit itself says "No known vulnerabilities found" then."""
    assert audit.verdict(answer(UNKNOWN, UNKNOWN)) == ("NO AUDIT: pip-audit's index knows none of the 2 packages", 3)


def test_what_is_vulnerable_is_named_and_fails_where_there_is_a_fixed_version(audit):
    lines, code = audit.verdict(answer(SAFE, UNKNOWN, vulnerable("2.1", "3.0")))
    assert code == 1 and lines.splitlines() == [
        "audit: 2 of 3 packages looked up",
        "audit: not known there: own",
        "VULNERABLE: bad 2.0: CVE-1, fixed in 2.1, 3.0",
    ]
    lines, code = audit.verdict(answer(SAFE, vulnerable()))
    assert code == 0 and lines.splitlines()[-1] == "VULNERABLE: bad 2.0: CVE-1, not fixed yet"
    assert audit.verdict(answer(SAFE)) == ("audit: 1 of 1 packages looked up", 0)


@pytest.mark.parametrize(
    "error", [subprocess.CalledProcessError(1, "pip"), subprocess.TimeoutExpired("pip", 1), OSError()]
)
def test_where_pip_audit_cannot_be_had_there_is_no_answer(audit, error, monkeypatch):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(audit.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(audit, "call", fails)
    assert audit.looked_up("somewhere") == ""
