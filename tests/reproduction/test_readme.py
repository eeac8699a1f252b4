"""What the README shows works as it is written there; the commands that pages name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RUNNING = (ROOT / "docs/running.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", README, re.S):
        exec(block, names)
    assert names["result"].config.rounds == 100
    assert (tmp_path / "runs/mine/result.json").exists()
    for column in re.findall(r"result\.(?:summary|curve|updates)  # (.*)", RUNNING):
        shown = [name for name in column.split(", ") if name != "..."]
        assert all(
            any(name in part for part in vars(names["result"]).values() if hasattr(part, "keys")) for name in shown
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_it_names_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    for target in set(
        re.findall(r"make ([a-z-]+)", "\n".join(re.findall(r"`[^`]*`|```.*?```", page.read_text(), re.S)))
    ):
        assert re.search(rf"^{target}:", makefile, re.M), target
