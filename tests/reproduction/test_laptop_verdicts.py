"""A smaller tier's report shows the laptop tier's verdicts, which are kept in a table, beside its own."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from refresh import rows_below

from asyncfl_reproduction.claims import CLAIMS
from asyncfl_reproduction.claims.headlines import HEADLINES
from asyncfl_reproduction.digests import keep
from asyncfl_reproduction.home import CELLS, RESULTS
from asyncfl_reproduction.report import Page, laptop_verdicts
from asyncfl_reproduction.report.styled_tables import RECORDED
from asyncfl_reproduction.report.styled_tables import claims as claims_shown
from asyncfl_reproduction.verdict_words import VERDICTS

ROOT = Path(__file__).parents[2]
KEPT = laptop_verdicts.read_decided(RESULTS)


def test_every_claim_and_headline_has_a_kept_verdict():
    claims = [claim.id for paper in CLAIMS.values() for claim in paper]
    assert sorted(KEPT.index) == sorted([*claims, *(one.id for one in HEADLINES)])
    assert set(KEPT["verdict"]) <= set(VERDICTS)


def test_the_kept_verdicts_are_those_that_the_results_count():
    """``docs/results.md`` is held to the records by other tests."""
    rows = rows_below("## Claims, paper by paper", (ROOT / "docs/results.md").read_text())
    shown = {paper.lower(): [*map(int, counts)] for paper, tier, _, *counts in rows if tier == "laptop"}
    for paper, claims in CLAIMS.items():
        found = KEPT.loc[[claim.id for claim in claims], "verdict"].value_counts()
        assert [int(found.get(name, 0)) for name in VERDICTS] == shown[paper], "make docs"


@pytest.mark.parametrize(
    ("done", "cells", "said"),
    [(1, 1, "1 of 1 cell was run"), (1, 25, "1 of 25 cells was run"), (0, 25, "0 of 25 cells were run")],
)
def test_a_single_cell_is_no_cells(done, cells, said):
    headlines = pd.DataFrame(columns=["column", "id", "verdict", "seeds", "mean"])
    recorded = SimpleNamespace(headlines=headlines, results=[0] * done, cells=[0] * cells)
    assert said in laptop_verdicts.in_words(recorded, KEPT)


def kept_with(folder: Path, verdict: str) -> Path:
    (folder / "laptop").mkdir()
    rows = [{"id": "FE-2", "verdict": verdict, "seeds": 10, "mean": 0.123, "low": -0.1, "high": 0.15, "unit": "points"}]
    rows += [{"id": "FE-T2-a", "verdict": verdict}]
    keep(
        pd.DataFrame(rows, columns=["id", "verdict", "fixed", *laptop_verdicts.NUMBERS]),
        folder / laptop_verdicts.FILE,
        index=False,
    )
    return folder


@pytest.mark.parametrize("verdict", ["reversed", "holds"])
def test_the_first_page_shows_both_verdicts_and_what_to_open_next(tmp_path, shown, verdict):
    one = Page(CELLS / "smoke.yaml", tmp_path / "runs", kept_with(tmp_path, verdict))
    one.in_a_minute()
    told = "\n".join(getattr(part, "data", None) or part.to_html() for part in shown)
    row = next(line for line in re.findall(r"<tr>.*?</tr>", told, re.S) if "above FedBuff there" in line)
    assert "not run" in row and f"{verdict}: +12.3 [−10.0, 15.0], 10 seeds" in row
    answer = f"Recorded, with up to 10 seeds: 1 {verdict}. This run: none was run.**"
    assert f"**The papers' 12 central comparisons. {answer}" in told
    assert "report-fedecho.html" in told and "docs/findings.md" in told
    assert "KUIPER's error reward" in unescape(told)  # escaped once


def test_claims_have_the_recorded_verdict_beside_them():
    row = {"id": "FE-T2-a", "artefact": "Table 2", "kind": "trained", "claim": "ends above", "paper": "yes",
           "ours": "open", "detail": "+1.0", RECORDED: "reversed"}  # fmt: skip
    told = claims_shown(pd.DataFrame([row]), {})
    assert re.search(rf">{RECORDED}<.*>open<?.*>reversed<", told, re.S)
