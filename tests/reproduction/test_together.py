"""The picture of all evidence: what it compares, and that it is drawn from what is recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import refresh

from asyncfl_reproduction.grid.tidy import RUNS
from asyncfl_reproduction.parquet import write_table
from asyncfl_reproduction.report.together import EXACT, LEADS, RATES, STAND_IN, together

ROOT = Path(__file__).parents[2]


def test_every_paper_is_there_tuned():
    table = together()
    assert {cell.split("/")[0] for cell in table["ours"]} >= {"fedecho", "fedrevive", "kuiper", "fedadt", "real"}
    assert table.groupby(["title", "kind"])["tuned"].any().all()  # beside plain FedBuff where that was run, too
    assert ((table["low"] <= table["mean"]) & (table["mean"] <= table["high"])).all()


@pytest.mark.parametrize("lead", [lead for lead in LEADS if lead.kind == STAND_IN], ids=lambda lead: lead.title)
def test_a_printed_lead_is_the_papers(lead):
    assert lead.printed == pytest.approx(refresh.printed_gain(lead.ours, lead.fedbuff), abs=0.05)


def recorded(folder: Path, accuracies: dict[str, list[float]]) -> Path:
    """Write runs of KUIPER's own cells, by the last part of their names."""
    place = next(lead for lead in LEADS if lead.kind == EXACT).ours.rpartition("/")[0]
    rows = [{"cell": f"{place}/{name}", "seed": seed, "last5_accuracy": value}
            for name, values in accuracies.items() for seed, value in enumerate(values)]  # fmt: skip
    path = folder / "paper/kuiper" / RUNS
    path.parent.mkdir(parents=True)
    write_table(path, pd.DataFrame(rows))
    return folder


def test_a_papers_own_cell_takes_fedbuffs_best_rate_of_the_first_seed(tmp_path):
    slow = {name: [0.5] * 3 for name in RATES[3:]}
    folder = recorded(tmp_path, {"kuiper": [0.9, 0.91, 0.92], "fedbuff": [0.1, 0.1, 0.1], **slow,
                                 "fedbuff-rate0.3": [0.95, 0.9, 0.9], "fedbuff-rate0.1": [0.8, 0.99, 0.99]})  # fmt: skip
    table = together(folder).set_index("tuned")
    assert table["mean"].to_dict() == pytest.approx({False: 81.0, True: 100 * np.mean([-0.05, 0.01, 0.02])})


def test_a_cell_with_one_rate_missing_is_shown_beside_plain_fedbuff_alone(tmp_path):
    folder = recorded(tmp_path, {"kuiper": [0.9] * 3, "fedbuff": [0.1] * 3, "fedbuff-rate0.3": [0.95] * 3})
    assert together(folder)["tuned"].tolist() == [False]


def test_the_committed_picture_is_todays(tmp_path):
    refresh.picture(tmp_path / "together.svg")
    kept = (ROOT / "docs/pictures/together.svg").read_text()
    assert (tmp_path / "together.svg").read_text() == kept, "make docs"
