"""The types that the library ships: a user's editor knows what the README's first call takes and returns."""

from __future__ import annotations

import os
import subprocess
import sys

from conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MORE = """
reveal_type(result)
reveal_type(result.summary)
Config(task="digits", settings={"beta": 0.5}, preset="ours", faults={"crash": 0.1})
Config(task="digits", rounds="many")
Config(tsak="digits")
run(3)
result.sumary
"""
CHECKED = """
[mypy]
strict = True
follow_imports = skip

[mypy-asyncfl_lite.*,pydantic.*]
follow_imports = normal
"""
"""The types of torch and the like decide nothing here, and take ten times as long to read as the library's."""


def test_the_first_call_of_the_readme_type_checks_and_wrong_ones_do_not(tmp_path):
    block = README.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "mine.py").write_text(block + MORE)
    (tmp_path / "mypy.ini").write_text(CHECKED)
    last = len(block.splitlines())
    # As for a user: the package is on the path where Python finds it, and counts as typed because it says so.
    told = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache" / "readme"), "mine.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    lines = [line for line in told.stdout.splitlines() if line.startswith("mine.py:")]
    found = {int(line.split(":")[1]) - last: line for line in lines if '" defined in ' not in line}  # only with a cache
    assert 'type is "asyncfl_lite.runs.results.Result"' in found.get(2, ""), told
    assert 'type is "dict[str, Any]"' in found[3]
    wrong = {number: line.rpartition("[")[2] for number, line in found.items() if "error:" in line}
    assert wrong == {5: "arg-type]", 6: "call-arg]", 7: "arg-type]", 8: "attr-defined]"}, told.stdout
