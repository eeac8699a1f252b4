"""A signal ends the scripts in .ci/ with their programs, and they leave nothing in the folder of temporary files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
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
