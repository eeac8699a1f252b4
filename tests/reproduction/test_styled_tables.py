"""The report's tables as a reader sees them: tuned and untuned, seeds, what was not run folded."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from test_report import record

from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.columns import FIXED
from asyncfl_reproduction.report import Recorded, page, printed_tables, styled_tables
from asyncfl_reproduction.report.names import names
from asyncfl_reproduction.verdict_words import HOLDS, NOT_RUN, REVERSED

LAPTOP = Path(__file__).parents[2] / "asyncfl_reproduction/cells/laptop.yaml"
PLACE = "fedecho/table2/large-dir0.1"
CELLS = [
    replace(cell, seeds=cell.seeds[:10])  # some have more
    for cell in expand_grid(LAPTOP)
    if re.match(rf"{PLACE}/|kuiper/table3/", cell.name)
]
NAMES = names({cell.name: cell for cell in CELLS})


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Let the tier have the cells of a column of FedEcho's Table 2, with twins, and those of KUIPER's Table 3, without."""
    monkeypatch.setattr("asyncfl_reproduction.report.recorded.expand_grid", lambda path: CELLS)


def spread(mean, seeds=10):
    return [mean + 0.001 * index for index in range(seeds)]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """FedEcho and FedBuff in both columns; untuned the order is the other way round."""
    runs = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asyncfl_reproduction.report.recorded.expand_grid", lambda path: CELLS)
        for method, tuned, printed in (("fedecho-cross", 0.6, 0.5), ("fedbuff", 0.7, 0.3)):
            record(runs, f"{PLACE}/{method}", spread(tuned), tier=LAPTOP)
            record(runs, f"{PLACE}/{method}@server-rate", spread(printed), tier=LAPTOP)
        record(runs, "kuiper/table3/assistants-1", spread(0.8), tier=LAPTOP)
    return runs


@pytest.fixture
def both(made_once, tmp_path):
    """A copy of it, to which a test may add."""
    return shutil.copytree(made_once, tmp_path, dirs_exist_ok=True)


def test_a_printed_number_has_ours_tuned_and_untuned_below_it(both):
    table = printed_tables.beside(Recorded(LAPTOP, both), "FedEcho", "Table 2")
    (row,) = table[(table["method"] == "FedBuff") & (table["delay"] == "large") & (table["alpha"] == "0.1")].to_dict(
        "records"
    )
    assert (row["ours"], row["verdict"], row["cell"], row["seeds"]) == (
        "60.45 ± 0.30", REVERSED, f"{PLACE}/fedbuff", "10",
    )  # fmt: skip
    assert [row[printed_tables.part(FIXED, what)] for what in printed_tables.PARTS] == [
        HOLDS,
        f"{PLACE}/fedbuff@server-rate",
        "10",
    ]
    assert row[FIXED] == "20.45 ± 0.30"
    wide = printed_tables.laid_out(table, "FedEcho", "Table 2")
    found = [wide.loc[("FedBuff", "", line), ("large", "0.1")] for line in printed_tables.lines_of(table)]
    assert found == ["52.85 ± 7.76", "60.45 ± 0.30", "20.45 ± 0.30"]


def test_a_shown_number_names_its_cell_and_says_when_its_seeds_are_others(both):
    cell = {cell.name: cell for cell in CELLS}[f"{PLACE}/fedbuff@server-rate"]
    for seed in range(3, 10):
        (cell.folder(both) / f"seed-{seed}/result.json").unlink()
    table = printed_tables.beside(Recorded(LAPTOP, both), "FedEcho", "Table 2")
    html = styled_tables.styled(table, "FedEcho", "Table 2", NAMES).to_html()
    assert "20.10\u00a0±\u00a00.10 (3 seeds)" in html and html.count("seeds)") == 1
    assert f'title="FedBuff · large delay, α = 0.1: {PLACE}/fedbuff"' in html
    assert "ours, server rate 1" in html and "distillation set" in html and "distill_set" not in html
    assert page._about(table) == " · test accuracy, % · ours: mean ± standard deviation over 10 seeds"


def test_rows_that_were_not_run_are_folded_below_the_others(both, shown):
    one = page.Page(LAPTOP, both)
    one.table("FedEcho", "Table 2", "Table 3")
    title, style, left, nothing = shown
    assert title.data.startswith("**FedEcho, Table 2** · test accuracy, %")
    html = style.to_html()
    assert "FedBuff" in html and "FADAS" not in html
    assert left.data.startswith('<details class="folded"><summary>FedEcho, Table 2: 20 more numbers not run')
    assert "FADAS" in left.data and "61.25" in left.data  # what the paper prints is there
    assert "<summary>FedEcho, Table 3: 28 numbers not run" in nothing.data


def claims(**more):
    row = {"id": "FE-1", "artefact": "Table 2", "kind": "trained", "claim": "a < b", "paper": "holds"}
    return row | {"ours": HOLDS, "detail": "", FIXED: HOLDS, f"{FIXED}, detail": ""} | more


def test_claims_show_their_verdicts_with_the_comparisons_folded():
    detail = f"2 of 3 parts run: 2 hold; {PLACE}/fedbuff against {PLACE}/fedac: 1; <b>"
    html = styled_tables.claims(pd.DataFrame([claims(detail=detail, **{FIXED: REVERSED})]), NAMES)
    assert "a &lt; b" in html and "2 of 3 parts run: 2 hold<details" in html
    assert "<li>FedBuff against FedAC† · large delay, α = 0.1: 1</li><li>&lt;b&gt;</li>" in html
    assert html.count("<b>reversed</b>") == 0  # no detail: no twin was due
    html = styled_tables.claims(pd.DataFrame([claims(**{FIXED: REVERSED, f"{FIXED}, detail": "why"})]), NAMES)
    assert "<b>reversed</b><br>why" in html and "not run" not in html


def test_claims_that_were_not_run_are_folded_with_their_reason():
    left = [
        claims(id="FE-2", ours=NOT_RUN, detail="x: not run; y: not run", **{FIXED: NOT_RUN}),
        claims(id="FE-3", ours=NOT_RUN, detail="no such device", **{FIXED: NOT_RUN}),
    ]
    html = styled_tables.claims(pd.DataFrame([claims(detail="why"), *left]), NAMES)
    before, _, folded = html.partition("<summary>2 claims not run</summary>")
    assert "FE-1" in before and "FE-2" not in before and "its cells were not run" in folded
    assert "no such device" in folded
    only = styled_tables.claims(pd.DataFrame(left).drop(columns=[FIXED, f"{FIXED}, detail"]), NAMES)
    assert only.startswith("<details") and only.endswith("</details>")
