"""What CI says of vulnerabilities in installed packages, from pip-audit's answers."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "audit"


@pytest.fixture(scope="module")
def audit():
    sys.path.insert(0, str(SCRIPT.parent))  # as Python does where it runs a script
    loader = SourceFileLoader("audit", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("audit", loader))
    loader.exec_module(module)
    sys.path.remove(str(SCRIPT.parent))
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
