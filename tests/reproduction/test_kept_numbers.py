"""Simulated numbers are kept for as long as the code and the libraries that give them are the same."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pandas as pd
import pytest

from asyncfl_reproduction import measure
from asyncfl_reproduction.measure import fedrevive


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Ask a new process, as it were, for kept numbers; return how often they have been computed."""
    (tmp_path / "code").mkdir()
    monkeypatch.setattr(measure, "CODE", (tmp_path / "code",))
    monkeypatch.setenv("ASYNCFL_CACHE", str(tmp_path / "cache"))
    computed = []

    def table(count):
        computed.append(count)
        return pd.DataFrame({"b": [0.1 * count, float("nan")], "a": [1, 2]})

    def ask(count=3):
        once = measure.kept(table)
        pd.testing.assert_frame_equal(once(count), table(count), check_exact=True)
        assert once(count) is once(count)
        computed.pop()
        return len(computed)

    write(tmp_path, "one = 1")
    return ask


def write(folder: Path, text: str, when: float = 1e9) -> None:
    path = folder / "code" / "a.py"
    path.write_text(text)
    os.utime(path, (when, when))


def test_they_are_computed_once_for_each_code_argument_and_library(asked, tmp_path, monkeypatch):
    assert [asked(), asked(), asked(4), asked(4)] == [1, 1, 2, 2]
    write(tmp_path, "one = 2")
    assert [asked(), asked()] == [3, 3]
    write(tmp_path, "one = 1")
    assert asked() == 3
    (tmp_path / "code" / "b.yaml").write_text("")
    os.utime(tmp_path / "code" / "b.yaml", (1e9, 1e9))
    assert asked() == 4
    monkeypatch.setattr(measure, "versions", lambda: {"torch": "9"})
    assert [asked(), asked()] == [5, 5]


def test_code_that_changed_since_the_process_began_is_not_trusted(asked, tmp_path):
    assert asked() == 1
    write(tmp_path, "one = 1", when=4e9)  # the same text, but the process may run another
    assert [asked(), asked()] == [2, 3]


def test_without_a_whole_cache_they_are_computed(asked, tmp_path, monkeypatch):
    asked()
    (path,) = (tmp_path / "cache" / "measured").iterdir()
    path.write_bytes(path.read_bytes().replace(b"0.3", b"0.4"))
    assert [asked(), asked()] == [2, 2]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASYNCFL_CACHE", str(tmp_path / "file"))
    assert [asked(), asked()] == [3, 4]


def test_all_code_that_they_rest_on_counts():
    folders = [folder.name for folder in measure.CODE]
    assert folders == ["asyncfl_lite", "measure", "standins"]
    for path in (Path(fedrevive.__file__), *measure.CODE[2].glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            for name in [node.module] if isinstance(node, ast.ImportFrom) else []:
                assert not name.startswith("asyncfl_reproduction") or name.split(".")[1] in folders, (path, name)
