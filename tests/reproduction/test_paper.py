"""The reproducibility study: it tells only comparisons that are recorded, and is as long as a referee expects."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "paper/manuscript.typ").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("paper_build", ROOT / "paper/build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_lookup_in_the_text_is_found(build):
    prose = "\n".join(line for line in TEXT.splitlines() if not line.startswith(("#let", "//")))
    assert len(build.ASKED.findall(prose)) == len(re.findall(r"#(?:d|says)\(", prose)) > 20
    assert len(build.ASKED_ALONE.findall(prose)) == prose.count("#accuracy(") > 0


def test_a_comparison_that_was_not_run_stops_it(build, monkeypatch):
    monkeypatch.setattr(build, "compared", lambda left, right, column: None)
    with pytest.raises(SystemExit, match="not both recorded in column 'printed'"):
        build.asked_for('#d("kuiper/fig3b/bias0/kuiper", "kuiper/fig3b/bias0/fedbuff", column: "printed")')


@pytest.mark.long
def test_it_is_eight_to_ten_pages_of_recorded_numbers(build, capsys):
    build.main()
    assert "comparisons" in capsys.readouterr().out
    pages = re.findall(rb"/Type\s*/Page\b", (ROOT / "paper/asyncfl-reproduction.pdf").read_bytes())
    assert 8 <= len(pages) <= 10
