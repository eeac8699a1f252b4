"""What a user gives to make reaches the programs as it was given: neither make nor a shell reads it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT

HOSTILE = {
    "quotes": """it's "quoted".py""",
    "blanks": "two  words ",
    "semicolon": "x; touch hit; y",
    "substitution": "$(touch hit)`touch hit`",
    "make": "$(shell touch hit)${HOME}$$",
    "dollar": "a$HOME b$",
    "comment": "x # y",
    "others": "a&touch hit|touch hit>hit<hit*?[a]{b,c}~!\\%\t-x",
    "option": "--yes",
}
FAKE = """#!/bin/sh
for word in "$0" "$@"; do printf '%s\\0' "$word" >> "$LOG"; done; printf '\\n\\0' >> "$LOG"
if [ "$1" = .ci/with ]; then exec "$REAL" "$@"; fi
"""
TAKES = {
    "setup": {"PYTHON": ("{}",), "TORCH_INDEX": ("--index-url={}",), "CONSTRAINTS": ("{}",)},
    "reproduce": {
        "TIER": ("{}", "--tier={}"), "PAPER": ("--paper={}",), "ONLY": ("--only={}",), "WORKERS": ("--workers={}",),
        "SCHEDULER": ("--scheduler={}",), "YES": (),
    },
    "report": {"TIER": ("--tier={}",)},
    "test": {"CORES": ("{}",)},
    "test-long": {"CORES": ("{}",)},
    "league": {"METHOD": ("{}",), "WORKERS": ("--workers={}",), "YES": (), "QUICK": ()},
    "lab": {"EDITION": ("--LabApp.default_url=/lab/tree/{}/00_start_here.ipynb",)},
    "site": {"REPOSITORY": ("--repository={}",)},
}  # fmt: skip
"""Target -> its variables, each with the words in which programs get it."""


@pytest.fixture
def made(tmp_path):
    """Call make with fake programs; return the words of each command that it ran."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    for name in ("pyproject.toml", "setup.py", "constraints.txt", "notebooks/0.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for name in ("python", "asyncfl-lite", "jupyter"):
        (tmp_path / ".venv/bin" / name).write_text(FAKE)
        (tmp_path / ".venv/bin" / name).chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}  # of a make that runs this
    environment |= {"LOG": str(tmp_path / "log"), "REAL": sys.executable}

    def make(target: str, given: dict[str, str], *, environ: bool = False) -> list[list[str]]:
        for file in ("log", ".venv/.ready", ".venv/.ready-dev"):
            (tmp_path / file).unlink(missing_ok=True)
        if target != "setup":
            (tmp_path / ".venv/.ready").touch()
            (tmp_path / ".venv/.ready-dev").touch()
        command = ["make", target, *([] if environ else [f"{name}={value}" for name, value in given.items()])]
        env = environment | (given if environ else {})
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert not list(tmp_path.rglob("hit")), done.stdout + done.stderr
        words = (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""
        return [command.split("\0")[:-1] for command in words.split("\n\0")[:-1]]

    return make


@pytest.mark.parametrize("environ", [False, True], ids=["argument", "environment"])
@pytest.mark.parametrize("target", TAKES)
def test_variables_reach_their_programs_whole(made, tmp_path, target, environ):
    everything = " ".join(HOSTILE.values())
    given = dict.fromkeys(TAKES[target], everything)
    if target == "setup":  # a program of that name
        given["PYTHON"] = "./" + everything.replace("/", "")
        shutil.copy(tmp_path / ".venv/bin/python", tmp_path / given["PYTHON"])
    words = [word for command in made(target, given, environ=environ) for word in command]
    assert words and all(word.format(given[name]) in words for name in given for word in TAKES[target][name])


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_no_value_runs_anything(made, value):
    assert [command[-1] for command in made("league", {"METHOD": value})] == [value]


@pytest.mark.parametrize(("target", "variable"), [("lab", "LAB_OPTIONS"), ("test", "PYTEST_OPTIONS")])
def test_options_are_split_as_in_a_shell_that_runs_nothing(made, target, variable):
    """So that PYTEST_OPTIONS="-k 'a or b'" says what it says."""
    command = made(target, {variable: """-k 'a or "b"' --x="$(touch hit) `touch hit`; $HOME" * #"""})[-1]
    assert command[-5:] == ["-k", 'a or "b"', "--x=$(touch hit) `touch hit`; $HOME", "*", "#"]
    refused = subprocess.run(
        [sys.executable, ROOT / ".ci/with", "X", "true"], env={"X": "it's"}, capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert refused.stderr == "X: cannot be split into options (No closing quotation): it's\n"


def test_every_variable_that_a_user_may_set_is_passed_so():
    text = (ROOT / "Makefile").read_text()
    settable = set(re.findall(r"^([A-Z_]+) +\?=", text, re.M))
    given = set(re.search(r"^override GIVEN := (.*)$", text, re.M)[1].split())
    assert given == settable and len(given) >= 14
    assert {name for names in TAKES.values() for name in names} | {"LAB_OPTIONS", "PYTEST_OPTIONS"} == given
    recipes = "\n".join(line for line in text.splitlines() if line.startswith(("\t", "override SIDE_BY_SIDE")))
    written = set(re.findall(r"\$[({](?!if |filter |shell |wildcard )(\w+)", re.sub(r"\$\(if \$\(\w+\),", "", recipes)))
    assert written <= {"BIN", "VENV", "SIDE_BY_SIDE", "WITH", "MAKEFILE_LIST"}, "a recipe is text that a shell reads"
